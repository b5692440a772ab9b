#include "api/custom_kind.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/conversion.h"
#include "api/json.h"
#include "api/managed_fields.h"
#include "api/rules_crd.h"
#include "api/yaml.h"

namespace sextant::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Object Yaml(std::string_view text) {
  auto documents = ParseYaml(text);
  EXPECT_TRUE(documents) << documents.error().message;
  return documents ? documents->at(0).object : Object();
}

// A CRD of one version with this schema, its names accepted. `more` goes under the version.
Object Crd(std::string_view schema, std::string_view more = "") {
  std::string text = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
)";
  text += more;
  text += "    schema:\n      openAPIV3Schema:\n";
  std::string_view rest = schema;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    text += "        " + std::string(rest.substr(0, end)) + "\n";
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  text += R"(
status:
  acceptedNames: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  storedVersions: [v1]
)";
  const Message* message = Registry::Builtin().FindKindMessage({"apiextensions.k8s.io", "v1"},
                                                               "CustomResourceDefinition");
  auto crd = DecodeTree(Yaml(text).root(), *message);
  EXPECT_TRUE(crd) << crd.error().message;
  return crd ? *crd : Object();
}

std::shared_ptr<const CustomKind> Kind(const Object& crd) {
  auto kind = CustomKind::Compile(crd);
  EXPECT_TRUE(kind) << kind.error().message;
  return kind ? *kind : nullptr;
}

Object Widget(std::string_view rest) {
  return Yaml("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: d}, " +
              std::string(rest) + "}");
}

std::vector<std::string> Texts(FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const Cause& cause : errors.causes()) texts.push_back(cause.field + ": " + cause.message);
  return texts;
}

constexpr std::string_view kSchema = R"(type: object
properties:
  spec:
    type: object
    required: [size]
    properties:
      size: {type: integer, minimum: 1, maximum: 10}
      color: {type: string, enum: [red, green], default: red}
      name: {type: string, pattern: '^[a-z]+$', maxLength: 5}
      port: {x-kubernetes-int-or-string: true}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      labels: {type: object, additionalProperties: {type: string}}
      lists: {type: object, additionalProperties: {type: array, items: {type: object, properties: {a: {type: string}}}}}
      when: {type: string, format: date-time}
      none: {type: string, nullable: true}
      parts:
        type: array
        maxItems: 3
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [id]
        items:
          type: object
          required: [id]
          properties:
            id: {type: string}
            weight: {type: number, default: 1.5}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      inner:
        type: object
        x-kubernetes-embedded-resource: true
        x-kubernetes-preserve-unknown-fields: true
      choice:
        type: object
        properties: {a: {type: string}, b: {type: string}}
        oneOf: [{required: [a]}, {required: [b]}]
  status:
    type: object
    properties:
      phase: {type: string, maxLength: 3})";

TEST(CustomKind, PrunesAndDefaults) {
  struct Case {
    std::string_view given;
    std::string_view spec;  // afterwards
    std::vector<std::string> unknown;
  };
  const Case cases[] = {
      {"spec: {size: 1}", R"({"color":"red","size":1})", {}},
      {"spec: {size: 1, colour: x, a: {b: 1}}",
       R"({"color":"red","size":1})",
       {"spec.a", "spec.colour"}},
      {"spec: {size: 1, free: {x: {z: [1]}}, labels: {a: b}}",
       R"({"color":"red","free":{"x":{"z":[1]}},"labels":{"a":"b"},"size":1})",
       {}},
      {"spec: {size: 1, lists: {k: [{a: x, b: y}]}}",
       R"({"color":"red","lists":{"k":[{"a":"x"}]},"size":1})",
       {"spec.lists.k[0].b"}},
      {"spec: {size: 1, parts: [{id: a}, {id: b, weight: 2, x: 1}]}",
       R"({"color":"red","parts":[{"id":"a","weight":1.5},{"id":"b","weight":2}],"size":1})",
       {"spec.parts[1].x"}},
      // A null that may not be is nothing, or the default.
      {"spec: {size: 1, name: null, color: null, none: null}",
       R"({"color":"red","none":null,"size":1})",
       {}},
      {"spec: {size: 1, inner: {apiVersion: v1, kind: Pod, metadata: {name: x, other: z}, more: "
       "1}}",
       R"({"color":"red","inner":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},)"
       R"("more":1},"size":1})",
       {}},
  };
  const auto kind = Kind(Crd(kSchema));
  ASSERT_TRUE(kind);
  for (const Case& c : cases) {
    std::vector<std::string> unknown;
    const Object shaped = AdmitCustom(*kind->versions()[0], Widget(c.given), &unknown);
    EXPECT_EQ(ToJson(shaped["spec"]), c.spec) << c.given;
    EXPECT_EQ(unknown, c.unknown) << c.given;
    // Once is enough.
    EXPECT_TRUE(AdmitCustom(*kind->versions()[0], shaped, nullptr).SameAs(shaped)) << c.given;
  }
}

