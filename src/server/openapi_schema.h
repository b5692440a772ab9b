// OpenAPI v3 schemas of messages, from the schema tables. Pure; any thread.
#pragma once

#include <set>
#include <string>

#include "api/document.h"
#include "api/schema.h"

namespace sextant::server {

inline constexpr std::string_view kSchemaPrefix = "#/components/schemas/";

// Writes the schema of `message` and notes in `needed` what it refers to (model names).
void WriteSchema(const api::Message& message, api::Mut out, std::set<std::string>& needed);
// The models that are no messages: Time, Quantity, IntOrString, RawExtension, ... False if unknown.
bool WriteSpecialSchema(std::string_view model, api::Mut out);

}  // namespace sextant::server
