#include "api/amounts.h"

#include <algorithm>
#include <string_view>

#include "api/conditions.h"
#include "api/rules_kit.h"

namespace sextant::api {
namespace {

void RaiseTo(Amounts& to, const Amounts& other) {
  for (const auto& [name, q] : other) {
    const auto [at, made] = to.emplace(name, q);
    if (!made) at->second = std::max(at->second, q);
  }
}

template <typename Of>
Amounts Aggregate(Value spec, Of amounts_of) {
  Amounts sum;
  for (Value c : spec["containers"].items()) AddAmounts(sum, amounts_of(c, "containerStatuses"));
  Amounts sidecars;
  Amounts peak;
  for (Value c : spec["initContainers"].items()) {
    const bool restartable = c["restartPolicy"].AsString() == "Always";
    Amounts here = amounts_of(c, restartable ? "initContainerStatuses" : "");
    if (restartable) AddAmounts(sum, here);
    AddAmounts(here, sidecars);
    RaiseTo(peak, here);
    if (restartable) sidecars = std::move(here);
  }
  RaiseTo(sum, peak);
  return sum;
}

Value StatusOf(Value pod, std::string_view list, std::string_view container) {
  for (Value status : pod["status"][list].items())
    if (status["name"].AsString() == container) return status;
  return {};
}

bool ResizeIsInfeasible(Value pod) {
  const Value pending = FindCondition(pod["status"]["conditions"], "PodResizePending");
  return pending["reason"].AsString() == "Infeasible";
}

// A container's amounts where a resize may be under way: what was asked for does not count once it
// is known not to fit.
Amounts Effective(Value pod, Value container, std::string_view statuses, const char* side) {
  const Value status = StatusOf(pod, statuses, container["name"].AsString());
  Amounts amounts = ReadAmounts(container["resources"][side]);
  if (!status["resources"]) return amounts;
  if (ResizeIsInfeasible(pod)) amounts.clear();
  RaiseTo(amounts, ReadAmounts(status["resources"][side]));
  if (std::string_view(side) == "requests") {
    RaiseTo(amounts, ReadAmounts(status["allocatedResources"]));
  }
  return amounts;
}

}  // namespace

Amounts ReadAmounts(Value list) {
  Amounts out;
  for (auto [name, q] : list.members()) {
    out.emplace(name, Quantity::ParseOrZero(q.AsString()));
  }
  return out;
}

void AddAmounts(Amounts& to, const Amounts& more) {
  for (const auto& [name, q] : more) to[name] += q;
}

void WriteAmounts(const Amounts& amounts, Mut list) {
  list.SetNull();
  list.SetMap();
  for (const auto& [name, q] : amounts) list.Set(name, q.ToString());
}

Amounts AggregateResources(Value spec, const char* side) {
  return Aggregate(spec, [&](Value container, std::string_view) {
    return ReadAmounts(container["resources"][side]);
  });
}

Amounts PodAmounts(Value pod, const char* side, PodAmountsOptions options) {
  const Value spec = pod["spec"];
  Amounts sum = Aggregate(spec, [&](Value container, std::string_view statuses) {
    Amounts amounts = options.status && !statuses.empty()
                          ? Effective(pod, container, statuses, side)
                          : ReadAmounts(container["resources"][side]);
    if (options.unsaid) amounts.insert(options.unsaid->begin(), options.unsaid->end());
    return amounts;
  });
  for (auto [name, q] : spec["resources"][side].members()) {
    if (IsPodLevelResource(name)) {
      sum.insert_or_assign(std::string(name), Quantity::ParseOrZero(q.AsString()));
    }
  }
  if (!options.overhead) return sum;
  const bool requests = std::string_view(side) == "requests";
  for (const auto& [name, q] : ReadAmounts(spec["overhead"])) {
    const auto at = sum.find(name);
    if (requests) {
      sum[name] += q;
    } else if (at != sum.end() && !at->second.IsZero()) {
      at->second += q;
    }
  }
  return sum;
}

bool IsPodLevelResource(std::string_view name) {
  return name == "cpu" || name == "memory" || IsHugePages(name);
}

}  // namespace sextant::api
