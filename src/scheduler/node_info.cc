#include "scheduler/node_info.h"

#include <fmt/format.h>

namespace sextant::scheduler {

std::shared_ptr<const PodInfo> MakePodInfo(api::Object pod) {
  auto info = std::make_shared<PodInfo>();
  info->key = fmt::format("{}/{}", pod.ns(), pod.name());
  info->uid = pod.uid();
  info->priority = pod["spec"]["priority"].AsInt();
  if (auto started = ParseTime(pod["status"]["startTime"].AsString())) info->started = *started;
  info->deleting = static_cast<bool>(pod["metadata"]["deletionTimestamp"]);
  info->affinity = ReadAffinityTerms(pod);
  info->spread = ReadSpreadConstraints(pod);
  info->requests = PodRequests(pod.root());
  info->non_zero = NonZeroRequests(pod.root());
  for (const char* list : {"containers", "initContainers"}) {
    for (api::Value container : pod["spec"][list].items()) {
      const bool init = std::string_view(list) == "initContainers";
      if (init && container["restartPolicy"].AsString() != "Always") continue;
      for (api::Value port : container["ports"].items()) {
        if (port["hostPort"].AsInt() == 0) continue;
        info->host_ports.push_back(fmt::format("{}/{}/{}", port["protocol"].AsString("TCP"),
                                               port["hostIP"].AsString("0.0.0.0"),
                                               port["hostPort"].AsInt()));
      }
    }
  }
  info->pod = std::move(pod);
  return info;
}

void NodeInfo::SetNode(api::Object next) {
  node = std::move(next);
  name = node.name();
  allocatable = ReadResources(node["status"]["allocatable"]);
}

void NodeInfo::AddPod(std::shared_ptr<const PodInfo> pod) {
  RemovePod(pod->uid);
  requested.Add(pod->requests);
  non_zero.Add(pod->non_zero);
  pods.emplace(pod->uid, std::move(pod));
}

void NodeInfo::RemovePod(std::string_view uid) {
  const auto it = pods.find(std::string(uid));
  if (it == pods.end()) return;
  requested.Subtract(it->second->requests);
  non_zero.Subtract(it->second->non_zero);
  pods.erase(it);
}

}  // namespace sextant::scheduler
