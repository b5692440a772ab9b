#include "base/status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"

namespace sextant {
namespace {

Error Of(int code, std::string_view reason, std::string message) {
  Error error;
  error.code = code;
  error.reason = reason;
  error.message = std::move(message);
  return error;
}

Error Of(int code, std::string_view reason, const GroupResource& gr, std::string_view name,
         std::string message) {
  Error error = Of(code, reason, std::move(message));
  error.group = gr.group;
  error.kind = gr.resource;
  error.name = name;
  error.empty_details = true;
  return error;
}

// The distinct "field: message" texts: one stands alone, several in brackets.
std::string Aggregate(const std::vector<Cause>& causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) {
    std::string text = fmt::format("{}: {}", cause.field, cause.message);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  if (texts.size() == 1) return texts[0];
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace

Error NotFound(const GroupResource& gr, std::string_view name) {
  return Of(404, "NotFound", gr, name, fmt::format("{} {} not found", gr.ToString(), Quote(name)));
}

Error AlreadyExists(const GroupResource& gr, std::string_view name) {
  return Of(409, "AlreadyExists", gr, name,
            fmt::format("{} {} already exists", gr.ToString(), Quote(name)));
}

Error Conflict(const GroupResource& gr, std::string_view name, std::string_view why) {
  return Of(
      409, "Conflict", gr, name,
      fmt::format("Operation cannot be fulfilled on {} {}: {}", gr.ToString(), Quote(name), why));
}

Error Forbidden(const GroupResource& gr, std::string_view name, std::string_view why) {
  std::string message;
  if (gr.group.empty() && gr.resource.empty()) {
    message = fmt::format("forbidden: {}", why);
  } else if (name.empty()) {
    message = fmt::format("{} is forbidden: {}", gr.ToString(), why);
  } else {
    message = fmt::format("{} {} is forbidden: {}", gr.ToString(), Quote(name), why);
  }
  return Of(403, "Forbidden", gr, name, std::move(message));
}

Error Invalid(std::string_view group, std::string_view kind, std::string_view name,
              std::vector<Cause> causes) {
  const GroupResource group_kind{std::string(group), std::string(kind)};
  std::string message = fmt::format("{} {} is invalid", group_kind.ToString(), Quote(name));
  if (!causes.empty()) message += ": " + Aggregate(causes);
  Error error = Of(422, "Invalid", group_kind, name, std::move(message));
  error.causes = std::move(causes);
  return error;
}

Error BadRequest(std::string_view message) { return Of(400, "BadRequest", std::string(message)); }

Error Unauthorized() { return Of(401, "Unauthorized", "Unauthorized"); }

Error Expired(std::string_view message) { return Of(410, "Expired", std::string(message)); }

Error Gone(std::string_view message) { return Of(410, "Gone", std::string(message)); }

Error MethodNotAllowed() {
  return Of(405, "MethodNotAllowed", GroupResource{}, "",
            "the server does not allow this method on the requested resource");
}

Error UnsupportedMediaType(std::string_view message) {
  return Of(415, "UnsupportedMediaType", std::string(message));
}

Error NotAcceptable(std::string_view message) {
  return Of(406, "NotAcceptable", std::string(message));
}

Error RequestEntityTooLarge(std::string_view message) {
  return Of(413, "RequestEntityTooLarge", fmt::format("Request entity too large: {}", message));
}

Error TooManyRequests(std::string_view message, int retry_after_s) {
  Error error = Of(429, "TooManyRequests", std::string(message));
  error.retry_after_s = retry_after_s;
  error.empty_details = true;
  return error;
}

Error ServiceUnavailable(std::string_view message) {
  return Of(503, "ServiceUnavailable", std::string(message));
}

Error InternalError(std::string_view message) {
  Error error = Of(500, "InternalError", fmt::format("Internal error occurred: {}", message));
  error.causes.push_back({.reason = "", .message = std::string(message), .field = ""});
  return error;
}

Error Timeout(std::string_view message, int retry_after_s) {
  Error error = Of(504, "Timeout", fmt::format("Timeout: {}", message));
  error.retry_after_s = retry_after_s;
  error.empty_details = true;
  return error;
}

Error PathNotFound() {
  return Of(404, "NotFound", GroupResource{}, "",
            "the server could not find the requested resource");
}

Error UsageError(std::string_view message) { return Of(400, "", std::string(message)); }

}  // namespace sextant
