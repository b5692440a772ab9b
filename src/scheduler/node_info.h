// The scheduler's own compact picture of a node and of the Pods on it (DESIGN, law 6).
// Core loop only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/document.h"
#include "scheduler/resources.h"

namespace sextant::scheduler {

struct PodInfo {
  api::Object pod;
  std::string key;  // "namespace/name"
  std::string uid;
  int64_t priority = 0;
  Resources requests;
  Resources non_zero;
  std::vector<std::string> host_ports;  // "TCP/0.0.0.0/80"
};
std::shared_ptr<const PodInfo> MakePodInfo(api::Object pod);

struct NodeInfo {
  api::Object node;  // empty while only Pods of it are known
  std::string name;
  Resources allocatable;
  Resources requested;
  Resources non_zero;
  std::map<std::string, std::shared_ptr<const PodInfo>> pods;  // by uid

  void SetNode(api::Object next);
  void AddPod(std::shared_ptr<const PodInfo> pod);
  void RemovePod(std::string_view uid);
};

}  // namespace sextant::scheduler
