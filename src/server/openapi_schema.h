// OpenAPI v3 schemas of messages, from the schema tables. Pure; any thread.
#pragma once

#include <set>
#include <string>

#include "api/custom_kind.h"
#include "api/document.h"
#include "api/schema.h"

namespace sextant::server {

inline constexpr std::string_view kSchemaPrefix = "#/components/schemas/";
inline constexpr std::string_view kMetaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1.";

// Writes the schema of `message` and notes in `needed` what it refers to (model names).
void WriteSchema(const api::Message& message, api::Mut out, std::set<std::string>& needed);

// Custom resources: "com.example.v1.Widget", its schema and that of its list.
std::string CustomModel(const api::GroupVersion& gv, std::string_view kind);
void WriteCustomSchema(const api::CustomVersion& version, api::Mut out,
                       std::set<std::string>& needed);
void WriteCustomListSchema(const api::CustomVersion& version, api::Mut out,
                           std::set<std::string>& needed);
// The models that are no messages: Time, Quantity, IntOrString, RawExtension, ... False if unknown.
bool WriteSpecialSchema(std::string_view model, api::Mut out);

}  // namespace sextant::server
