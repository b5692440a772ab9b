// Compares tables and registry with what the real API server answered (tests/api/facts).
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "api/registry.h"

namespace sextant::api {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kFacts = SEXTANT_SOURCE_DIR "/tests/api/facts/";

std::string_view Text(dom::element e, std::string_view key) {
  std::string_view out;
  return e[key].get(out) == simdjson::SUCCESS ? out : std::string_view();
}

std::vector<std::string> Strings(simdjson::simdjson_result<dom::element> list) {
  std::vector<std::string> out;
  dom::array array;
  if (list.get(array) != simdjson::SUCCESS) return out;
  for (dom::element e : array) out.emplace_back(std::string_view(e));
  return out;
}

std::vector<std::string> Strings(std::span<const std::string_view> list) {
  return {list.begin(), list.end()};
}

// The documents below `folder` whose names start with `prefix`.
std::vector<std::string> Documents(std::string_view folder, std::string_view prefix) {
  std::vector<std::string> out;
  for (const auto& e :
       std::filesystem::directory_iterator(std::string(kFacts) + std::string(folder))) {
    const std::string name = e.path().filename().string();
    if (name.starts_with(prefix) && name.find("_v") != name.npos) out.push_back(e.path().string());
  }
  std::ranges::sort(out);
  return out;
}

// What this project does not serve: the aggregation layer.
bool Foreign(std::string_view name) { return name.find("apiregistration") != name.npos; }

void CompareResource(const Resource& r, dom::element e, const std::string& at) {
  EXPECT_EQ(r.kind, Text(e, "kind")) << at;
  EXPECT_EQ(r.singular, Text(e, "singularName")) << at;
  EXPECT_EQ(r.namespaced, bool(e["namespaced"])) << at;
  EXPECT_EQ(Strings(r.verbs), Strings(e["verbs"])) << at;
  EXPECT_EQ(Strings(r.short_names), Strings(e["shortNames"])) << at;
  EXPECT_EQ(Strings(r.categories), Strings(e["categories"])) << at;
  EXPECT_EQ(r.storage_version_hash, Text(e, "storageVersionHash")) << at;
}

TEST(FactsTest, DiscoveryNamesTheSameResources) {
  dom::parser parser;
  int resources = 0;
  for (const std::string& path : Documents("discovery", "api")) {
    if (Foreign(path) || path.find("aggregated") != path.npos) continue;
    const dom::element doc = parser.load(path);
    const std::string gv_text(Text(doc, "groupVersion"));
    const GroupVersion gv = GroupVersion::Of(gv_text);
    for (dom::element e : doc["resources"].get_array()) {
      const std::string name(Text(e, "name"));
      const std::string at = gv_text + " " + name;
      const size_t sub = name.find('/');
      const Resource* r = Registry::Builtin().Find(gv, name.substr(0, sub));
      ASSERT_NE(r, nullptr) << at;
      if (sub == name.npos) {
        CompareResource(*r, e, at);
        ++resources;
        continue;
      }
      const Subresource* s = r->FindSubresource(name.substr(sub + 1));
      ASSERT_NE(s, nullptr) << at;
      EXPECT_EQ(s->kind.kind, Text(e, "kind")) << at;
      const std::string_view version = Text(e, "version");
      EXPECT_EQ(s->kind.group, version.empty() ? gv.group : Text(e, "group")) << at;
      EXPECT_EQ(Strings(s->verbs), Strings(e["verbs"])) << at;
    }
  }
  EXPECT_GT(resources, 60);
}

class SchemaComparer {
 public:
  void Compare(const Message& m, dom::element schema) {
    at_ = m.name;
    dom::object properties;
    const bool some = schema["properties"].get(properties) == simdjson::SUCCESS;
    size_t known = 0;
    for (const Field& f : m.fields) known += !f.inlined;
    EXPECT_EQ(known, some ? properties.size() : 0) << at_;
    std::vector<std::string> required;
    for (const Field& f : m.fields) {
      if (!f.inlined && f.required) required.emplace_back(f.name);
    }
    auto want = Strings(schema["required"]);
    std::ranges::sort(want);
    std::ranges::sort(required);
    EXPECT_EQ(required, want) << at_;
    EXPECT_EQ(m.atomic, Text(schema, "x-kubernetes-map-type") == "atomic") << at_;
    dom::element unions;
    const bool united = schema["x-kubernetes-unions"].get(unions) == simdjson::SUCCESS;
    EXPECT_EQ(m.unions, united ? simdjson::minify(unions) : "") << at_;
    if (!some) return;
    for (auto [name, property] : properties) {
      at_ = std::string(m.name) + "." + std::string(name);
      const Field* f = m.FindField(name);
      ASSERT_NE(f, nullptr) << at_;
      CompareField(*f, property);
    }
  }

