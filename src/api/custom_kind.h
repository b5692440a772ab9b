// Custom resources: what a CustomResourceDefinition makes of the API at run time.
//
//   ASSIGN_OR_RETURN(auto kind, CustomKind::Compile(crd));
//   const CustomVersion& v1 = *kind->versions()[0];       // a Resource like any other
//   Object shaped = AdmitCustom(v1, object, &unknown);
//
// A custom resource goes the same way as every other one. Its Resource::message is open (only
// apiVersion, kind and metadata are typed): what else it may hold, the schema says.
//
// Ownership: a CustomKind owns its versions and keeps the CRD's document; registry snapshots share
// it. Immutable; any thread.
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go,
// pkg/registry/customresource at v0.36.3.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/json_path.h"
#include "api/rules.h"
#include "api/schema.h"
#include "api/schema_node.h"

namespace sextant::api {

struct StrictReport;

struct PrinterColumn {
  std::string_view name;
  std::string_view type;  // "string", "integer", "number", "boolean", "date"
  std::string_view format;
  std::string description;
  int64_t priority = 0;
  JsonPath path;
};

// Where scale finds its numbers, as dotted paths ("spec.replicas"); "" where there is none.
struct ScalePaths {
  std::string_view spec;
  std::string_view status;
  std::string_view selector;
};

// One version of a custom resource. Every Resource whose message is `custom` is one.
struct CustomVersion : Resource {
  const Message* fields = nullptr;  // the tables of its fields, for who owns what
  std::shared_ptr<const SchemaNode> schema;
  Value schema_source;  // openAPIV3Schema as the CRD has it
  bool served = false;
  bool terminating = false;  // nothing new is made
  // Of the CRD as it was accepted: another one is another kind, whatever its name.
  std::string incarnation;
  bool has_status = false;  // the subresource
  std::optional<ScalePaths> scale;
  std::vector<PrinterColumn> columns;
  std::string deprecation;                 // warned of on every request, "" if not deprecated
  const CustomVersion* storage = nullptr;  // the version that is stored
};

// Null for built-in kinds.
const CustomVersion* AsCustom(const Resource& resource);
// The tables that say who owns which field.
const Message& FieldsOfKind(const Resource& resource);

// In the words of this version, pruned, with defaults; the same object if nothing changes. Paths of
// fields that the schema does not know are put into `unknown`, if it is not null.
Object AdmitCustom(const CustomVersion& version, Object object, std::vector<std::string>* unknown);
// The same for what a request brings; the paths go into `strict`. Errors: 400, why the metadata of
// an object within cannot be read.
Result<Object> ReadCustom(const CustomVersion& version, Object object, StrictReport& strict);

// `old` is absent on create.
void ValidateCustom(const CustomVersion& version, Value object, Value old, FieldErrors& errors);
void ValidateCustomStatus(const CustomVersion& version, Value object, Value old,
                          FieldErrors& errors);
void WarnOfCustom(Value object, Value old, std::vector<std::string>& out);

class CustomKind {
 public:
  // From a CRD with accepted names. Errors: a schema past its bounds.
  static Result<std::shared_ptr<const CustomKind>> Compile(const Object& crd);
  ~CustomKind();

  const Object& crd() const { return crd_; }
  std::string_view group() const;
  std::string_view plural() const;                                              // as accepted
  std::span<const CustomVersion* const> versions() const { return versions_; }  // by priority
  bool terminating() const;

 private:
  struct Parts;
  explicit CustomKind(Object crd);

  Object crd_;
  std::unique_ptr<Parts> parts_;
  std::vector<const CustomVersion*> versions_;
};

// True if `a` comes before `b` in discovery: v1, v2beta1, v1beta1, v1alpha1, foo.
bool VersionComesFirst(std::string_view a, std::string_view b);

// status.conditions[type] is True.
bool CrdConditionTrue(Value crd, std::string_view type);

}  // namespace sextant::api
