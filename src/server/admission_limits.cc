// LimitRanger: plugin/pkg/admission/limitranger.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <vector>

#include "api/amounts.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Amounts;
using api::Mut;
using api::Object;
using api::Quantity;
using api::Value;

constexpr std::string_view kAnnotation = "kubernetes.io/limit-ranger";
// Amounts up to this are compared by their thousandths (resource.MaxMilliValue).
constexpr int64_t kMaxByThousandths = std::numeric_limits<int64_t>::max() / 1000;

// ---- defaults ----

// What the containers lack of `given`; the names are told.
std::vector<std::string> Fill(Mut list, const Amounts& given) {
  std::vector<std::string> set;
  for (const auto& [name, q] : given) {
    if (list.Has(name)) continue;
    list.Set(name, q.ToString());
    set.push_back(name);
  }
  return set;
}

void FillContainers(Mut spec, const char* list, std::string_view what, const Amounts& requests,
                    const Amounts& limits, std::vector<std::string>& told) {
  if (!spec.Has(list)) return;
  for (size_t i = 0; i < spec[list].size(); ++i) {
    const Mut container = spec[list].at(i);
    const std::string name(container["name"].AsString());
    const Mut resources = container["resources"];
    const auto fill = [&](const char* side, std::string_view word, const Amounts& given) {
      if (given.empty()) return;
      const auto set = Fill(resources[side], given);
      if (set.empty()) return;
      told.push_back(fmt::format("{} {} for {} {}", fmt::join(set, ", "), word, what, name));
    };
    fill("requests", "request", requests);
    fill("limits", "limit", limits);
  }
}

void SetDefaults(Value range, Mut pod) {
  Amounts requests;
  Amounts limits;
  for (Value item : range["spec"]["limits"].items()) {
    if (item["type"].AsString() != "Container") continue;
    for (auto& [name, q] : api::ReadAmounts(item["defaultRequest"])) requests[name] = q;
    for (auto& [name, q] : api::ReadAmounts(item["default"])) limits[name] = q;
  }
  std::vector<std::string> told;
  FillContainers(pod["spec"], "containers", "container", requests, limits, told);
  FillContainers(pod["spec"], "initContainers", "init container", requests, limits, told);
  if (told.empty()) return;
  pod["metadata"]["annotations"].Set(
      kAnnotation, fmt::format("LimitRanger plugin set: {}", fmt::join(told, "; ")));
}

// ---- limits ----

// One amount that a limit is about, as it stands in requests and in limits.
struct Asked {
  const Quantity* request = nullptr;  // null: not specified
  const Quantity* limit = nullptr;

  Asked(std::string_view name, const Amounts& requests, const Amounts& limits) {
    if (const auto at = requests.find(name); at != requests.end()) request = &at->second;
    if (const auto at = limits.find(name); at != limits.end()) limit = &at->second;
  }
};

// The ratio of limit to request, and what it may be at most, as the real one computes them.
struct Ratio {
  double shown = 0;
  bool too_large = false;
};

Ratio RatioOf(const Quantity& request, const Quantity& limit, const Quantity& most) {
  const bool fine = request.Value() <= kMaxByThousandths && limit.Value() <= kMaxByThousandths &&
                    most.Value() <= kMaxByThousandths;
  const auto of = [&](const Quantity& q) {
    return static_cast<double>(fine ? q.MilliValue() : q.Value());
  };
  Ratio ratio;
  ratio.shown = of(limit) / of(request);
  ratio.too_large = most.Value() <= kMaxByThousandths
                        ? ratio.shown * 1000 > static_cast<double>(most.MilliValue())
                        : ratio.shown > static_cast<double>(most.Value());
  return ratio;
}

class Limits {
 public:
  explicit Limits(Value item) : item_(item), type_(item["type"].AsString()) {}

  void CheckPodPart(const Amounts& requests, const Amounts& limits) {
    CheckMin(requests, limits);
    for (const auto& [name, most] : api::ReadAmounts(item_["max"])) {
      const Asked asked(name, requests, limits);
      const std::string rule = Rule("maximum", name, most);
      if (!asked.limit) {
        Refuse(rule + ".  No limit is specified");
      } else if (*asked.limit > most) {
        Refuse(fmt::format("{}, but limit is {}", rule, asked.limit->ToString()));
      } else if (asked.request && *asked.request > most) {
        Refuse(fmt::format("{}, but request is {}", rule, asked.request->ToString()));
      }
    }
    for (const auto& [name, most] : api::ReadAmounts(item_["maxLimitRequestRatio"])) {
      CheckRatio(name, most, Asked(name, requests, limits));
    }
  }