// Messages as of kube-apiserver's OpenAPI validation.
TEST(CustomKind, ValidatesInKubernetesWords) {
  struct Case {
    std::string_view given;
    std::vector<std::string> errors;
  };
  const Case cases[] = {
      {"spec: {size: 3, name: abc, port: 80, when: '2020-01-01T00:00:00Z'}", {}},
      {"spec: {port: http}", {"spec.size: Required value"}},
      {"spec: {size: big}",
       {"spec.size: Invalid value: \"string\": spec.size in body must be of type integer: "
        "\"string\""}},
      {"spec: {size: 0}",
       {"spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"}},
      {"spec: {size: 11}",
       {"spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"}},
      {"spec: {size: 1, color: blue}",
       {"spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\""}},
      {"spec: {size: 1, name: ABC}",
       {"spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'"}},
      {"spec: {size: 1, name: abcdef}", {"spec.name: Too long: may not be more than 5 bytes"}},
      {"spec: {size: 1, port: true}",
       {"spec.port: Invalid value: \"boolean\": spec.port in body must be of type "
        "integer,string: \"boolean\""}},
      {"spec: {size: 1, when: yesterday}",
       {"spec.when: Invalid value: \"yesterday\": spec.when in body must be of type date-time: "
        "\"yesterday\""}},
      {"spec: {size: 1, tags: [a, b, a, a]}", {"spec.tags[2]: Duplicate value: \"a\""}},
      {"spec: {size: 1, parts: [{id: a}, {id: a}]}",
       {"spec.parts[1]: Duplicate value: {\"id\":\"a\"}"}},
      {"spec: {size: 1, parts: [{id: a}, {id: b}, {id: c}, {id: d}]}",
       {"spec.parts: Too many: 4: must have at most 3 items"}},
      {"spec: {size: 1, inner: {kind: Pod}}", {"spec.inner.apiVersion: Required value"}},
      {"spec: {size: 1, choice: {a: x, b: z}}",
       {"<nil>: Invalid value: \"\": \"spec.choice\" must validate one and only one schema "
        "(oneOf). Found 2 valid alternatives"}},
      {"spec: {size: 1, labels: {a: 1}}",
       {"spec.labels.a: Invalid value: \"integer\": spec.labels.a in body must be of type string: "
        "\"integer\""}},
      {"spec: 5",
       {"spec: Invalid value: \"integer\": spec in body must be of type object: \"integer\""}},
  };
  const auto kind = Kind(Crd(kSchema));
  ASSERT_TRUE(kind);
  for (const Case& c : cases) {
    FieldErrors errors;
    ValidateCustom(*kind->versions()[0], Widget(c.given).root(), {}, errors);
    EXPECT_EQ(Texts(errors), c.errors) << c.given;
  }
}

