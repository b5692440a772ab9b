// What metadata must be, whatever the kind. Source: apimachinery pkg/api/validation/objectmeta.go,
// and core's own look at finalizers.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kit.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxManager = 128;
constexpr size_t kMaxSubresource = 256;

// Empty for what is no version.
std::string_view VersionOf(std::string_view api_version) {
  const std::string_view version = GroupVersion::Of(api_version).version;
  return version.contains('/') ? std::string_view() : version;
}

void ValidateOwner(Value owner, const At& at, FieldErrors& errors) {
  const std::string_view version = owner["apiVersion"].AsString();
  if (VersionOf(version).empty()) {
    errors.InvalidText(at / "apiVersion", version, "version must not be empty");
  }
  for (const char* name : {"kind", "name", "uid"}) {
    if (owner[name].AsString().empty()) errors.InvalidText(at / name, "", "must not be empty");
  }
  if (GroupVersion::Of(version).group.empty() && VersionOf(version) == "v1" &&
      owner["kind"].AsString() == "Event") {
    errors.Invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner");
  }
}

void ValidateOwners(Value owners, const At& at, FieldErrors& errors) {
  std::string first;
  for (Value owner : owners.items()) {
    ValidateOwner(owner, at, errors);
    if (!owner["controller"].AsBool()) continue;
    std::string name = fmt::format("{}/{}", owner["kind"].AsString(), owner["name"].AsString());
    if (first.empty()) {
      first = std::move(name);
      continue;
    }
    errors.Invalid(at, owners,
                   fmt::format("Only one reference can have Controller set to true. Found \"true\" "
                               "in references for {} and {}",
                               first, name));
  }
}

void ValidateFinalizers(Value finalizers, const At& at, FieldErrors& errors) {
  bool orphan = false;
  bool foreground = false;
  for (Value f : finalizers.items()) {
    const std::string_view name = f.AsString();
    Complain(IsQualifiedName(name), name, at, errors);
    orphan |= name == "orphan";
    foreground |= name == "foregroundDeletion";
  }
  if (orphan && foreground) {
    errors.Invalid(at, finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void ValidateManagers(Value managers, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value m : managers.items()) {
    const At here = at.Item("", i++);
    const std::string_view operation = m["operation"].AsString();
    if (operation != "Apply" && operation != "Update") {
      errors.InvalidText(here / "operation", operation, "must be `Apply` or `Update`");
    }
    const std::string_view type = m["fieldsType"].AsString();
    if (!type.empty() && type != "FieldsV1") {
      errors.InvalidText(here / "fieldsType", type, "must be `FieldsV1`");
    }
    if (m["manager"].AsString().size() > kMaxManager) errors.TooLong(here / "manager", kMaxManager);
    if (m["subresource"].AsString().size() > kMaxSubresource) {
      errors.TooLong(here / "subresource", kMaxSubresource);
    }
  }
}

// core's ValidateObjectMeta: a finalizer without a domain must be one of Kubernetes' own.
void ValidateKubeFinalizers(Value finalizers, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value f : finalizers.items()) {
    const std::string_view name = f.AsString();
    const At here = at.Item("", i++);
    if (name.find('/') != std::string_view::npos) continue;
    if (name == "kubernetes" || name == "orphan" || name == "foregroundDeletion") continue;
    errors.InvalidText(here, name,
                       "name is neither a standard finalizer name nor is it fully qualified");
  }
}

void ValidateScope(Value metadata, bool namespaced, const At& at, FieldErrors& errors) {
  const std::string_view ns = metadata["namespace"].AsString();
  if (!namespaced) {
    if (!ns.empty()) errors.Forbidden(at / "namespace", "not allowed on this type");
  } else if (ns.empty()) {
    errors.Required(at / "namespace", "");
  } else {
    Complain(NameIsDnsLabel(ns, false), ns, at / "namespace", errors);
  }
}

// Go's %#v of a sorted []string.
std::string PrintedList(std::vector<std::string> words) {
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  for (std::string& word : words) word = Quote(word);
  return fmt::format("[]string{{{}}}", fmt::join(words, ", "));
}

void ValidateNoNewFinalizers(Value next, Value old, const At& at, FieldErrors& errors) {
  std::vector<std::string> extra;
  for (Value f : next.items()) {
    const auto known = [&] {
      for (Value o : old.items())
        if (o.AsString() == f.AsString()) return true;
      return false;
    };
    if (!known()) extra.emplace_back(f.AsString());
  }
  if (extra.empty()) return;
  errors.Forbidden(at, fmt::format("no new finalizers can be added if the object is being deleted, "
                                   "found new finalizers {}",
                                   PrintedList(std::move(extra))));
}

void ImmutableBelow(Value object, Value old, const Message& message, const At& at,
                    FieldErrors& errors) {
  for (const Field& field : message.fields) {
    const Value next = object[field.name];
    const Value before = old[field.name];
    const At here = at / field.name;
    if (field.immutable) {
      if (!Same(next, before)) errors.InvalidRaw(here, "null", std::string(kImmutable));
    } else if (field.type == Type::kMessage && field.shape == Shape::kSingle && next && before) {
      ImmutableBelow(next, before, *field.message, here, errors);
    }
  }
}

}  // namespace

