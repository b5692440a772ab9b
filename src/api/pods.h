// Words about Pods that several rooms share. Pure; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"

namespace sextant::api {

// The claim that one of the Pod's volumes uses, by name; an ephemeral volume has one of its own.
// Empty: none.
inline std::string ClaimOf(const Object& pod, Value volume) {
  if (const Value claim = volume["persistentVolumeClaim"])
    return std::string(claim["claimName"].AsString());
  if (!volume["ephemeral"]) return {};
  return std::string(pod.name()) + "-" + std::string(volume["name"].AsString());
}

inline std::vector<std::string> ClaimNames(const Object& pod) {
  std::vector<std::string> names;
  for (Value volume : pod["spec"]["volumes"].items())
    if (std::string claim = ClaimOf(pod, volume); !claim.empty()) names.push_back(std::move(claim));
  return names;
}

inline bool UsesClaim(const Object& pod, std::string_view name) {
  const std::vector<std::string> names = ClaimNames(pod);
  return std::ranges::find(names, name) != names.end();
}

// The condition of a Pod that is about to be ended for a cause outside of it.
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

// Adds the condition to a strategic patch of the Pod's status. `now` as FormatTime writes it.
inline void AddDisruptionTarget(Editor& patch, std::string_view reason, std::string_view message,
                                std::string_view now) {
  const Mut condition = patch["status"]["conditions"].Append();
  condition.Set("type", kDisruptionTarget);
  condition.Set("status", "True");
  condition.Set("reason", reason);
  condition.Set("message", message);
  condition.Set("lastTransitionTime", now);
}

}  // namespace sextant::api