// Bounds and values as Go's %v prints them; whole numbers are measured with whole bounds.
TEST(CustomKind, NumbersPrintAsInGo) {
  struct Case {
    std::string_view schema;
    std::string_view given;
    std::vector<std::string> errors;
  };
  const Case cases[] = {
      {"{type: number, minimum: 1}",
       "1e-310",
       {"a: Invalid value: 1e-310: a in body should be greater than or equal to 1"}},
      {"{type: number, enum: [1]}",
       "1e-310",
       {"a: Unsupported value: 1e-310: supported values: \"1\""}},
      {"{type: number, maximum: 1234567.0}",
       "1234567.5",
       {"a: Invalid value: 1.2345675e+06: a in body should be less than or equal to 1.234567e+06"}},
      {"{type: number, multipleOf: 0.1234567}",
       "0.5",
       {"a: Invalid value: 0.5: a in body should be a multiple of 0.1234567"}},
      {"{type: integer, minimum: 1.5}", "1", {}},
      {"{type: integer, maximum: 1e300}", "1", {}},
      {"{type: integer, multipleOf: 1e300}",
       "1",
       {"a: Invalid value: 1: a in body should be a multiple of 9223372036854775807"}},
      {"{type: integer, multipleOf: 0.5}",
       "1",
       {"a: Invalid value: 0: factor MultipleOf declared for a must be positive: 0"}},
      {"{type: integer, maximum: 9007199254740992}",
       "9007199254740993",
       {"a: Invalid value: 9007199254740993: a in body should be less than or equal to "
        "9007199254740992"}},
  };
  for (const Case& c : cases) {
    const auto kind = Kind(Crd("type: object\nproperties: {a: " + std::string(c.schema) + "}"));
    ASSERT_TRUE(kind);
    FieldErrors errors;
    const Object widget = Widget("a: " + std::string(c.given));
    ValidateCustom(*kind->versions()[0], widget.root(), {}, errors);
    EXPECT_EQ(Texts(errors), c.errors) << c.schema << " " << c.given;
  }
}

TEST(CustomKind, WhatDidNotChangeIsNotBlamed) {
  const auto kind = Kind(Crd(kSchema));
  ASSERT_TRUE(kind);
  const CustomVersion& v1 = *kind->versions()[0];
  const Object old = Widget("spec: {size: 20, name: abc, parts: [{id: a, weight: x}]}");
  struct Case {
    std::string_view given;
    std::vector<std::string> errors;
  };
  const Case cases[] = {
      {"spec: {size: 20, name: abd, parts: [{id: a, weight: x}]}", {}},
      {"spec: {size: 20, name: abc, parts: [{id: b, weight: 1}, {id: a, weight: x}]}", {}},
      {"spec: {size: 21, name: abc}",
       {"spec.size: Invalid value: 21: spec.size in body should be less than or equal to 10"}},
  };
  for (const Case& c : cases) {
    FieldErrors errors;
    ValidateCustom(v1, Widget(c.given).root(), old.root(), errors);
    EXPECT_EQ(Texts(errors), c.errors) << c.given;
  }
}

