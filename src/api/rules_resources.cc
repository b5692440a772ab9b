// Names of resources and their amounts. Source: pkg/apis/core/helper/helpers.go and validation.go.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr std::string_view kHugePages = "hugepages-";
constexpr std::string_view kRequests = "requests.";

// Counted in whole numbers; all are standard resources and may be limited by a quota.
constexpr std::array kCounted = {std::string_view("pods"),
                                 std::string_view("resourcequotas"),
                                 std::string_view("services"),
                                 std::string_view("replicationcontrollers"),
                                 std::string_view("secrets"),
                                 std::string_view("configmaps"),
                                 std::string_view("persistentvolumeclaims"),
                                 std::string_view("services.nodeports"),
                                 std::string_view("services.loadbalancers")};
constexpr std::array kMeasured = {std::string_view("cpu"),
                                  std::string_view("memory"),
                                  std::string_view("ephemeral-storage"),
                                  std::string_view("requests.cpu"),
                                  std::string_view("requests.memory"),
                                  std::string_view("requests.ephemeral-storage"),
                                  std::string_view("requests.storage"),
                                  std::string_view("limits.cpu"),
                                  std::string_view("limits.memory"),
                                  std::string_view("limits.ephemeral-storage")};

template <typename List>
bool In(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

bool Qualified(std::string_view name) { return name.find('/') != std::string_view::npos; }

bool IsNative(std::string_view name) {
  return !Qualified(name) || name.find("kubernetes.io/") != std::string_view::npos;
}

bool IsContainerResource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || IsHugePages(name);
}

// "" or what is wrong with an amount of huge pages.
std::string HugePagesComplaint(std::string_view name, const Quantity& q) {
  const Result<Quantity> page = Quantity::Parse(name.substr(kHugePages.size()));
  const bool divisible =
      page && page->Sign() > 0 && page->MilliValue() % 1000 == 0 && q.Value() % page->Value() == 0;
  if (divisible) return {};
  return fmt::format("{} is not positive integer multiple of {}", q.ToString(), name);
}

void ValidatePodResourceName(std::string_view name, const At& at, FieldErrors& errors) {
  const size_t before = errors.causes().size();
  ValidateResourceName(name, at, errors);
  if (errors.causes().size() != before) return;
  if (name != "cpu" && name != "memory" && !IsHugePages(name)) {
    NotSupported(at, name, {"cpu", "hugepages-", "memory"}, errors);
  }
}

using NameCheck = void (*)(std::string_view, const At&, FieldErrors&);

struct Seen {
  bool compute = false;
  bool huge = false;

  void Add(std::string_view name, Value quantity, const At& at, FieldErrors& errors) {
    compute |= name == "cpu" || name == "memory";
    if (!IsHugePages(name)) return;
    huge = true;
    const std::string why = HugePagesComplaint(name, Quantity::ParseOrZero(quantity.AsString()));
    if (!why.empty()) errors.InvalidText(at, quantity.AsString(), why);
  }
};

void ValidateAgainstLimit(std::string_view name, Value request, Value limit, const At& requests,
                          const At& limits, FieldErrors& errors) {
  if (!limit) {
    if (!IsOvercommitAllowed(name)) {
      errors.Required(limits, "Limit must be set for non overcommitable resources");
    }
    return;
  }
  const int order =
      Quantity::ParseOrZero(request.AsString()).Compare(Quantity::ParseOrZero(limit.AsString()));
  if (order != 0 && !IsOvercommitAllowed(name)) {
    errors.InvalidText(requests, request.AsString(),
                       fmt::format("must be equal to {} limit of {}", name, limit.AsString()));
  } else if (order > 0) {
    errors.InvalidText(
        requests, request.AsString(),
        fmt::format("must be less than or equal to {} limit of {}", name, limit.AsString()));
  }
}

