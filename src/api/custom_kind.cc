#include "api/custom_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <set>

#include "api/conditions.h"
#include "api/custom_tables.h"
#include "api/go_values.h"
#include "api/json.h"
#include "api/names.h"
#include "api/schema_validate.h"
#include "api/schema_values.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

// As discovery prints them.
constexpr std::string_view kVerbs[] = {"delete", "deletecollection", "get",    "list",
                                       "patch",  "create",           "update", "watch"};
constexpr std::string_view kPartVerbs[] = {"get", "patch", "update"};

std::string_view WithoutDot(std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  return path;
}

struct KubeVersion {
  bool known = false;
  int stage = 0;  // 2 stable, 1 beta, 0 alpha
  int64_t major = 0;
  int64_t minor = 0;
};

// v<major>[(alpha|beta)<minor>]
KubeVersion ParseVersion(std::string_view text) {
  KubeVersion out;
  const char* end = text.data() + text.size();
  if (!text.starts_with('v')) return out;
  auto [at, error] = std::from_chars(text.data() + 1, end, out.major);
  if (error != std::errc() || text[1] == '0') return out;
  std::string_view rest(at, static_cast<size_t>(end - at));
  out.stage = 2;
  for (std::string_view stage : {"alpha", "beta"}) {
    if (!rest.starts_with(stage)) continue;
    out.stage = stage == "beta" ? 1 : 0;
    rest.remove_prefix(stage.size());
    const auto [last, wrong] = std::from_chars(rest.data(), end, out.minor);
    if (wrong != std::errc() || rest.starts_with('0')) return out;
    rest.remove_prefix(static_cast<size_t>(last - rest.data()));
    break;
  }
  out.known = rest.empty();
  return out;
}

std::string Deprecation(Value spec, Value version) {
  if (!version["deprecated"].AsBool()) return "";
  if (version["deprecationWarning"]) return std::string(version["deprecationWarning"].AsString());
  const std::string_view group = spec["group"].AsString();
  const std::string_view kind = spec["names"]["kind"].AsString();
  const std::string_view name = version["name"].AsString();
  std::string text = fmt::format("{}/{} {} is deprecated", group, name, kind);
  std::string_view better;
  for (Value other : spec["versions"].items()) {
    const std::string_view candidate = other["name"].AsString();
    const bool usable = other["served"].AsBool() && !other["deprecated"].AsBool();
    if (!usable || !VersionComesFirst(candidate, name)) continue;
    if (better.empty() || VersionComesFirst(candidate, better)) better = candidate;
  }
  if (!better.empty()) text += fmt::format("; use {}/{} {}", group, better, kind);
  return text;
}

// Columns whose path is not understood are left out with all the others, as Kubernetes does.
std::vector<PrinterColumn> Columns(Value list) {
  std::vector<PrinterColumn> columns;
  for (Value item : list.items()) {
    auto path = JsonPath::Parse(item["jsonPath"].AsString());
    if (!path) return {};
    PrinterColumn column{item["name"].AsString(),   item["type"].AsString(),
                         item["format"].AsString(), std::string(item["description"].AsString()),
                         item["priority"].AsInt(),  *std::move(path)};
    if (column.description.empty()) {
      column.description = fmt::format("Custom resource definition column (in JSONPath format): {}",
                                       item["jsonPath"].AsString());
    }
    columns.push_back(std::move(column));
  }
  if (!list.empty()) return columns;
  auto age = JsonPath::Parse(".metadata.creationTimestamp");
  columns.push_back({"Age", "date", "", "", 0, *std::move(age)});
  return columns;
}

}  // namespace

bool CrdConditionTrue(Value crd, std::string_view type) {
  return IsConditionTrue(crd["status"]["conditions"], type);
}

bool VersionComesFirst(std::string_view a, std::string_view b) {
  const KubeVersion x = ParseVersion(a);
  const KubeVersion y = ParseVersion(b);
  if (x.known != y.known) return x.known;
  if (!x.known) return a < b;
  if (x.stage != y.stage) return x.stage > y.stage;
  if (x.major != y.major) return x.major > y.major;
  return x.minor > y.minor;
}

const CustomVersion* AsCustom(const Resource& resource) {
  const bool custom = resource.message != nullptr && resource.message->custom;
  return custom ? static_cast<const CustomVersion*>(&resource) : nullptr;
}

const Message& FieldsOfKind(const Resource& resource) {
  const CustomVersion* custom = AsCustom(resource);
  return custom != nullptr ? *custom->fields : *resource.message;
}

Object AdmitCustom(const CustomVersion& version, Object object, std::vector<std::string>* unknown) {
  const std::string api_version = version.group_version.ToString();
  if (object.api_version() != api_version && object.kind() == version.kind) {
    Editor edit(std::move(object));
    edit.Root().Set("apiVersion", api_version);
    object = std::move(edit).Finish();
  }
  return version.schema ? ShapeByRoot(object, *version.schema, unknown) : object;
}