// An item is what it was if all keys agree, wherever it stands; of other lists nothing is.
TEST(CustomKind, ItemsAreKnownByAllTheirKeys) {
  constexpr std::string_view kItems =
      "items: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer}, "
      "v: {type: string, maxLength: 1}}}";
  struct Case {
    std::string_view type;
    std::string_view was;
    std::string_view given;
    std::vector<std::string> errors;
  };
  const std::string too_long = "Too long: may not be more than 1 bytes";
  const std::string_view map = "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a], ";
  const Case cases[] = {
      {map, "{a: x, b: 1, v: xx}, {a: x, b: 2}", "{a: x, b: 2}, {b: 1, v: xx, a: x}", {}},
      {map, "{a: x, b: 1, v: xx}", "{a: x, b: 2, v: xx}", {"l[0].v: " + too_long}},
      {map, "{a: x, v: xx}", "{a: x, b: 1}, {a: x, v: xx}", {}},
      {map, "{a: x, v: xx}", "{a: x, b: 0, v: xx}", {"l[0].v: " + too_long}},
      {"", "{a: x, v: xx}", "{a: x, v: xx}, {a: x}", {"l[0].v: " + too_long}},
      {map,
       "{a: x}",
       "{a: x, b: 1}, {a: x}, {b: 1, a: x}",
       {"l[2]: Duplicate value: {\"a\":\"x\",\"b\":1}"}},
  };
  for (const Case& c : cases) {
    const auto kind = Kind(
        Crd(fmt::format("type: object\nproperties: {{l: {{type: array, {}{}}}}}", c.type, kItems)));
    ASSERT_TRUE(kind);
    FieldErrors errors;
    ValidateCustom(*kind->versions()[0], Widget(fmt::format("l: [{}]", c.given)).root(),
                   Widget(fmt::format("l: [{}]", c.was)).root(), errors);
    EXPECT_EQ(Texts(errors), c.errors) << c.given;
  }
}

// What lies at the root under a name of its own has a dot before it in Kubernetes' messages.
TEST(CustomKind, PathsOfMapsWithinStatus) {
  const auto kind = Kind(
      Crd("type: object\nproperties: {status: {type: object, additionalProperties: {type: array, "
          "items: {type: string}}}}",
          "    subresources: {status: {}}\n"));
  ASSERT_TRUE(kind);
  FieldErrors errors;
  ValidateCustomStatus(*kind->versions()[0], Widget("status: {x: [a, 1]}").root(),
                       Widget("status: {}").root(), errors);
  EXPECT_THAT(Texts(errors),
              ElementsAre("status.x[1]: Invalid value: \"integer\": .x[1] in body must be of type "
                          "string: \"integer\""));
}

TEST(CustomKind, StatusIsValidatedByItself) {
  const auto kind = Kind(Crd(kSchema, "    subresources: {status: {}}\n"));
  ASSERT_TRUE(kind);
  FieldErrors errors;
  ValidateCustomStatus(*kind->versions()[0], Widget("spec: {}, status: {phase: Ready}").root(),
                       Widget("spec: {}").root(), errors);
  EXPECT_THAT(Texts(errors), ElementsAre("status.phase: Too long: may not be more than 3 bytes"));
}

TEST(CustomKind, ScaleColumnsAndDeprecation) {
  const auto kind = Kind(Crd(kSchema, R"(    deprecated: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    selectableFields: [{jsonPath: .spec.color}]
)"));
  ASSERT_TRUE(kind);
  const CustomVersion& v1 = *kind->versions()[0];
  EXPECT_EQ(v1.deprecation, "example.com/v1 Widget is deprecated");
  ASSERT_TRUE(v1.scale);
  EXPECT_EQ(v1.scale->spec, "spec.size");
  EXPECT_EQ(v1.scale->selector, "status.selector");
  EXPECT_TRUE(v1.has_status);
  ASSERT_EQ(v1.subresources.size(), 2u);
  EXPECT_EQ(v1.subresources[1].kind.kind, "Scale");
  EXPECT_THAT(v1.selectable_fields, ElementsAre("spec.color"));
  const Object object = Widget(
      "spec: {size: 4}, status: {conditions: [{type: A, status: x}, {type: Ready, status: up}]}");
  ASSERT_EQ(v1.columns.size(), 2u);
  EXPECT_EQ(v1.columns[0].path.Find(object.root()).at(0).AsInt(), 4);
  EXPECT_EQ(v1.columns[1].path.Find(object.root()).at(0).AsString(), "up");
  FieldErrors errors;
  ValidateCustom(v1, Widget("spec: {size: -1}").root(), {}, errors);
  EXPECT_THAT(Texts(errors),
              ElementsAre("spec.size: Invalid value: -1: spec.size in body should be greater than "
                          "or equal to 1",
                          ".spec.size: Invalid value: -1: should be a non-negative integer"));
}

TEST(CustomKind, AppliersOwnItemsOfKeyedLists) {
  const auto kind = Kind(Crd(kSchema));
  ASSERT_TRUE(kind);
  const Message& fields = FieldsOfKind(*kind->versions()[0]);
  const ManagerInfo a{.manager = "a", .api_version = "example.com/v1"};
  const ManagerInfo b{.manager = "b", .api_version = "example.com/v1"};
  const Object first = Widget("spec: {size: 1, parts: [{id: x, weight: 1}], tags: [p]}");
  auto made = ApplyFields(a, false, fields, Object(), first.root());
  ASSERT_TRUE(made) << made.error().message;
  const Object second = Widget("spec: {parts: [{id: z, weight: 2}], tags: [q]}");
  auto both = ApplyFields(b, false, fields, *made, second.root());
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(ToJson((*both)["spec"]["parts"]), R"([{"id":"x","weight":1},{"id":"z","weight":2}])");
  EXPECT_EQ(ToJson((*both)["spec"]["tags"]), R"(["p","q"])");
  const Object wrong = Widget("spec: {size: 2}");
  auto refused = ApplyFields(b, false, fields, *both, wrong.root());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 409);
  const Object unknown = Widget("spec: {sise: 2}");
  auto undeclared = ApplyFields(b, false, fields, *both, unknown.root());
  ASSERT_FALSE(undeclared);
  EXPECT_THAT(undeclared.error().message,
              testing::HasSubstr(".spec.sise: field not declared in schema"));
}

