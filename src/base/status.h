// Errors as values, shaped like Kubernetes' metav1.Status (DESIGN, law 10).
//
//   Result<Object> Get(...);
//   ASSIGN_OR_RETURN(Object pod, Get(...));
//
// An Error travels unchanged from the store to the command line and to the HTTP response body.
// Codes are HTTP status codes, reasons are metav1.StatusReason values; both come from
// k8s.io/apimachinery (pkg/apis/meta/v1/types.go, pkg/api/errors).
// Errors are plain data: copyable, no threads involved.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant {

// One metav1.StatusCause: what is wrong with one field.
struct Cause {
  std::string reason;  // metav1.CauseType, for example "FieldValueInvalid"
  std::string message;
  std::string field;  // path in the request, for example "spec.containers[0].name"

  bool operator==(const Cause&) const = default;
};

struct Error {
  int code = 500;       // HTTP status code
  std::string reason;   // metav1.StatusReason, for example "NotFound"; may be empty
  std::string message;  // one sentence for a person
  std::string name;     // details.name
  std::string group;    // details.group
  std::string kind;     // details.kind (the API server puts the resource name here)
  std::string uid;      // details.uid
  std::vector<Cause> causes;
  int retry_after_s = 0;       // details.retryAfterSeconds; 0: none
  bool empty_details = false;  // the body carries "details": {} even if nothing above is set
  // What the Warning headers of the refusal say; no part of the Status itself.
  std::vector<std::string> warnings;

  bool Is(std::string_view want) const { return reason == want; }
  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> Fail(Error error) { return std::unexpected(std::move(error)); }

// The constructors below give the texts of apimachinery's pkg/api/errors. `resource` is the plural
// with its group as GroupResource prints it: "pods", "deployments.apps".
struct GroupResource {
  std::string group;
  std::string resource;
  std::string ToString() const { return group.empty() ? resource : resource + "." + group; }
};

Error NotFound(const GroupResource& gr, std::string_view name);
Error AlreadyExists(const GroupResource& gr, std::string_view name);
Error Conflict(const GroupResource& gr, std::string_view name, std::string_view why);
Error Forbidden(const GroupResource& gr, std::string_view name, std::string_view why);
// `kind` is the kind alone ("Deployment"); the text prints it with its group ("Deployment.apps").
// A cause's message is what Go's field.Error.ErrorBody prints: `Invalid value: "x": must be ...`.
Error Invalid(std::string_view group, std::string_view kind, std::string_view name,
              std::vector<Cause> causes);
Error BadRequest(std::string_view message);
Error Unauthorized();
Error Expired(std::string_view message);  // 410 "Expired"
Error Gone(std::string_view message);     // 410 "Gone"
Error MethodNotAllowed();                 // of a path that is served with other methods
Error UnsupportedMediaType(std::string_view message);
Error NotAcceptable(std::string_view message);
Error RequestEntityTooLarge(std::string_view message);
Error TooManyRequests(std::string_view message, int retry_after_s);
Error ServiceUnavailable(std::string_view message);
Error InternalError(std::string_view message);
Error Timeout(std::string_view message, int retry_after_s);
// A 404 for a path that no handler serves.
Error PathNotFound();

// A mistake in what the user gave outside the API (flags, files): printed after "error: ".
Error UsageError(std::string_view message);

}  // namespace sextant

// Not for use around co_await: a macro of several statements.
#define SEXTANT_CONCAT_INNER(a, b) a##b
#define SEXTANT_CONCAT(a, b) SEXTANT_CONCAT_INNER(a, b)
#define RETURN_IF_ERROR(expr)                                    \
  do {                                                           \
    if (auto sextant_status = (expr); !sextant_status)           \
      return std::unexpected(std::move(sextant_status).error()); \
  } while (false)
#define ASSIGN_OR_RETURN_IMPL(tmp, decl, expr)              \
  auto tmp = (expr);                                        \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = *std::move(tmp)
#define ASSIGN_OR_RETURN(decl, expr) \
  ASSIGN_OR_RETURN_IMPL(SEXTANT_CONCAT(sextant_result_, __LINE__), decl, expr)
