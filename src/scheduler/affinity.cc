#include "scheduler/affinity.h"

#include <charconv>
#include <optional>
#include <string>

namespace sextant::scheduler {
namespace {

using api::Value;

std::optional<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

bool HasValue(Value values, std::string_view wanted) {
  for (Value value : values.items())
    if (value.AsString() == wanted) return true;
  return false;
}

// One requirement against one string; `there` is false when the node lacks the key.
bool MatchesRequirement(Value requirement, bool there, std::string_view actual) {
  const std::string_view op = requirement["operator"].AsString();
  const Value values = requirement["values"];
  if (op == "In") return there && HasValue(values, actual);
  if (op == "NotIn") return !there || !HasValue(values, actual);
  if (op == "Exists") return there;
  if (op == "DoesNotExist") return !there;
  const auto have = ParseInt(actual);
  const auto want = ParseInt(values.at(0).AsString());
  if (!there || !have || !want || values.size() != 1) return false;
  if (op == "Gt") return *have > *want;
  if (op == "Lt") return *have < *want;
  return false;
}

bool Affects(std::string_view effect, bool no_schedule, bool no_execute) {
  return (no_schedule && effect == "NoSchedule") || (no_execute && effect == "NoExecute");
}

}  // namespace

bool MatchesNodeSelectorTerm(Value term, Value node) {
  if (term["matchExpressions"].empty() && term["matchFields"].empty()) return false;
  const Value labels = node["metadata"]["labels"];
  for (Value requirement : term["matchExpressions"].items()) {
    const Value label = labels[requirement["key"].AsString()];
    if (!MatchesRequirement(requirement, !label.IsAbsent(), label.AsString())) return false;
  }
  for (Value requirement : term["matchFields"].items()) {
    const bool known = requirement["key"].AsString() == "metadata.name";
    if (!MatchesRequirement(requirement, known, node["metadata"]["name"].AsString())) return false;
  }
  return true;
}

bool MatchesNodeSelector(Value node_selector, Value node) {
  for (Value term : node_selector["nodeSelectorTerms"].items())
    if (MatchesNodeSelectorTerm(term, node)) return true;
  return false;
}

bool MatchesRequiredNodeAffinity(Value pod, Value node) {
  const Value labels = node["metadata"]["labels"];
  for (auto [key, value] : pod["spec"]["nodeSelector"].members()) {
    const Value label = labels[key];
    if (label.IsAbsent() || label.AsString() != value.AsString()) return false;
  }
  const Value required =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  return !required || MatchesNodeSelector(required, node);
}

bool Tolerates(Value toleration, Value taint) {
  const std::string_view effect = toleration["effect"].AsString();
  if (!effect.empty() && effect != taint["effect"].AsString()) return false;
  const std::string_view key = toleration["key"].AsString();
  if (!key.empty() && key != taint["key"].AsString()) return false;
  const std::string_view op = toleration["operator"].AsString();
  const std::string_view value = toleration["value"].AsString();
  const std::string_view actual = taint["value"].AsString();
  if (op.empty() || op == "Equal") return value == actual;
  if (op == "Exists") return true;
  const auto have = ParseInt(actual);
  const auto want = ParseInt(value);
  if (!have || !want) return false;
  if (op == "Lt") return *have < *want;
  if (op == "Gt") return *have > *want;
  return false;
}

Value FirstUntolerated(Value tolerations, Value taints, bool no_schedule, bool no_execute) {
  for (Value taint : taints.items()) {
    if (!Affects(taint["effect"].AsString(), no_schedule, no_execute)) continue;
    bool tolerated = false;
    for (Value toleration : tolerations.items())
      tolerated = tolerated || Tolerates(toleration, taint);
    if (!tolerated) return taint;
  }
  return {};
}

}  // namespace sextant::scheduler