TEST(CustomKind, VersionsDifferInApiVersionAndWhatTheyPrune) {
  Object crd = Crd("type: object\nproperties: {a: {type: string}, b: {type: string}}");
  Editor edit(crd);
  const Mut second = edit["spec"]["versions"].Append();
  second.Set(
      Yaml("{name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: "
           "object, properties: {a: {type: string}}}}}"));
  const auto kind = Kind(std::move(edit).Finish());
  ASSERT_TRUE(kind);
  ASSERT_EQ(kind->versions().size(), 2u);
  EXPECT_EQ(kind->versions()[0]->group_version.version, "v1");
  const CustomVersion& beta = *kind->versions()[1];
  const Object stored = ToStored(Widget("a: x, b: z"), *kind->versions()[0]);
  const Object served = FromStored(stored, beta);
  EXPECT_EQ(served.api_version(), "example.com/v1beta1");
  EXPECT_EQ(served["a"].AsString(), "x");
  EXPECT_FALSE(served["b"]);
  EXPECT_EQ(ToStored(served, beta).api_version(), "example.com/v1");
}

TEST(CustomKind, VersionsComeInKubernetesOrder) {
  std::vector<std::string_view> versions = {"foo1", "v1alpha1", "v2",  "v1beta2",
                                            "v10",  "v1",       "bar", "v11beta1"};
  std::ranges::sort(versions, VersionComesFirst);
  EXPECT_THAT(versions,
              ElementsAre("v10", "v2", "v1", "v11beta1", "v1beta2", "v1alpha1", "bar", "foo1"));
}

// --- CRDs themselves -----------------------------------------------------------------------------

std::vector<std::string> CrdErrors(const Object& crd) {
  FieldErrors errors;
  ValidateCrdCreate(crd.root(), errors);
  return Texts(errors);
}

