// Why a Pod fits nowhere, in the words of FailedScheduling (kubernetes.md 4.3):
//   0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu.
// Pure; any thread.
#pragma once

#include <map>
#include <string>

#include "scheduler/framework.h"

namespace sextant::scheduler {

struct Diagnosis {
  std::map<std::string, Verdict> nodes;  // by node name: who refused it and why
  Verdict pre_filter;                    // of a PreFilter plugin that refused all nodes
  std::string post_filter;               // "preemption: ..."
};

std::string FitError(const Diagnosis& diagnosis, size_t node_count);

}  // namespace sextant::scheduler
