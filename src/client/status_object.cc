#include "client/status_object.h"

#include <fmt/format.h>

#include "api/json.h"
#include "base/quote.h"

namespace sextant::client {
namespace {

constexpr size_t kMaxQuotedBody = 1024;
constexpr size_t kMaxCauses = 1000;

struct Words {
  int code;
  const char* reason;
  const char* message;  // null: what the server says
};

constexpr Words kWords[] = {
    {400, "BadRequest", "the server rejected our request for an unknown reason"},
    {401, "Unauthorized", "the server has asked for the client to provide credentials"},
    {403, "Forbidden", nullptr},
    {404, "NotFound", "the server could not find the requested resource"},
    {405, "MethodNotAllowed", "the server does not allow this method on the requested resource"},
    {406, "NotAcceptable",
     "the server was unable to respond with a content type that the client supports"},
    {409, "Conflict", "the server reported a conflict"},
    {415, "UnsupportedMediaType", nullptr},
    {422, "Invalid", "the server rejected our request due to an error in our request"},
    {429, "TooManyRequests",
     "the server has received too many requests and has asked us to try again later"},
    {503, "ServiceUnavailable", "the server is currently unable to handle the request"},
    {504, "Timeout",
     "the server was unable to return a response in the time allotted, but may still be processing "
     "the request"},
};

}  // namespace

bool IsStatus(api::Value object) {
  return object["kind"].AsString() == "Status" && object["apiVersion"].AsString() == "v1";
}

Error ErrorFromStatus(api::Value status, int http_status) {
  Error error;
  const int64_t code = status["code"].AsInt();
  error.code = code >= 100 && code < 600 ? static_cast<int>(code) : http_status;
  error.reason = status["reason"].AsString();
  error.message = status["message"].AsString();
  const api::Value details = status["details"];
  error.name = details["name"].AsString();
  error.group = details["group"].AsString();
  error.kind = details["kind"].AsString();
  error.uid = details["uid"].AsString();
  const int64_t retry = details["retryAfterSeconds"].AsInt();
  error.retry_after_s = static_cast<int>(std::clamp<int64_t>(retry, 0, 86'400));
  for (api::Value cause : details["causes"].items()) {
    if (error.causes.size() == kMaxCauses) break;
    error.causes.push_back({std::string(cause["reason"].AsString()),
                            std::string(cause["message"].AsString()),
                            std::string(cause["field"].AsString())});
  }
  return error;
}

Error ErrorFromAnswer(int http_status, std::string_view method, std::string_view body) {
  if (const Result<api::Object> object = api::ParseJson(body); object && IsStatus(object->root()))
    return ErrorFromStatus(object->root(), http_status);
  Error error;
  error.code = http_status;
  const std::string_view said = body.substr(0, kMaxQuotedBody);
  for (const Words& words : kWords) {
    if (words.code != http_status) continue;
    error.reason = http_status == 409 && method == "POST" ? "AlreadyExists" : words.reason;
    error.message = words.message ? std::string(words.message) : std::string(said);
    return error;
  }
  if (http_status >= 500) {
    error.reason = "InternalError";
    error.message = fmt::format(
        "an error on the server ({}) has prevented the request from succeeding", Quote(said));
  } else {
    error.message = fmt::format(
        "the server responded with the status code {} but did not return more information",
        http_status);
  }
  return error;
}

}  // namespace sextant::client