TEST(CrdRules, SchemasMustBeStructural) {
  struct Case {
    std::string_view schema;
    std::vector<std::string> errors;
  };
  const std::string at = "spec.validation.openAPIV3Schema";
  const Case cases[] = {
      {"type: object", {}},
      {"type: object\nproperties: {a: {}}",
       {at + ".properties[a].type: Required value: must not be empty for specified object fields"}},
      {"type: string", {at + ".type: Invalid value: \"string\": must be object at the root"}},
      {"properties: {a: {type: string}}",
       {at + ".type: Required value: must not be empty at the root"}},
      {"type: object\nproperties: {a: {type: array}}",
       {at + ".properties[a].items: Required value: must be specified"}},
      {"type: object\nproperties: {a: {type: wrong}}",
       {at + ".properties[a].type: Unsupported value: \"wrong\": supported values: \"array\", "
             "\"boolean\", \"integer\", \"number\", \"object\", \"string\""}},
      {"type: object\nanyOf: [{properties: {b: {type: string}}}]",
       {at + ".anyOf[0].properties[b].type: Forbidden: must be empty to be structural",
        at + ".properties[b]: Required value: because it is defined in " + at +
            ".anyOf[0].properties[b]"}},
      {"type: object\nproperties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, "
       "{type: string}]}}",
       {}},
      {"type: object\nadditionalProperties: true",
       {at + ".additionalProperties: Forbidden: must not be used at the root"}},
      {"type: object\nproperties: {metadata: {type: object, properties: {labels: {type: object}}}}",
       {at + ".properties[metadata]: Forbidden: must not specify anything other than name and "
             "generateName, but metadata is implicitly specified"}},
      {"type: object\nproperties: {a: {type: string, pattern: '('}}",
       {at +
        ".properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but "
        "isn't: error parsing regexp: missing closing ): `(`"}},
      {"type: object\nproperties: {a: {type: integer, default: x}}",
       {at + ".properties[a].default: Invalid value: \"string\":  in body must be of type integer: "
             "\"string\""}},
      {"type: object\nproperties: {a: {type: object, default: {b: 1}}}",
       {at + ".properties[a].default: Invalid value: {\"b\":1}: must not have unknown fields"}},
      {"type: object\nproperties: {a: {type: array, items: {type: object, properties: {k: {type: "
       "string}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}}",
       {at + ".properties[a].items.properties[k].default: Required value: this property is in "
             "x-kubernetes-list-map-keys, so it must have a default or be a required property"}},
      {"type: object\nproperties: {a: {type: string, uniqueItems: true}}",
       {at + ".properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the "
             "runtime complexity becomes quadratic"}},
      {"type: object\nproperties: {a: {type: string, x-kubernetes-list-type: set}}",
       {at + ".properties[a].type: Invalid value: \"string\": must be array if "
             "x-kubernetes-list-type is specified"}},
  };
  for (const Case& c : cases) EXPECT_EQ(CrdErrors(Crd(c.schema)), c.errors) << c.schema;
}

TEST(CrdRules, NamesVersionsAndColumns) {
  struct Case {
    const char* path;
    std::string_view value;  // YAML
    std::vector<std::string> errors;
  };
  const Case cases[] = {
      {"metadata.name",
       "gadgets.example.com",
       {"metadata.name: Invalid value: \"gadgets.example.com\": must be "
        "spec.names.plural+\".\"+spec.group"}},
      {"spec.scope",
       "Everywhere",
       {"spec.scope: Unsupported value: \"Everywhere\": supported values: \"Cluster\", "
        "\"Namespaced\""}},
      {"spec.names.kind", "''", {"spec.names.kind: Required value"}},
      {"spec.names.listKind",
       "Widget",
       {"spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"}},
      {"status.storedVersions",
       "[v1, v0]",
       {"status.storedVersions[1]: Invalid value: \"v0\": missing from spec.versions; v0 was "
        "previously a storage version, and must remain in spec.versions until a storage migration "
        "ensures no data remains persisted in v0 and removes v0 from status.storedVersions"}},
      {"spec.preserveUnknownFields",
       "true",
       {"spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
        "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"}},
      {"spec.conversion",
       "{strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}",
       {"spec.conversion.webhookClientConfig: Required value: required when strategy is set to "
        "Webhook"}},
  };
  for (const Case& c : cases) {
    Editor edit(Crd("type: object"));
    edit.Root().Path(c.path).Set(Yaml(c.value));
    EXPECT_EQ(CrdErrors(std::move(edit).Finish()), c.errors) << c.path;
  }
  EXPECT_THAT(CrdErrors(Crd("type: object",
                            "    additionalPrinterColumns:\n"
                            "    - {name: A, type: text, jsonPath: spec.a}\n")),
              ElementsAre("spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be "
                          "one of boolean,date,integer,number,string",
                          "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.a\": "
                          "must be a simple json path starting with ."));
}