void ValidateObjectMeta(Value metadata, bool namespaced, const Rules& rules, FieldErrors& errors) {
  const At at("metadata");
  const auto validate_name = rules.validate_name ? rules.validate_name : NameIsDnsSubdomain;
  const std::string_view name = metadata["name"].AsString();
  const std::string_view base = metadata["generateName"].AsString();
  if (!base.empty()) Complain(validate_name(base, true), base, at / "generateName", errors);
  if (name.empty()) {
    errors.Required(at / "name", "name or generateName is required");
  } else {
    Complain(validate_name(name, false), name, at / "name", errors);
  }
  ValidateScope(metadata, namespaced, at, errors);
  NonNegative(metadata, "generation", at, errors);
  ValidateLabels(metadata["labels"], at / "labels", errors);
  ValidateAnnotations(metadata["annotations"], at / "annotations", errors);
  ValidateOwners(metadata["ownerReferences"], at / "ownerReferences", errors);
  ValidateFinalizers(metadata["finalizers"], at / "finalizers", errors);
  ValidateManagers(metadata["managedFields"], at / "managedFields", errors);
  if (!rules.free_finalizers) {
    ValidateKubeFinalizers(metadata["finalizers"], at / "finalizers", errors);
  }
}

void ValidateObjectMetaUpdate(Value metadata, Value old, FieldErrors& errors) {
  const At at("metadata");
  if (old["deletionTimestamp"]) {
    ValidateNoNewFinalizers(metadata["finalizers"], old["finalizers"], at / "finalizers", errors);
  }
  if (metadata["resourceVersion"].AsString().empty()) {
    errors.InvalidText(at / "resourceVersion", "", "must be specified for an update");
  }
  if (metadata["generation"].AsInt() < old["generation"].AsInt()) {
    errors.Invalid(at / "generation", metadata["generation"], "must not be decremented");
  }
  for (const char* name : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                           "deletionGracePeriodSeconds"}) {
    Immutable(metadata[name], old[name], at / name, errors);
  }
  ValidateLabels(metadata["labels"], at / "labels", errors);
  ValidateAnnotations(metadata["annotations"], at / "annotations", errors);
  ValidateOwners(metadata["ownerReferences"], at / "ownerReferences", errors);
  ValidateManagers(metadata["managedFields"], at / "managedFields", errors);
}

void ValidateImmutableFields(Value object, Value old, const Message& message, FieldErrors& errors) {
  ImmutableBelow(object, old, message, At(), errors);
}

}  // namespace sextant::api
