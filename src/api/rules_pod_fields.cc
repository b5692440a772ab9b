// References to a Pod's own fields and resources (downward API). Source: validation.go,
// validateObjectFieldSelector, validateContainerResourceFieldSelector;
// pkg/apis/core/pods/helpers.go.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/rules_pod.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

// What spec and status offer; the volume and env forms each allow a part of it.
constexpr std::array kLabels = {
    std::string_view("metadata.annotations"), std::string_view("metadata.labels"),
    std::string_view("metadata.name"),        std::string_view("metadata.namespace"),
    std::string_view("metadata.uid"),         std::string_view("spec.nodeName"),
    std::string_view("spec.restartPolicy"),   std::string_view("spec.serviceAccountName"),
    std::string_view("spec.schedulerName"),   std::string_view("status.phase"),
    std::string_view("status.hostIP"),        std::string_view("status.hostIPs"),
    std::string_view("status.podIP"),         std::string_view("status.podIPs")};

// "metadata.labels['app']" is "metadata.labels" with "app".
bool Subscripted(std::string_view text, std::string_view& path, std::string_view& key) {
  if (!text.ends_with("']")) return false;
  const size_t open = text.find("['");
  if (open == 0 || open == std::string_view::npos || open + 2 > text.size() - 2) return false;
  path = text.substr(0, open);
  key = text.substr(open + 2, text.size() - open - 4);
  return true;
}

void ValidateDivisor(std::string_view resource, Value divisor, const At& at, FieldErrors& errors) {
  const Quantity q = Quantity::ParseOrZero(divisor.AsString());
  if (q.IsZero()) return;
  const std::string text = q.ToString();
  const auto end = [&](std::string_view what) {
    return resource == fmt::format("limits.{}", what) ||
           resource == fmt::format("requests.{}", what);
  };
  if (end("cpu")) {
    if (text != "1m" && text != "1") {
      errors.InvalidText(at / "divisor", resource,
                         "only divisor's values 1m and 1 are supported with the cpu resource");
    }
    return;
  }
  const bool huge =
      resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
  const std::string_view what = end("memory")              ? "memory"
                                : end("ephemeral-storage") ? "local ephemeral storage"
                                : huge                     ? "hugepages"
                                                           : "";
  if (what.empty()) return;
  constexpr std::string_view kUnits = "kMGTPE";
  constexpr std::string_view kBinary = "KMGTPE";
  const bool one = text == "1" || (text.size() == 2 && text[0] == '1' &&
                                   kUnits.find(text[1]) != std::string_view::npos);
  const bool binary = text.size() == 3 && text[0] == '1' && text[2] == 'i' &&
                      kBinary.find(text[1]) != std::string_view::npos;
  if (one || binary) return;
  errors.InvalidText(at / "divisor", resource,
                     fmt::format("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, "
                                 "1Ti, 1Pi, 1Ei are supported with the {} resource",
                                 what));
}

}  // namespace

bool ValidateFieldRef(Value ref, Words expressions, const At& at, FieldErrors& errors) {
  const std::string_view version = ref["apiVersion"].AsString();
  std::string_view text = ref["fieldPath"].AsString();
  if (version.empty()) {
    errors.Required(at / "apiVersion", "");
    return false;
  }
  if (text.empty()) {
    errors.Required(at / "fieldPath", "");
    return false;
  }
  const auto cannot = [&](std::string why) {
    errors.InvalidText(at / "fieldPath", text, fmt::format("error converting fieldPath: {}", why));
    return false;
  };
  if (version != "v1") return cannot(fmt::format("unsupported pod version: {}", version));
  std::string_view path;
  std::string_view key;
  if (Subscripted(text, path, key)) {
    if (path == "metadata.annotations") {
      Complain(IsQualifiedName(AsciiLower(key)), AsciiLower(key), at, errors);
    } else if (path == "metadata.labels") {
      Complain(IsQualifiedName(key), key, at, errors);
    } else {
      return cannot(fmt::format("field label does not support subscript: {}", text));
    }
    return true;
  }
  if (text == "spec.host") text = "spec.nodeName";
  if (std::ranges::find(kLabels, text) == kLabels.end()) {
    return cannot(fmt::format("field label not supported: {}", text));
  }
  if (std::ranges::find(expressions, text) != expressions.end()) return true;
  NotSupported(at / "fieldPath", text, expressions, errors);
  return false;
}

bool ValidateResourceFieldRef(Value ref, bool volume, const At& at, FieldErrors& errors) {
  const std::string_view resource = ref["resource"].AsString();
  static constexpr Words kExpressions = {
      "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
      "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  if (volume && ref["containerName"].AsString().empty()) {
    errors.Required(at / "containerName", "");
  } else if (resource.empty()) {
    errors.Required(at / "resource", "");
  } else if (std::ranges::find(kExpressions, resource) == kExpressions.end() &&
             !resource.starts_with("requests.hugepages-") &&
             !resource.starts_with("limits.hugepages-")) {
    NotSupported(at / "resource", resource, kExpressions, errors);
  }
  ValidateDivisor(resource, ref["divisor"], at, errors);
  return true;
}

}  // namespace sextant::api