void ValidateClaims(Value claims, const Names& pod_claims, const At& at, FieldErrors& errors) {
  std::set<std::string> names;
  size_t i = 0;
  for (Value claim : claims.items()) {
    const At here = at.Item("claims", i++);
    const std::string name(claim["name"].AsString());
    if (name.empty()) {
      errors.Required(here, "");
      continue;
    }
    if (names.contains(name)) {
      errors.Duplicate(here, name);
    } else {
      std::string key = name;
      const std::string_view request = claim["request"].AsString();
      if (!request.empty()) {
        Complain(IsDns1123Label(request), request, here / "request", errors);
        key += '/';
        key += request;
      }
      if (names.contains(key)) {
        errors.Duplicate(here, key);
      } else if (request.empty()) {
        for (const std::string& other : names) {
          if (other.starts_with(name + "/")) errors.Duplicate(here, name);
        }
      }
      names.insert(key);
    }
    if (pod_claims.contains(name)) continue;
    std::string detail = "must be one of the names in pod.spec.resourceClaims";
    detail +=
        pod_claims.empty() ? " which is empty" : fmt::format(": {}", fmt::join(pod_claims, ", "));
    errors.NotFound(here, name, std::move(detail));
  }
}

void ValidateRequirements(Value resources, NameCheck check, const Names& claims, const At& at,
                          FieldErrors& errors) {
  const At limits = at / "limits";
  const At requests = at / "requests";
  Seen limit_seen;
  Seen request_seen;
  for (auto [name, q] : resources["limits"].members()) {
    const At here = limits.Key("", name);
    check(name, here, errors);
    ValidateAmount(name, q, here, errors);
    limit_seen.Add(name, q, here, errors);
  }
  for (auto [name, q] : resources["requests"].members()) {
    const At here = requests.Key("", name);
    check(name, here, errors);
    ValidateAmount(name, q, here, errors);
    ValidateAgainstLimit(name, q, resources["limits"][name], requests, limits, errors);
    request_seen.Add(name, q, here, errors);
  }
  if (!limit_seen.compute && !request_seen.compute && (limit_seen.huge || request_seen.huge)) {
    errors.Forbidden(at, "HugePages require cpu or memory");
  }
  ValidateClaims(resources["claims"], claims, at, errors);
}

}  // namespace

bool IsHugePages(std::string_view resource) { return resource.starts_with(kHugePages); }

bool IsExtendedResource(std::string_view resource) {
  if (IsNative(resource) || resource.starts_with(kRequests)) return false;
  return IsQualifiedName(fmt::format("{}{}", kRequests, resource)).empty();
}

bool IsOvercommitAllowed(std::string_view resource) {
  return IsNative(resource) && !IsHugePages(resource);
}

bool IsStandardQuotaResource(std::string_view resource) {
  return In(kCounted, resource) || In(kMeasured, resource) || IsHugePages(resource) ||
         resource.starts_with("requests.hugepages-");
}

void ValidateResourceName(std::string_view resource, const At& at, FieldErrors& errors) {
  const Complaints complaints = IsQualifiedName(resource);
  if (!complaints.empty()) return Complain(complaints, resource, at, errors);
  if (Qualified(resource) || resource == "storage" || IsStandardQuotaResource(resource)) return;
  errors.InvalidText(at, resource, "must be a standard resource type or fully qualified");
}

void ValidateContainerResourceName(std::string_view name, const At& at, FieldErrors& errors) {
  ValidateResourceName(name, at, errors);
  if (!Qualified(name)) {
    if (!IsContainerResource(name)) {
      errors.InvalidText(at, name, "must be a standard resource for containers");
    }
  } else if (!IsNative(name) && !IsExtendedResource(name)) {
    errors.InvalidText(at, name, "doesn't follow extended resource name standard");
  }
}

void ValidateAmount(std::string_view resource, Value quantity, const At& at, FieldErrors& errors) {
  const Quantity q = Quantity::ParseOrZero(quantity.AsString());
  if (q.Sign() < 0) errors.InvalidText(at, quantity.AsString(), std::string(kNotNegative));
  if ((In(kCounted, resource) || IsExtendedResource(resource)) && q.MilliValue() % 1000 != 0) {
    errors.InvalidText(at, quantity.AsString(), "must be an integer");
  }
}

void ValidatePositiveAmount(Value quantity, const At& at, FieldErrors& errors) {
  if (Quantity::ParseOrZero(quantity.AsString()).Sign() <= 0) {
    errors.InvalidText(at, quantity.AsString(), "must be greater than zero");
  }
}

void ValidateContainerResources(Value resources, const Names& pod_claims, const At& at,
                                FieldErrors& errors) {
  ValidateRequirements(resources, ValidateContainerResourceName, pod_claims, at, errors);
}

void ValidatePodResources(Value resources, const Names& pod_claims, const At& at,
                          FieldErrors& errors) {
  ValidateRequirements(resources, ValidatePodResourceName, pod_claims, at, errors);
}

}  // namespace sextant::api
