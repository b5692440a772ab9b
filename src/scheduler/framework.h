// The scheduling framework: kube-scheduler's extension points as C++ interfaces.
//
// A plugin is a small object with a name; it implements the points it cares about. A cycle asks, in
// order: PreEnqueue (at the queue's door), PreFilter, Filter (per node), PostFilter (when no node
// fits), Score, Reserve, Permit, PreBind, Bind. Data that a cycle computes once lives in
// CycleState.
//
// Source: k8s.io/kubernetes pkg/scheduler/framework. Core loop only; no plugin blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "scheduler/node_info.h"

namespace sextant::scheduler {

enum class Code : uint8_t {
  kSuccess,
  kUnschedulable,                 // evicting Pods might help
  kUnschedulableAndUnresolvable,  // it would not
  kWait,
  kSkip,
  kPending,
  kError,
};

// What a plugin answers. Reasons are the texts that FailedScheduling counts.
struct Verdict {
  Code code = Code::kSuccess;
  std::vector<std::string> reasons;
  std::string_view plugin = {};

  bool ok() const { return code == Code::kSuccess; }
  static Verdict Success() { return {}; }
  static Verdict Reject(std::string reason) {
    return {Code::kUnschedulable, {std::move(reason)}, {}};
  }
  static Verdict RejectForGood(std::string reason) {
    return {Code::kUnschedulableAndUnresolvable, {std::move(reason)}, {}};
  }
};

// Node names that a PreFilter plugin leaves over; nothing: all.
using NodeSet = std::optional<std::set<std::string>>;

struct CycleState {
  std::shared_ptr<const PodInfo> pod;
  // Plugins keep what they computed under their own name.
  std::map<std::string_view, std::shared_ptr<void>> data;
};

using NodeMap = std::map<std::string, NodeInfo>;

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // False keeps the Pod out of the active queue until something changes.
  virtual Verdict PreEnqueue(const PodInfo&) const { return {}; }
  virtual Verdict PreFilter(CycleState&, const NodeMap&, NodeSet&) const { return {}; }
  virtual Verdict Filter(const CycleState&, const NodeInfo&) const { return {}; }
  // Raw score of a node; `Normalize` brings all of a cycle's into 0..100.
  virtual int64_t weight() const { return 0; }  // 0: does not score
  virtual int64_t Score(const CycleState&, const NodeInfo&) const { return 0; }
  virtual void Normalize(std::vector<int64_t>&) const {}
};

inline constexpr int64_t kMaxScore = 100;
// Scales so that the largest becomes 100, and turns around if asked.
void DefaultNormalize(std::vector<int64_t>& scores, bool reverse);

// The default profile, in kube-scheduler's MultiPoint order, as far as this scheduler has them.
std::vector<std::unique_ptr<Plugin>> DefaultPlugins();

}  // namespace sextant::scheduler