  void CheckClaim(const Amounts& requests) {
    CheckMin(requests, {});
    for (const auto& [name, most] : api::ReadAmounts(item_["max"])) {
      const Asked asked(name, requests, {});
      const std::string rule = Rule("maximum", name, most);
      if (!asked.request) {
        Refuse(rule + ".  No request is specified");
      } else if (*asked.request > most) {
        Refuse(fmt::format("{}, but request is {}", rule, asked.request->ToString()));
      }
    }
  }

  std::vector<std::string>& errors() { return errors_; }

 private:
  std::string Rule(std::string_view what, std::string_view name, const Quantity& q) const {
    return fmt::format("{} {} usage per {} is {}", what, name, type_, q.ToString());
  }
  void Refuse(std::string why) { errors_.push_back(std::move(why)); }

  void CheckMin(const Amounts& requests, const Amounts& limits) {
    for (const auto& [name, least] : api::ReadAmounts(item_["min"])) {
      const Asked asked(name, requests, limits);
      const std::string rule = Rule("minimum", name, least);
      if (!asked.request) {
        Refuse(rule + ".  No request is specified");
      } else if (*asked.request < least) {
        Refuse(fmt::format("{}, but request is {}", rule, asked.request->ToString()));
      } else if (asked.limit && *asked.limit < least) {
        Refuse(fmt::format("{}, but limit is {}", rule, asked.limit->ToString()));
      }
    }
  }

  void CheckRatio(std::string_view name, const Quantity& most, const Asked& asked) {
    const std::string rule =
        fmt::format("{} max limit to request ratio per {} is {}", name, type_, most.ToString());
    if (!asked.request || asked.request->IsZero()) {
      return Refuse(rule + ", but no request is specified or request is 0");
    }
    if (!asked.limit || asked.limit->IsZero()) {
      return Refuse(rule + ", but no limit is specified or limit is 0");
    }
    const Ratio ratio = RatioOf(*asked.request, *asked.limit, most);
    if (ratio.too_large) Refuse(fmt::format("{}, but provided ratio is {:f}", rule, ratio.shown));
  }

  Value item_;
  std::string_view type_;
  std::vector<std::string> errors_;
};

std::string PodComplaint(Value range, Value pod) {
  std::vector<std::string> errors;
  for (Value item : range["spec"]["limits"].items()) {
    const std::string_view type = item["type"].AsString();
    Limits limits(item);
    if (type == "Container") {
      for (const char* list : {"containers", "initContainers"}) {
        for (Value c : pod["spec"][list].items()) {
          limits.CheckPodPart(api::ReadAmounts(c["resources"]["requests"]),
                              api::ReadAmounts(c["resources"]["limits"]));
        }
      }
    } else if (type == "Pod") {
      constexpr api::PodAmountsOptions kSpecAlone{.overhead = false, .status = false};
      limits.CheckPodPart(api::PodAmounts(pod, "requests", kSpecAlone),
                          api::PodAmounts(pod, "limits", kSpecAlone));
    }
    for (std::string& error : limits.errors()) errors.push_back(std::move(error));
  }
  return Aggregate(errors);
}

std::string ClaimComplaint(Value range, Value claim) {
  std::vector<std::string> errors;
  for (Value item : range["spec"]["limits"].items()) {
    if (item["type"].AsString() != "PersistentVolumeClaim") continue;
    Limits limits(item);
    limits.CheckClaim(api::ReadAmounts(claim["spec"]["resources"]["requests"]));
    for (std::string& error : limits.errors()) errors.push_back(std::move(error));
  }
  return Aggregate(errors);
}

class LimitRanger : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "LimitRanger"; }

  Status Admit(const AdmissionRequest& request, Mut object) const override {
    if (!request.On("", "pods") || request.verb != "create") return {};
    for (const Object& range : Ranges(request)) SetDefaults(range.root(), object);
    return {};
  }

  Status Validate(const AdmissionRequest& request, Value object) const override {
    if (request.verb == "delete" || request.old["metadata"]["deletionTimestamp"]) return {};
    const bool resized = request.On("", "pods", "resize") && request.verb == "update";
    const bool pod = resized || (request.On("", "pods") && request.verb == "create");
    const bool claim = request.On("", "persistentvolumeclaims");
    if (!pod && !claim) return {};
    for (const Object& range : Ranges(request)) {
      const std::string why =
          pod ? PodComplaint(range.root(), object) : ClaimComplaint(range.root(), object);
      if (!why.empty()) return Fail(AdmissionForbidden(request, object, why));
    }
    return {};
  }

 private:
  static std::vector<Object> Ranges(const AdmissionRequest& request) {
    std::vector<Object> ranges;
    const auto all = request.view.Snapshot("limitranges");
    for (const auto& entry : all->Range(request.op.info.ns, "", "", 0)) {
      ranges.push_back(entry->object);
    }
    return ranges;
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeLimitRanger() { return std::make_unique<LimitRanger>(); }

}  // namespace sextant::server