Result<Object> ReadCustom(const CustomVersion& version, Object object, StrictReport& strict) {
  if (version.schema) {
    const std::string why = EmbeddedTypeError(object.root(), *version.schema);
    if (!why.empty()) return Fail(BadRequest(why));
  }
  std::vector<std::string> unknown;
  object = AdmitCustom(version, std::move(object), &unknown);
  for (const std::string& path : unknown) strict.Add("unknown field", path);
  return object;
}

namespace {

std::string_view GoType(Value v) {
  switch (v.kind()) {
    case Kind::kString:
      return "string";
    case Kind::kInt:
      return "int64";
    case Kind::kDouble:
      return "float64";
    case Kind::kBool:
      return "bool";
    case Kind::kList:
      return "[]interface {}";
    case Kind::kMap:
      return "map[string]interface {}";
    default:
      return "<nil>";
  }
}

// Why the path leads to no such value; "" where it leads to one, or to nothing.
std::string AccessError(Value object, std::string_view path, std::string_view wanted) {
  const auto error = [](std::string_view at, Value v, std::string_view expected) {
    return fmt::format(".{} accessor error: {} is of the type {}, expected {}", at, GoPrint(v),
                       GoType(v), expected);
  };
  Value v = object;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    if (!v) return {};
    if (!v.IsMap()) return error(path.substr(0, end), v, "map[string]interface{}");
    v = v[path.substr(start, end - start)];
    start = end + 1;
  }
  return v.IsAbsent() || GoType(v) == wanted ? std::string() : error(path, v, wanted);
}

void CheckCount(Value object, std::string_view path, FieldErrors& errors) {
  const std::string at = "." + std::string(path);  // as the CRD writes it
  std::string why = AccessError(object, path, "int64");
  if (!why.empty()) return errors.InvalidRaw(at, "0", std::move(why));
  const Value count = object.Path(path);
  if (count.AsInt() < 0) errors.Invalid(at, count, "should be a non-negative integer");
  if (count.AsInt() > std::numeric_limits<int32_t>::max()) {
    errors.Invalid(
        at, count,
        fmt::format("should be less than or equal to {}", std::numeric_limits<int32_t>::max()));
  }
}

void CheckScale(const CustomVersion& version, Value object, bool spec, FieldErrors& errors) {
  if (!version.scale) return;
  if (spec) CheckCount(object, version.scale->spec, errors);
  CheckCount(object, version.scale->status, errors);
  if (version.scale->selector.empty()) return;
  std::string why = AccessError(object, version.scale->selector, "string");
  if (why.empty()) return;
  errors.InvalidText("." + std::string(version.scale->selector), "", std::move(why));
}

bool ListTypesHold(const SchemaNode& schema, Value object) {
  FieldErrors errors;
  ValidateListTypes(object, schema, errors);
  return errors.empty();
}

bool CheckType(const CustomVersion& version, Value object, FieldErrors& errors) {
  const std::string api_version = version.group_version.ToString();
  const bool kind = object["kind"].AsString() == version.kind;
  const bool right = object["apiVersion"].AsString() == api_version;
  if (!kind) {
    errors.InvalidText("kind", object["kind"].AsString(), fmt::format("must be {}", version.kind));
  }
  if (!right) {
    errors.InvalidText("apiVersion", object["apiVersion"].AsString(),
                       fmt::format("must be {}", api_version));
  }
  return kind && right;
}

}  // namespace

void ValidateCustom(const CustomVersion& version, Value object, Value old, FieldErrors& errors) {
  if (!CheckType(version, object, errors)) return;
  if (version.schema) ValidateBySchema(object, old, *version.schema, "", errors);
  CheckScale(version, object, true, errors);
  if (!version.schema) return;
  ValidateEmbedded(object, *version.schema, errors);
  if (ListTypesHold(*version.schema, old)) ValidateListTypes(object, *version.schema, errors);
}

void ValidateCustomStatus(const CustomVersion& version, Value object, Value old,
                          FieldErrors& errors) {
  if (!CheckType(version, object, errors)) return;
  const SchemaNode* status = version.schema ? version.schema->Property("status") : nullptr;
  if (status != nullptr && object.Has("status")) {
    ValidateBySchema(object["status"], old["status"], *status, "status", errors);
  }
  CheckScale(version, object, false, errors);
  if (version.schema && ListTypesHold(*version.schema, old)) {
    ValidateListTypes(object, *version.schema, errors);
  }
}

