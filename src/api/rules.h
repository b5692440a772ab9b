// Rules: what a kind asks beyond its schema: defaults, validation, which fields a client may set.
//
// The server runs one pipeline for every kind; what differs between kinds is said here, as data and
// as small pure functions found by the kind's schema message. A kind without rules gets what the
// schema alone says and the rules of object metadata.
//
//   const Rules& rules = RulesFor(*resource);
//   Editor edit(object); rules.set_defaults(edit.Root());
//   FieldErrors errors; rules.validate(object.root(), errors);
//
// Source: k8s.io/kubernetes pkg/apis/*/v1/defaults.go, pkg/apis/*/validation,
// pkg/registry/*/strategy.go at v1.36.3. Threads: pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/schema.h"
#include "base/status.h"

namespace sextant::api {

// Collects field errors in the words of apimachinery's util/validation/field. `path` is the whole
// path: "spec.containers[0].name". Values are printed as Go's %#v-like form of field.Error.
class FieldErrors {
 public:
  void Required(std::string path, std::string detail);
  void Invalid(std::string path, Value value, std::string detail);
  void InvalidText(std::string path, std::string_view value, std::string detail);  // a string value
  void InvalidRaw(std::string path, std::string_view printed, std::string detail);  // as printed
  void InvalidShape(std::string path, std::string detail);  // without the value
  void NotSupported(std::string path, std::string_view value, std::vector<std::string> valid);
  void NotSupportedRaw(std::string path, std::string_view printed, std::vector<std::string> valid);
  void Forbidden(std::string path, std::string detail);
  void Duplicate(std::string path, std::string_view value);
  void DuplicateRaw(std::string path, std::string_view printed, std::string detail = {});
  void TooLong(std::string path, int max_bytes);
  void TooMany(std::string path, int actual, int max);
  void NotFound(std::string path, std::string_view value, std::string detail = {});
  void TypeInvalid(std::string path, Value value, std::string detail);
  void TypeInvalidRaw(std::string path, std::string_view printed, std::string detail);
  void Internal(std::string path, std::string detail);
  void Add(Cause cause) { causes_.push_back(std::move(cause)); }  // as found elsewhere
  bool empty() const { return causes_.empty(); }
  const std::vector<Cause>& causes() const { return causes_; }
  std::vector<Cause> Take() { return std::move(causes_); }

 private:
  std::vector<Cause> causes_;
};

// A subresource by which a part of the object is changed, with rules of its own.
struct SubresourceRules {
  std::string_view name;
  void (*prepare)(Mut object, Value old) = nullptr;  // null: taken as it is
  // All of it: nothing else of the kind's rules is asked.
  void (*validate)(Value object, Value old, FieldErrors& errors) = nullptr;
};

struct Rules {
  // Before validation, on create and on update.
  void (*set_defaults)(Mut object) = nullptr;
  // What the registry's strategy does on the way in, after status has been handled by the pipeline
  // (dropped on create, kept on update): generated fields, cleared fields. `old` is empty on
  // create.
  void (*prepare)(Mut object, Value old) = nullptr;
  // On update, and on create where there is no validate_create.
  void (*validate)(Value object, FieldErrors& errors) = nullptr;
  // Without it, ValidateImmutableFields: what the schema says may not change.
  void (*validate_update)(Value object, Value old, FieldErrors& errors) = nullptr;
  void (*validate_status)(Value object, Value old, FieldErrors& errors) = nullptr;
  // On create, instead of validate: kinds of which more is asked when they are new.
  void (*validate_create)(Value object, FieldErrors& errors) = nullptr;
  // Warnings for the Warning header (deprecated or doubtful fields).
  void (*warnings)(Value object, Value old, std::vector<std::string>& out) = nullptr;
  // Every request for the kind is warned so (a type with APILifecycleDeprecated).
  std::string_view deprecation;
  // An annotation that the real server keeps as a field: metadata alone does not show it.
  std::string_view field_annotation;
  std::span<const SubresourceRules> subresources;
  // metadata.name rules: apimachinery's NameIsDNSSubdomain unless said otherwise.
  std::vector<std::string> (*validate_name)(std::string_view name, bool prefix) = nullptr;
  // Status may be given on create (Nodes); of other kinds the pipeline drops it.
  bool status_on_create = false;
  // metadata.generation: set to 1 on create, counted up when anything but metadata and status
  // changes.
  bool has_generation = false;
  bool free_finalizers = false;            // finalizers need no domain (custom resources)
  bool allow_create_on_update = false;     // PUT of what is not there makes it
  bool allow_unconditional_update = true;  // PUT without resourceVersion
  bool returns_deleted = false;            // DELETE answers with the object, not a Status
  // Graceful deletion: the seconds of grace for this object, given what DELETE asked for. Null for
  // kinds that are deleted at once (Pods alone have it).
  int64_t (*grace_s)(Value object, std::optional<int64_t> asked) = nullptr;
  // DELETE leaves the dependents unless it says otherwise, with this warning.
  bool orphans_by_default = false;
  std::string_view orphan_warning;
  // Namespaces: called when deletion is marked (phase Terminating) ...
  void (*on_delete)(Mut object) = nullptr;
  // ... and true while the kind's own finalizers (spec.finalizers) keep the object.
  bool (*held)(Value object) = nullptr;
};

const Rules& RulesFor(const Resource& resource);
// Null if the subresource has no rules of its own; status is not among them.
const SubresourceRules* FindSubresourceRules(const Rules& rules, std::string_view name);

// Rules of metadata that hold for every kind: name or generateName, namespace against scope,
// labels, annotations, finalizers, ownerReferences; and on update the immutable ones.
void ValidateObjectMeta(Value metadata, bool namespaced, const Rules& rules, FieldErrors& errors);
void ValidateObjectMetaUpdate(Value metadata, Value old, FieldErrors& errors);
// The fields that the schema marks immutable are as they were (apimachinery pkg/api/validate).
void ValidateImmutableFields(Value object, Value old, const Message& message, FieldErrors& errors);

}  // namespace sextant::api
