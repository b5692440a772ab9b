// ConfigMaps, Secrets, Namespaces and Nodes. Source: pkg/apis/core/validation/validation.go.
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/base64.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxSecretBytes = size_t{1} << 20;
constexpr const char* kSetImmutable = "field is immutable when `immutable` is set";

// Bytes of a base64 text.
size_t DecodedSize(std::string_view text) {
  size_t n = text.size() / 4 * 3;
  for (size_t i = text.size(); i > 0 && text[i - 1] == '=' && n > 0; --i) --n;
  return n;
}

void ValidateImmutableData(Value o, Value old, Words fields, FieldErrors& errors) {
  if (!old["immutable"].AsBool()) return;
  if (!o["immutable"].AsBool()) errors.Forbidden("immutable", kSetImmutable);
  for (std::string_view name : fields) {
    if (!Same(o[name], old[name])) errors.Forbidden(std::string(name), kSetImmutable);
  }
}

}  // namespace

void ValidateConfigMap(Value o, FieldErrors& errors) {
  const At data("data");
  const At binary("binaryData");
  size_t bytes = 0;
  for (auto [key, value] : o["data"].members()) {
    const At here = data.Key("", key);
    Complain(IsConfigMapKey(key), key, here, errors);
    if (o["binaryData"].Has(key)) {
      errors.InvalidText(here, key, "duplicate of key present in binaryData");
    }
    bytes += value.AsString().size();
  }
  for (auto [key, value] : o["binaryData"].members()) {
    Complain(IsConfigMapKey(key), key, binary.Key("", key), errors);
    bytes += DecodedSize(value.AsString());
  }
  // The API server's path of no name prints as brackets.
  if (bytes > kMaxSecretBytes) errors.TooLong("[]", kMaxSecretBytes);
}

void ValidateConfigMapUpdate(Value o, Value old, FieldErrors& errors) {
  ValidateImmutableData(o, old, {"data", "binaryData"}, errors);
}

namespace {

void RequireKeys(Value data, Words keys, FieldErrors& errors) {
  const At at("data");
  for (std::string_view key : keys) {
    if (!data.Has(key)) errors.Required(at.Key("", key), "");
  }
}

void RequireJson(Value data, std::string_view key, FieldErrors& errors) {
  const At at("data");
  const At here = at.Key("", key);
  if (!data.Has(key)) return errors.Required(here, "");
  const Result<std::string> text = Base64Decode(data[key].AsString());
  if (!text) return;
  const Result<Object> parsed = ParseJson(*text);
  std::string why;
  if (!parsed) {
    why = parsed.error().message;
  } else if (!parsed->root().IsMap() && !parsed->root().IsNull()) {
    const char* kind = parsed->root().IsList()                ? "array"
                       : parsed->root().IsString()            ? "string"
                       : parsed->root().kind() == Kind::kBool ? "bool"
                                                              : "number";
    why = fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                      kind);
  }
  if (!why.empty()) errors.InvalidText(here, "<secret contents redacted>", std::move(why));
}

}  // namespace

