// Rules of CustomResourceDefinitions.
#pragma once

#include "api/conditions.h"
#include "api/rules_kit.h"

namespace sextant::api {

// One openAPIV3Schema: rules_crd_schema.cc.
void ValidateCrdSchema(Value schema, bool has_status, const At& at, FieldErrors& errors);

// Calls `visit` for every schema directly below an openAPIV3Schema.
template <typename Visit>
void EachSubschema(Value schema, const Visit& visit) {
  const auto one = [&visit](Value below) {
    if (below.IsMap()) visit(below);
  };
  for (const char* name : {"items", "additionalProperties", "not"}) one(schema[name]);
  for (const char* list : {"allOf", "anyOf", "oneOf"})
    for (Value item : schema[list].items()) one(item);
  for (auto [name, property] : schema["properties"].members()) one(property);
}

void DefaultCrd(Mut o);
void PrepareCrd(Mut o, Value old);
void ValidateCrdCreate(Value o, FieldErrors& errors);
void ValidateCrdUpdate(Value o, Value old, FieldErrors& errors);
void ValidateCrdStatus(Value o, Value old, FieldErrors& errors);
void WarnOfCrd(Value o, Value old, std::vector<std::string>& out);
bool CrdHeld(Value o);
void CrdOnDelete(Mut o);

void SetCrdCondition(Mut o, const Condition& condition, std::string_view now);

inline constexpr std::string_view kCrdCleanup = "customresourcecleanup.apiextensions.k8s.io";

}  // namespace sextant::api