TEST(CrdRules, HostileSchemasAreBounded) {
  std::string deep = "{type: object}";
  for (int i = 0; i < 70; ++i) deep = "{type: object, properties: {a: " + deep + "}}";
  EXPECT_THAT(CrdErrors(Crd(deep)),
              ElementsAre("spec.validation.openAPIV3Schema: Invalid value: \"\": a schema has at "
                          "most 60 levels"));
  std::string wide = "type: object\nproperties:\n";
  for (int i = 0; i < 10'001; ++i) wide += "  p" + std::to_string(i) + ": {type: string}\n";
  EXPECT_THAT(CrdErrors(Crd(wide)),
              ElementsAre("spec.validation.openAPIV3Schema: Invalid value: \"\": an object has at "
                          "most 10000 properties"));
  std::string patterns = "type: object\nproperties:\n";
  for (int i = 0; i < 400; ++i) {
    patterns += "  p" + std::to_string(i) + ": {type: string, pattern: 'a{1000}b{1000}c{1000}'}\n";
  }
  EXPECT_THAT(CrdErrors(Crd(patterns)),
              ElementsAre("spec.validation.openAPIV3Schema: Invalid value: \"\": the patterns of a "
                          "schema are too large together"));
}

TEST(CrdRules, SaysWhatItDoesNotDo) {
  const Object crd = Crd(
      "type: object\nproperties: {a: {type: string, format: odd, x-kubernetes-validations: [{rule: "
      "'self != \"\"'}]}}");
  EXPECT_THAT(CrdErrors(crd), IsEmpty());
  std::vector<std::string> warnings;
  WarnOfCrd(crd.root(), {}, warnings);
  EXPECT_THAT(warnings,
              ElementsAre("unrecognized format \"odd\"",
                          "1 x-kubernetes-validations rule of widgets.example.com is stored but "
                          "not evaluated by this server"));
}

// --- JSONPath ------------------------------------------------------------------------------------

TEST(JsonPath, FindsWhatClientGoFinds) {
  const Object object = Yaml(
      "{a: {b: [{id: x, v: 1}, {id: two, v: 2}, {id: z, v: 3}], 'c.d': 5}, e: null, "
      "labels: {'example.com/role': gpu}}");
  struct Case {
    std::string_view path;
    std::string_view found;
  };
  const Case cases[] = {{".a.b[0].id", R"(["x"])"},
                        {".a.b[-1].id", R"(["z"])"},
                        {".a.b[*].v", "[1,2,3]"},
                        {".a.b[0:2].v", "[1,2]"},
                        {".a.b[?(@.id==\"two\")].v", "[2]"},
                        {".a.b[?(@.v>1)].id", R"(["two","z"])"},
                        {".a['c.d']", "[5]"},
                        {".a.c\\.d", "[5]"},
                        {".labels.example\\.com/role", R"(["gpu"])"},
                        {"..v", "[1,2,3]"},
                        {".missing.x", "[]"},
                        {".e", "[null]"}};
  for (const Case& c : cases) {
    auto path = JsonPath::Parse(c.path);
    ASSERT_TRUE(path) << c.path << ": " << path.error().message;
    std::string found = "[";
    for (Value v : path->Find(object.root())) found += (found.size() > 1 ? "," : "") + ToJson(v);
    EXPECT_EQ(found + "]", c.found) << c.path;
  }
  for (std::string_view wrong : {".a[", ".a[?(x)]", ".a[b]", ".a{}", ".a['b"}) {
    EXPECT_FALSE(JsonPath::Parse(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace sextant::api