void ValidateSecret(Value o, FieldErrors& errors) {
  const At at("data");
  const Value data = o["data"];
  size_t bytes = 0;
  for (auto [key, value] : data.members()) {
    Complain(IsConfigMapKey(key), key, at.Key("", key), errors);
    bytes += DecodedSize(value.AsString());
  }
  if (bytes > kMaxSecretBytes) errors.TooLong(at, kMaxSecretBytes);
  const std::string_view type = o["type"].AsString();
  if (type == "kubernetes.io/service-account-token") {
    constexpr std::string_view kAccount = "kubernetes.io/service-account.name";
    const At metadata("metadata");
    if (o["metadata"]["annotations"][kAccount].AsString().empty()) {
      errors.Required(metadata.Key("annotations", kAccount), "");
    }
  } else if (type == "kubernetes.io/dockercfg") {
    RequireJson(data, ".dockercfg", errors);
  } else if (type == "kubernetes.io/dockerconfigjson") {
    RequireJson(data, ".dockerconfigjson", errors);
  } else if (type == "kubernetes.io/basic-auth") {
    if (!data.Has("username") && !data.Has("password")) {
      RequireKeys(data, {"username", "password"}, errors);
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    if (data["ssh-privatekey"].AsString().empty()) {
      errors.Required(at.Key("", "ssh-privatekey"), "");
    }
  } else if (type == "kubernetes.io/tls") {
    RequireKeys(data, {"tls.crt", "tls.key"}, errors);
  }
}

void ValidateSecretUpdate(Value o, Value old, FieldErrors& errors) {
  Immutable(o["type"], old["type"], At("type"), errors);
  ValidateImmutableData(o, old, {"data"}, errors);
}

namespace {

void ValidateFinalizer(std::string_view name, const At& at, FieldErrors& errors) {
  Complain(IsQualifiedName(name), name, at, errors);
  if (name.find('/') == std::string_view::npos && name != "kubernetes" && name != "orphan" &&
      name != "foregroundDeletion") {
    errors.InvalidText(at, name,
                       "name is neither a standard finalizer name nor is it fully qualified");
  }
}

}  // namespace

void ValidateNamespace(Value o, FieldErrors& errors) {
  const At at("spec");
  for (Value f : o["spec"]["finalizers"].items()) {
    ValidateFinalizer(f.AsString(), at / "finalizers", errors);
  }
}

void ValidateNamespaceFinalize(Value o, Value, FieldErrors& errors) {
  const At at("spec");
  size_t i = 0;
  for (Value f : o["spec"]["finalizers"].items()) {
    ValidateFinalizer(f.AsString(), at.Item("finalizers", i++), errors);
  }
}

void ValidateNamespaceStatus(Value o, Value, FieldErrors& errors) {
  const std::string_view phase = o["status"]["phase"].AsString();
  const bool ending = static_cast<bool>(o["metadata"]["deletionTimestamp"]);
  if (!ending && phase != "Active") {
    errors.InvalidText("status.Phase", phase,
                       "may only be 'Active' if `deletionTimestamp` is empty");
  }
  if (ending && phase != "Terminating") {
    errors.InvalidText("status.Phase", phase,
                       "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
}

// --- nodes
// ------------------------------------------------------------------------------------------

namespace {

void ValidateTaints(Value taints, const At& at, FieldErrors& errors) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  size_t i = 0;
  for (Value taint : taints.items()) {
    const At here = at.Item("taints", i++);
    const std::string_view key = taint["key"].AsString();
    const std::string_view value = taint["value"].AsString();
    const std::string_view effect = taint["effect"].AsString();
    Complain(IsQualifiedName(key), key, here / "key", errors);
    const Complaints complaints = IsLabelValue(value);
    if (!complaints.empty()) {
      errors.InvalidText(here / "value", value, fmt::format("{}", fmt::join(complaints, ";")));
    }
    if (effect.empty()) {
      errors.Required(here / "effect", "");
    } else {
      ValidateTaintEffect(taint["effect"], here / "effect", errors);
    }
    if (!seen.emplace(effect, key).second) {
      errors.DuplicateRaw(here, InternalJson(taint, "io.k8s.api.core.v1.Taint"),
                          "taints must be unique by key and effect pair");
    }
  }
}

void ValidateNodeResources(Value node, FieldErrors& errors) {
  const At status("status");
  for (const char* list : {"capacity", "allocatable"}) {
    const At at = status / list;
    for (auto [name, quantity] : node["status"][list].members()) {
      ValidateAmount(name, quantity, at / name, errors);
    }
  }
}

void ValidateDeclaredFeatures(Value features, const At& at, FieldErrors& errors) {
  for (size_t i = 0; i < features.size(); ++i) {
    const std::string_view name = features.at(i).AsString();
    if (i == 0) continue;
    const std::string_view before = features.at(i - 1).AsString();
    if (name == before) errors.Duplicate(at.Item("", i), name);
    if (name < before) {
      errors.InvalidText(at.Item("", i), name, "list must be sorted alphabetically");
    }
  }
}

void ValidateAvoidPods(Value metadata, const At& at, FieldErrors& errors) {
  constexpr std::string_view kAvoid = "scheduler.alpha.kubernetes.io/preferAvoidPods";
  const std::string_view text = metadata["annotations"][kAvoid].AsString();
  if (text.empty()) return;
  const Result<Object> parsed = ParseJson(text);
  if (!parsed) errors.InvalidText(at / "annotations.AvoidPods", kAvoid, parsed.error().message);
}

void ValidatePodCidrs(Value cidrs, const At& at, FieldErrors& errors) {
  size_t v6 = 0;
  size_t i = 0;
  for (Value cidr : cidrs.items()) {
    const std::string_view text = cidr.AsString();
    ValidateCidr(text, at.Item("podCIDRs", i++), errors);
    v6 += text.find(':') != std::string_view::npos ? 1 : 0;
  }
  if (cidrs.size() > 1 && (cidrs.size() > 2 || v6 != 1)) {
    errors.Invalid(at / "podCIDRs", cidrs, "may specify no more than one CIDR for each IP family");
  }
}

}  // namespace

void ValidateNodeCreate(Value o, FieldErrors& errors) {
  const At metadata("metadata");
  const At spec("spec");
  const At status("status");
  ValidateAvoidPods(o["metadata"], metadata, errors);
  // Taints are reported below metadata, as the API server does.
  ValidateTaints(o["spec"]["taints"], metadata, errors);
  ValidateNodeResources(o, errors);
  ValidateDeclaredFeatures(o["status"]["declaredFeatures"], status / "declaredFeatures", errors);
  ValidatePodCidrs(o["spec"]["podCIDRs"], spec, errors);
}

void ValidateNodeUpdate(Value o, Value old, FieldErrors& errors) {
  const At metadata("metadata");
  const At spec("spec");
  const At status("status");
  ValidateAvoidPods(o["metadata"], metadata, errors);
  ValidateNodeResources(o, errors);
  ValidateDeclaredFeatures(o["status"]["declaredFeatures"], status / "declaredFeatures", errors);
  const Value addresses = o["status"]["addresses"];
  for (size_t i = 1; i < addresses.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!Equal(addresses.at(i), addresses.at(j))) continue;
      errors.DuplicateRaw(status.Item("addresses", i),
                          InternalJson(addresses.at(i), "io.k8s.api.core.v1.NodeAddress"));
      break;
    }
  }
  const Value before = old["spec"]["podCIDRs"];
  if (!before.empty() && !Same(before, o["spec"]["podCIDRs"])) {
    errors.Forbidden(spec / "podCIDRs",
                     "node updates may not change podCIDR except from \"\" to valid");
  }
  const std::string_view provider = old["spec"]["providerID"].AsString();
  if (!provider.empty() && provider != o["spec"]["providerID"].AsString()) {
    errors.Forbidden(spec / "providerID",
                     "node updates may not change providerID except from \"\" to valid");
  }
  ValidateTaints(o["spec"]["taints"], metadata, errors);
  ValidateTaints(o["spec"]["taints"], metadata, errors);  // as of a new one, too: told twice
  if (o["spec"]["externalID"].AsString() != old["spec"]["externalID"].AsString()) {
    errors.Forbidden(spec / "externalID", "may not be updated");
  }
}

}  // namespace sextant::api