void WarnOfCustom(Value object, Value old, std::vector<std::string>& out) {
  constexpr std::string_view kStandard[] = {"orphan", "foregroundDeletion", "kubernetes"};
  std::set<std::string_view> added;
  for (Value name : object["metadata"]["finalizers"].items()) added.insert(name.AsString());
  for (Value name : old["metadata"]["finalizers"].items()) added.erase(name.AsString());
  for (std::string_view name : added) {
    for (const std::string& why : IsQualifiedName(name)) {
      out.push_back(fmt::format("metadata.finalizers: {}: {}", Quote(name), why));
    }
    if (name.find('/') != std::string_view::npos) continue;
    if (std::ranges::find(kStandard, name) != std::end(kStandard)) continue;
    const bool domain = name.find('.') != std::string_view::npos;
    out.push_back(fmt::format(
        "metadata.finalizers: {}: prefer a domain-qualified finalizer name{} to avoid accidental "
        "conflicts with other finalizer writers",
        Quote(name), domain ? " including a path (/)" : ""));
  }
}

// What the versions refer to.
struct CustomKind::Parts {
  CustomTables tables;
  std::deque<CustomVersion> versions;
  std::deque<std::string> texts;
  std::deque<std::vector<std::string_view>> lists;
  std::deque<std::vector<Subresource>> subresources;

  std::span<const std::string_view> List(Value values) {
    std::vector<std::string_view>& list = lists.emplace_back();
    for (Value value : values.items()) list.push_back(value.AsString());
    return list;
  }
  Status Add(Value crd, Value version);
};

Status CustomKind::Parts::Add(Value crd, Value version) {
  const Value spec = crd["spec"];
  const Value names = crd["status"]["acceptedNames"];
  CustomVersion& out = versions.emplace_back();
  out.group_version = {spec["group"].AsString(), version["name"].AsString()};
  out.plural = names["plural"].AsString();
  out.singular = names["singular"].AsString();
  out.kind = names["kind"].AsString();
  out.list_kind = names["listKind"].AsString();
  out.short_names = List(names["shortNames"]);
  out.categories = List(names["categories"]);
  out.verbs = kVerbs;
  out.terminating = CrdConditionTrue(crd, "Terminating");
  out.incarnation =
      fmt::format("{}/{}/{}", crd["metadata"]["uid"].AsString(),
                  crd["metadata"]["generation"].AsInt(), ToJson(crd["status"]["acceptedNames"]));
  out.namespaced = spec["scope"].AsString() == "Namespaced";
  out.message = CustomTables::Open();
  out.fields = CustomTables::Open();
  out.served = version["served"].AsBool();
  out.deprecation = Deprecation(spec, version);
  out.columns = Columns(version["additionalPrinterColumns"]);
  out.schema_source = version["schema"]["openAPIV3Schema"];
  if (out.schema_source) {
    ASSIGN_OR_RETURN(out.schema, CompileSchema(out.schema_source));
    out.fields = tables.Make(*out.schema);
  }
  std::vector<std::string_view>& selectable = lists.emplace_back();
  for (Value field : version["selectableFields"].items()) {
    selectable.push_back(WithoutDot(field["jsonPath"].AsString()));
  }
  out.selectable_fields = selectable;
  std::vector<Subresource>& parts = subresources.emplace_back();
  const Value asked = version["subresources"];
  out.has_status = static_cast<bool>(asked["status"]);
  if (out.has_status) {
    parts.push_back({"status",
                     {out.group_version.group, out.group_version.version, out.kind},
                     out.message,
                     kPartVerbs});
  }
  if (const Value scale = asked["scale"]) {
    out.scale = ScalePaths{WithoutDot(scale["specReplicasPath"].AsString()),
                           WithoutDot(scale["statusReplicasPath"].AsString()),
                           WithoutDot(scale["labelSelectorPath"].AsString())};
    parts.push_back({"scale",
                     {"autoscaling", "v1", "Scale"},
                     Registry::Builtin().FindKindMessage({"autoscaling", "v1"}, "Scale"),
                     kPartVerbs});
  }
  out.subresources = parts;
  return {};
}

CustomKind::CustomKind(Object crd) : crd_(std::move(crd)), parts_(std::make_unique<Parts>()) {}
CustomKind::~CustomKind() = default;

Result<std::shared_ptr<const CustomKind>> CustomKind::Compile(const Object& crd) {
  std::shared_ptr<CustomKind> kind(new CustomKind(crd));
  const Value root = kind->crd_.root();
  const CustomVersion* storage = nullptr;
  for (Value version : root["spec"]["versions"].items()) {
    RETURN_IF_ERROR(kind->parts_->Add(root, version));
    if (version["storage"].AsBool()) storage = &kind->parts_->versions.back();
  }
  for (CustomVersion& version : kind->parts_->versions) {
    version.storage = storage != nullptr ? storage : &version;
    kind->versions_.push_back(&version);
  }
  std::ranges::sort(kind->versions_, [](const CustomVersion* a, const CustomVersion* b) {
    return VersionComesFirst(a->group_version.version, b->group_version.version);
  });
  return kind;
}

std::string_view CustomKind::group() const { return crd_.Path("spec.group").AsString(); }
std::string_view CustomKind::plural() const {
  return crd_.Path("status.acceptedNames.plural").AsString();
}
bool CustomKind::terminating() const { return CrdConditionTrue(crd_.root(), "Terminating"); }

}  // namespace sextant::api
