// The scheduler's own compact picture of a node and of the Pods on it (DESIGN, law 6).
// Core loop only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/document.h"
#include "base/clock.h"
#include "scheduler/pod_affinity.h"
#include "scheduler/resources.h"
#include "scheduler/spread.h"

namespace sextant::scheduler {

struct PodInfo {
  api::Object pod;
  std::string key;  // "namespace/name"
  std::string uid;
  int64_t priority = 0;
  Time started = Time::max();  // status.startTime
  bool deleting = false;
  Resources requests;
  Resources non_zero;
  std::vector<std::string> host_ports;  // "TCP/0.0.0.0/80"
  AffinityTerms affinity;
  SpreadConstraints spread;

  api::Value labels() const { return pod["metadata"]["labels"]; }
};
std::shared_ptr<const PodInfo> MakePodInfo(api::Object pod);

struct NodeInfo {
  api::Object node;  // empty while only Pods of it are known
  std::string name;
  Resources allocatable;
  Resources requested;
  Resources non_zero;
  std::map<std::string, std::shared_ptr<const PodInfo>> pods;  // by uid

  api::Value labels() const { return node["metadata"]["labels"]; }
  void SetNode(api::Object next);
  void AddPod(std::shared_ptr<const PodInfo> pod);
  void RemovePod(std::string_view uid);
};

using NodeMap = std::map<std::string, NodeInfo>;

}  // namespace sextant::scheduler
