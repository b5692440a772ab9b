// Patches, as the API server applies them: JSON patch (RFC 6902, as evanphx/json-patch v4 reads
// it), merge patch (RFC 7386) and strategic merge patch, whose merge keys and strategies come from
// the schema tables.
//
//   ASSIGN_OR_RETURN(Object patched, ApplyPatch(current, *message,
//       {.type = PatchType::kStrategic, .patch = body, .field_validation = "Strict"}, &warnings));
//
// The result is decoded by the schema and in canonical form. Defaults, validation, and what a patch
// may not change are the pipeline's business.
// Errors: those of the API server's patch handler (400, 413, 422; 500 for a strategic patch that
// does not fit the object, as Kubernetes has it). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/schema.h"
#include "base/status.h"

namespace sextant::api {

enum class PatchType : uint8_t { kJson, kMerge, kStrategic };

inline constexpr size_t kMaxJsonPatchOperations = 10000;
inline constexpr size_t kMaxJsonPatchCopyBytes = size_t{3} << 20;

struct PatchRequest {
  PatchType type = PatchType::kMerge;
  std::string_view patch;             // JSON
  std::string_view field_validation;  // "" or "Ignore", "Warn", "Strict"
  // Where another kind is found that the patch may have made of the object.
  const Registry* registry = nullptr;  // nullptr: the built-in one
};

Result<Object> ApplyPatch(const Object& current, const Message& message,
                          const PatchRequest& request, std::vector<std::string>* warnings);

// 422: what came of a patch, `shown` as JSON, is not taken.
Error WrongPatch(std::string_view shown, std::string_view why);

// The three alone, on trees, without a schema's decoding.
Result<Object> ApplyJsonPatch(const Object& current, const Object& operations);
// `patch` must be a map.
Object ApplyMergePatch(Value current, Value patch);
Result<Object> ApplyStrategicPatch(Value current, Value patch, const Message& message);

}  // namespace sextant::api