 private:
  void CompareField(const Field& f, dom::element p) {
    constexpr std::string_view kNames[] = {"", "atomic", "set", "map"};
    EXPECT_EQ(kNames[static_cast<size_t>(f.list_type)], Text(p, "x-kubernetes-list-type")) << at_;
    EXPECT_EQ(Strings(f.list_map_keys), Strings(p["x-kubernetes-list-map-keys"])) << at_;
    EXPECT_EQ(f.map_atomic, Text(p, "x-kubernetes-map-type") == "atomic") << at_;
    EXPECT_EQ(f.map_granular, Text(p, "x-kubernetes-map-type") == "granular") << at_;
    EXPECT_EQ(f.patch_merge_key, Text(p, "x-kubernetes-patch-merge-key")) << at_;
    const std::string_view strategy = Text(p, "x-kubernetes-patch-strategy");
    EXPECT_EQ(f.patch_merge, strategy.find("merge") != strategy.npos) << at_;
    EXPECT_EQ(f.patch_retain_keys, strategy.find("retainKeys") != strategy.npos) << at_;
    EXPECT_EQ(f.patch_replace, strategy == "replace") << at_;
    dom::element element = p;
    if (f.shape == Shape::kList) {
      EXPECT_EQ(Text(p, "type"), "array") << at_;
      element = p["items"];
    } else if (f.shape == Shape::kMap) {
      EXPECT_EQ(Text(p, "type"), "object") << at_;
      element = p["additionalProperties"];
    }
    EXPECT_EQ(Strings(f.enum_values), Strings(element["enum"])) << at_;
    CompareType(f, element);
    if (f.shape == Shape::kSingle) CompareDefault(f, p);
  }

  void CompareType(const Field& f, dom::element e) {
    const std::string_view ref = Reference(e);
    std::string_view type = Text(e, "type");
    switch (f.type) {
      case Type::kMessage:
        EXPECT_EQ(ref.substr(ref.rfind('/') + 1), f.message->name) << at_;
        return;
      case Type::kBool:
        EXPECT_EQ(type, "boolean") << at_;
        break;
      case Type::kInt32:
      case Type::kInt64:
      case Type::kUint32:
        EXPECT_EQ(type, "integer") << at_;
        break;
      case Type::kDouble:
        EXPECT_EQ(type, "number") << at_;
        break;
      case Type::kString:
      case Type::kBytes:
        EXPECT_EQ(type, "string") << at_;
        break;
      case Type::kStringList:
        EXPECT_EQ(type, "array") << at_;
        break;
      case Type::kAny:
        return;
      default:
        EXPECT_FALSE(ref.empty()) << at_;
        return;
    }
    EXPECT_EQ(f.format, Text(e, "format")) << at_;
  }

  // The rule that Field::default_json speaks of.
  void CompareDefault(const Field& f, dom::element p) {
    dom::element given;
    const bool some = p["default"].get(given) == simdjson::SUCCESS;
    const std::string have = some ? simdjson::minify(given) : "";
    std::string want(f.default_json);
    const bool zero = want.empty() && !f.pointer && f.presence == Presence::kAlways;
    if (zero) {
      switch (f.type) {
        case Type::kBool:
          want = "false";
          break;
        case Type::kInt32:
        case Type::kInt64:
        case Type::kUint32:
        case Type::kDouble:
          want = "0";
          break;
        case Type::kString:
          want = "\"\"";
          break;
        case Type::kMessage:
          want = "{}";
          break;
        default:
          break;  // types that describe themselves have none
      }
    }
    EXPECT_EQ(have, want) << at_;
  }

  static std::string_view Reference(dom::element e) {
    std::string_view ref = Text(e, "$ref");
    dom::array all;
    if (ref.empty() && e["allOf"].get(all) == simdjson::SUCCESS && all.size() == 1) {
      ref = Text(all.at(0), "$ref");
    }
    return ref;
  }

  std::string at_;
};

// Models of scalar types; the OpenAPI writer knows them by Type. (Nothing refers to Patch.)
const std::set<std::string> kDescribeThemselves = {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
};

TEST(FactsTest, OpenApiSaysTheSameOfEveryField) {
  dom::parser parser;
  SchemaComparer comparer;
  std::set<std::string> unknown;
  int messages = 0;
  for (const std::string& path : Documents("openapi", "api")) {
    if (Foreign(path)) continue;
    const dom::element doc = parser.load(path);
    for (auto [name, schema] : doc["components"]["schemas"].get_object()) {
      const Message* m = Registry::Builtin().FindMessage(name);
      if (m == nullptr) {
        unknown.emplace(name);
        continue;
      }
      comparer.Compare(*m, schema);
      ++messages;
    }
  }
  EXPECT_GT(messages, 500);
  EXPECT_EQ(unknown, kDescribeThemselves);
}

}  // namespace
}  // namespace sextant::api
