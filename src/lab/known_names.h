// The feature gates, group versions and admission plugins that Kubernetes 1.36 knows
// (kubernetes_1_36.txt).
// Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::lab {

struct KnownGate {
  std::string name;
  std::string stage;  // "ALPHA", "BETA", "GA", "DEPRECATED"
  bool on = false;    // by default
  bool locked = false;
};

const std::vector<KnownGate>& KnownGates();
const std::vector<std::string>& KnownGroupVersions();
const std::vector<std::string>& KnownAdmissionPlugins();
const KnownGate* FindGate(std::string_view name);
// "" or ` (did you mean "X"?)`.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);
std::vector<std::string> GateNames();

}  // namespace sextant::lab
