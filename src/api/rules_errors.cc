// The words of apimachinery's util/validation/field.
#include <fmt/format.h>

#include <algorithm>

#include "api/go_values.h"
#include "api/json.h"
#include "api/rules.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

std::string WithDetail(std::string text, const std::string& detail) {
  if (!detail.empty()) text += ": " + detail;
  return text;
}

// field.Error prints the bad value: strings quoted, numbers and booleans bare, the rest as JSON.
std::string BadValue(Value value) {
  switch (value.kind()) {
    case Kind::kString:
      return Quote(value.AsString());
    case Kind::kAbsent:
    case Kind::kNull:
      return "null";
    case Kind::kDouble:
      return GoFloat(value.AsDouble());
    default:
      return ToJson(value);
  }
}

}  // namespace

void FieldErrors::Required(std::string path, std::string detail) {
  causes_.push_back({"FieldValueRequired", WithDetail("Required value", detail), std::move(path)});
}

void FieldErrors::Invalid(std::string path, Value value, std::string detail) {
  causes_.push_back({"FieldValueInvalid", WithDetail("Invalid value: " + BadValue(value), detail),
                     std::move(path)});
}

void FieldErrors::InvalidText(std::string path, std::string_view value, std::string detail) {
  causes_.push_back(
      {"FieldValueInvalid", WithDetail("Invalid value: " + Quote(value), detail), std::move(path)});
}

void FieldErrors::InvalidRaw(std::string path, std::string_view printed, std::string detail) {
  causes_.push_back({"FieldValueInvalid",
                     WithDetail(fmt::format("Invalid value: {}", printed), detail),
                     std::move(path)});
}

void FieldErrors::InvalidShape(std::string path, std::string detail) {
  causes_.push_back({"FieldValueInvalid", WithDetail("Invalid value", detail), std::move(path)});
}

void FieldErrors::NotSupported(std::string path, std::string_view value,
                               std::vector<std::string> valid) {
  NotSupportedRaw(std::move(path), Quote(value), std::move(valid));
}

void FieldErrors::NotSupportedRaw(std::string path, std::string_view printed,
                                  std::vector<std::string> valid) {
  for (std::string& text : valid) text = Quote(text);
  causes_.push_back(
      {"FieldValueNotSupported",
       fmt::format("Unsupported value: {}: supported values: {}", printed, fmt::join(valid, ", ")),
       std::move(path)});
}

void FieldErrors::Forbidden(std::string path, std::string detail) {
  causes_.push_back({"FieldValueForbidden", WithDetail("Forbidden", detail), std::move(path)});
}

void FieldErrors::Duplicate(std::string path, std::string_view value) {
  causes_.push_back({"FieldValueDuplicate", "Duplicate value: " + Quote(value), std::move(path)});
}

void FieldErrors::DuplicateRaw(std::string path, std::string_view printed, std::string detail) {
  causes_.push_back({"FieldValueDuplicate",
                     WithDetail(fmt::format("Duplicate value: {}", printed), detail),
                     std::move(path)});
}

void FieldErrors::TooLong(std::string path, int max_bytes) {
  causes_.push_back({"FieldValueTooLong",
                     fmt::format("Too long: may not be more than {} bytes", max_bytes),
                     std::move(path)});
}

void FieldErrors::TooMany(std::string path, int actual, int max) {
  causes_.push_back(
      {"FieldValueTooMany",
       fmt::format("Too many: {}: must have at most {} item{}", actual, max, max == 1 ? "" : "s"),
       std::move(path)});
}

void FieldErrors::NotFound(std::string path, std::string_view value, std::string detail) {
  causes_.push_back(
      {"FieldValueNotFound", WithDetail("Not found: " + Quote(value), detail), std::move(path)});
}

void FieldErrors::TypeInvalid(std::string path, Value value, std::string detail) {
  TypeInvalidRaw(std::move(path), BadValue(value), std::move(detail));
}

void FieldErrors::TypeInvalidRaw(std::string path, std::string_view printed, std::string detail) {
  causes_.push_back({"FieldValueTypeInvalid",
                     WithDetail(fmt::format("Invalid value: {}", printed), detail),
                     std::move(path)});
}

void FieldErrors::Internal(std::string path, std::string detail) {
  causes_.push_back({"InternalError", WithDetail("Internal error", detail), std::move(path)});
}

}  // namespace sextant::api
