#include "scheduler/pod_affinity.h"

namespace sextant::scheduler {
namespace {

using api::LabelSelector;
using api::Value;

// What does not parse selects nothing: the API server has validated what it stored.
LabelSelector ReadSelector(Value selector) {
  auto read = LabelSelector::From(selector);
  return read ? *std::move(read) : LabelSelector::Nothing();
}

AffinityTerm ReadTerm(Value term, std::string_view own_namespace, int64_t weight) {
  AffinityTerm out;
  for (Value ns : term["namespaces"].items()) out.namespaces.emplace(ns.AsString());
  // With neither names nor a selector: the Pod's own namespace.
  if (out.namespaces.empty() && !term["namespaceSelector"]) out.namespaces.emplace(own_namespace);
  out.namespace_selector = ReadSelector(term["namespaceSelector"]);
  out.selector = ReadSelector(term["labelSelector"]);
  out.topology_key = term["topologyKey"].AsString();
  out.weight = weight;
  return out;
}

std::vector<AffinityTerm> ReadRequired(Value affinity, std::string_view ns) {
  std::vector<AffinityTerm> out;
  for (Value term : affinity["requiredDuringSchedulingIgnoredDuringExecution"].items())
    out.push_back(ReadTerm(term, ns, 0));
  return out;
}

std::vector<AffinityTerm> ReadPreferred(Value affinity, std::string_view ns) {
  std::vector<AffinityTerm> out;
  for (Value term : affinity["preferredDuringSchedulingIgnoredDuringExecution"].items())
    out.push_back(ReadTerm(term["podAffinityTerm"], ns, term["weight"].AsInt()));
  return out;
}

}  // namespace

bool AffinityTerm::Matches(std::string_view ns, Value namespace_labels, Value pod_labels) const {
  if (!namespaces.contains(ns) && !namespace_selector.Matches(namespace_labels)) return false;
  return selector.Matches(pod_labels);
}

AffinityTerms ReadAffinityTerms(const api::Object& pod) {
  const Value affinity = pod["spec"]["affinity"];
  if (!affinity) return {};
  const std::string_view ns = pod.ns();
  return {ReadRequired(affinity["podAffinity"], ns), ReadRequired(affinity["podAntiAffinity"], ns),
          ReadPreferred(affinity["podAffinity"], ns),
          ReadPreferred(affinity["podAntiAffinity"], ns)};
}

}  // namespace sextant::scheduler
