#include "kubelet/admission.h"

#include <fmt/format.h>

#include "scheduler/affinity.h"
#include "scheduler/resources.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;
using scheduler::Resources;

struct Amount {
  std::string name;
  int64_t requested = 0;
  int64_t used = 0;
  int64_t capacity = 0;
};

std::optional<Refusal> CheckResources(const Object& pod, const Object& node,
                                      const std::vector<Object>& others,
                                      const DeviceManager& devices) {
  const Value allocatable = node["status"]["allocatable"];
  const Resources total = scheduler::ReadResources(allocatable);
  const Resources wanted = scheduler::PodRequests(pod.root());
  Resources used;
  for (const Object& other : others) used.Add(scheduler::PodRequests(other.root()));
  std::vector<Amount> amounts = {{"pods", 1, static_cast<int64_t>(others.size()), total.pods},
                                 {"cpu", wanted.milli_cpu, used.milli_cpu, total.milli_cpu},
                                 {"memory", wanted.memory, used.memory, total.memory},
                                 {"ephemeral-storage", wanted.ephemeral_storage,
                                  used.ephemeral_storage, total.ephemeral_storage}};
  for (const auto& [name, amount] : wanted.scalars) {
    // Extended resources that the node does not know are not its own to count.
    if (IsExtended(name) && !allocatable.Has(name)) continue;
    // What the device manager has given away exists, whatever its plugin says now.
    const int64_t capacity = std::max(total.Scalar(name), devices.HeldCount(name));
    amounts.push_back({name, amount, used.Scalar(name), capacity});
  }
  for (const Amount& amount : amounts) {
    if (amount.requested == 0 || amount.used + amount.requested <= amount.capacity) continue;
    return Refusal{
        "OutOf" + amount.name,
        fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                    amount.name, amount.requested, amount.used, amount.capacity)};
  }
  return std::nullopt;
}

std::optional<Refusal> Predicate(std::string_view name, std::string_view text) {
  return Refusal{std::string(name), fmt::format("Predicate {} failed: {}", name, text)};
}

// Host ports: the same port and protocol, on addresses that overlap.
bool PortsFree(const Object& pod, const std::vector<Object>& others) {
  using Port = std::tuple<int64_t, std::string, std::string>;
  const auto ports = [](const Object& of) {
    std::vector<Port> found;
    for (Value container : of["spec"]["containers"].items()) {
      for (Value port : container["ports"].items()) {
        if (port["hostPort"].AsInt() <= 0) continue;
        found.emplace_back(port["hostPort"].AsInt(), std::string(port["protocol"].AsString("TCP")),
                           std::string(port["hostIP"].AsString("0.0.0.0")));
      }
    }
    return found;
  };
  const std::vector<Port> wanted = ports(pod);
  if (wanted.empty()) return true;
  for (const Object& other : others) {
    for (const auto& [port, protocol, ip] : ports(other)) {
      for (const auto& [my_port, my_protocol, my_ip] : wanted) {
        const bool overlap = ip == my_ip || ip == "0.0.0.0" || my_ip == "0.0.0.0";
        if (port == my_port && protocol == my_protocol && overlap) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool IsExtended(std::string_view name) {
  return name.find('/') != std::string_view::npos &&
         name.find("kubernetes.io/") == std::string_view::npos;
}

std::optional<Refusal> CheckFit(const Object& pod, const Object& node,
                                const std::vector<Object>& others, const DeviceManager& devices) {
  if (!node) return Refusal{"InvalidNodeInfo", "Kubelet cannot get node info."};
  const Value os = pod["spec"]["os"]["name"];
  if (os && os.AsString() != "linux") {
    return Refusal{"PodOSNotSupported",
                   "Failed to admit pod as the OS field doesn't match node OS"};
  }
  if (auto refusal = CheckResources(pod, node, others, devices)) return refusal;
  if (!scheduler::MatchesRequiredNodeAffinity(pod.root(), node.root())) {
    return Predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
  }
  if (!PortsFree(pod, others)) {
    return Predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports");
  }
  if (scheduler::FirstUntolerated(pod["spec"]["tolerations"], node["spec"]["taints"], false,
                                  true)) {
    return Predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate");
  }
  return std::nullopt;
}

Refusal AllocationFailed(const Error& error) {
  return {"UnexpectedAdmissionError",
          fmt::format("Allocate failed due to {}, which is unexpected", error.message)};
}

}  // namespace sextant::kubelet
