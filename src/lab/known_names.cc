#include "lab/known_names.h"

#include <fmt/format.h>

#include <sstream>

#include "base/nearest.h"
#include "lab/embedded.h"

namespace sextant::lab {
namespace {

struct Names {
  std::vector<KnownGate> gates;
  std::vector<std::string> versions;
  std::vector<std::string> plugins;
};

const Names& All() {
  static const Names names = [] {
    Names out;
    std::istringstream text{std::string(embedded::KnownNames())};
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      if (kind == "gate") {
        KnownGate gate;
        std::string on;
        std::string locked;
        words >> gate.name >> gate.stage >> on >> locked;
        gate.on = on == "true";
        gate.locked = locked == "true";
        out.gates.push_back(std::move(gate));
      } else if (kind == "version") {
        std::string version;
        words >> version;
        out.versions.push_back(std::move(version));
      } else if (kind == "plugin") {
        words >> out.plugins.emplace_back();
      }
    }
    return out;
  }();
  return names;
}

}  // namespace

const std::vector<KnownGate>& KnownGates() { return All().gates; }
const std::vector<std::string>& KnownGroupVersions() { return All().versions; }
const std::vector<std::string>& KnownAdmissionPlugins() { return All().plugins; }

const KnownGate* FindGate(std::string_view name) {
  for (const KnownGate& gate : KnownGates())
    if (gate.name == name) return &gate;
  return nullptr;
}

std::vector<std::string> GateNames() {
  std::vector<std::string> names;
  for (const KnownGate& gate : KnownGates()) names.push_back(gate.name);
  return names;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest);
}

}  // namespace sextant::lab
