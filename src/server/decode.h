// From request bodies to documents: content types, apiVersion and kind checks, strict field
// validation, in the API server's words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/rules.h"
#include "net/http.h"
#include "server/operation.h"

namespace sextant::server {

// The message that a request's body speaks: the subresource's kind or the resource's own; for
// delete and deletecollection DeleteOptions.
struct BodyKind {
  api::GroupVersionKind gvk;
  const api::Message* message = nullptr;
  // DeleteOptions: errors come bare, and unknown fields are not minded.
  bool options = false;
};
BodyKind BodyKindOf(const Operation& op);

// "All" is the only dry run there is.
void CheckDryRun(const std::vector<std::string>& values, api::FieldErrors& errors);
// fieldManager, dryRun and fieldValidation of any write.
void ValidateWriteOptions(const Options& options, api::FieldErrors& errors);

// Fills op.body, or op.patch and op.patch_type, from the request, and op.warnings when
// fieldValidation is Warn. An absent body is left absent for delete.
Status DecodeBody(const net::Request& request, Operation& op);

}  // namespace sextant::server
