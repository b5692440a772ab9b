// VolumeBinding: a Pod goes where its volumes are or can be made; before it is bound, its claims
// are.
//
// Source: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go) at v1.36.3.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scheduler/claims.h"
#include "scheduler/framework.h"

namespace sextant::scheduler {
namespace {

using api::Object;
using api::Value;
using client::NameOf;
using client::ObjectName;

constexpr std::string_view kPlugin = "VolumeBinding";
constexpr std::string_view kManager = "kube-scheduler";
constexpr Duration kBindTimeout = std::chrono::minutes(10);

constexpr std::string_view kBindConflict =
    "node(s) didn't find available persistent volumes to bind";
constexpr std::string_view kNodeConflict = "node(s) didn't match PersistentVolume's node affinity";
constexpr std::string_view kNoVolume =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

// A Pod's claims, by what is to be done for them.
struct Wanted {
  std::vector<Object> bound;
  std::vector<Object> delayed;  // not bound, of a class that waits for a Pod
};

Error TimedOut() {
  return {.code = 504,
          .reason = "Timeout",
          .message = "binding volumes: timed out waiting for the condition"};
}

// Whether the node's labels have one of the values.
bool HasOneOf(Value labels, Value expression) {
  const std::string_view label = labels[expression["key"].AsString()].AsString();
  for (Value value : expression["values"].items())
    if (value.AsString() == label) return true;
  return false;
}

bool AllowsTopology(const Object& storage_class, Value labels) {
  const Value terms = storage_class["allowedTopologies"];
  for (Value term : terms.items()) {
    bool all = true;
    for (Value expression : term["matchLabelExpressions"].items())
      all = all && HasOneOf(labels, expression);
    if (all) return true;
  }
  return terms.empty();
}

class VolumeBinding : public Plugin {
 private:
  // Runs `f` unless this plugin is gone by then.
  template <typename F>
  auto Guarded(F f) {
    return [alive = alive_, f = std::move(f)](auto&&... args) mutable {
      if (*alive) f(std::forward<decltype(args)>(args)...);
    };
  }

 public:
  VolumeBinding(client::Client& client, Lookups lookups)
      : client_(client),
        lookups_(lookups),
        claims_changed_(
            lookups.claims.Subscribe([this](const client::Change&) { LookAtBindings(); })) {}
  ~VolumeBinding() override {
    *alive_ = false;
    for (const auto& binding : bindings_) client_.executor().Cancel(binding->timer);
  }

  std::string_view name() const override { return kPlugin; }

  Verdict PreFilter(CycleState& state, const ClusterState&, NodeSet&) const override {
    const std::vector<std::string> names = ClaimNames(state.pod->pod);
    if (names.empty()) return {};
    Wanted wanted;
    for (const std::string& name : names) {
      const Object claim = lookups_.claims.Get({std::string(state.pod->pod.ns()), name});
      const std::string why = WhyUnusable(claim, name);
      if (!why.empty()) return Verdict::RejectForGood(why);
      if (IsBound(claim)) {
        wanted.bound.push_back(claim);
      } else if (DelaysBinding(ClassOf(claim)) && claim["spec"]["volumeName"].AsString().empty()) {
        wanted.delayed.push_back(claim);
      } else {
        return Verdict::RejectForGood("pod has unbound immediate PersistentVolumeClaims");
      }
    }
    state.data[kPlugin] = std::move(wanted);
    return {};
  }

  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const auto* wanted = state.Find<Wanted>(kPlugin);
    if (!wanted) return {};
    for (const Object& claim : wanted->bound) {
      const Object volume = VolumeOf(claim);
      if (!volume) return Verdict::RejectForGood(std::string(kNoVolume));
      if (!IsUsableOn(volume, node.node.root())) {
        return Verdict::RejectForGood(std::string(kNodeConflict));
      }
    }
    for (const Object& claim : wanted->delayed)
      if (!CanServe(claim, node)) return Verdict::RejectForGood(std::string(kBindConflict));
    return {};
  }

  bool MayHelp(const ClusterEvent& event, const std::shared_ptr<const PodInfo>&) const override {
    return event.storage || event.node;
  }

  void PreBind(const std::shared_ptr<const PodInfo>& pod, const NodeInfo& node,
               Done done) override {
    auto binding = std::make_shared<Binding>();
    for (const std::string& name : ClaimNames(pod->pod)) {
      const Object claim = lookups_.claims.Get({std::string(pod->pod.ns()), name});
      if (!IsBound(claim)) binding->claims.push_back(NameOf(claim));
    }
    if (binding->claims.empty()) return done({});
    binding->node = node.name;
    binding->done = std::move(done);
    bindings_.insert(binding);
    binding->timer = client_.executor().After(
        kBindTimeout, Guarded([this, binding] { End(binding, Fail(TimedOut())); }));
    for (const ObjectName& name : binding->claims)
      BindClaim(binding, lookups_.claims.Get(name), node);
  }

 private:
  // A Pod that waits for its claims.
  struct Binding {
    std::string node;
    std::vector<ObjectName> claims;
    Done done;
    TimerId timer = 0;
  };
  using BindingPtr = std::shared_ptr<Binding>;

  Object ClassOf(const Object& claim) const {
    return lookups_.storage_classes.Get({"", StorageClassOf(claim)});
  }
  Object VolumeOf(const Object& claim) const {
    return lookups_.volumes.Get({"", std::string(claim["spec"]["volumeName"].AsString())});
  }

  static std::string WhyUnusable(const Object& claim, const std::string& name) {
    if (!claim) return fmt::format("persistentvolumeclaim \"{}\" not found", name);
    if (claim["status"]["phase"].AsString() == "Lost") {
      return fmt::format(
          "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
          claim["spec"]["volumeName"].AsString());
    }
    if (claim["metadata"]["deletionTimestamp"]) {
      return fmt::format("persistentvolumeclaim \"{}\" is being deleted", name);
    }
    return {};
  }

  // The node that this claim is being bound on for another Pod, or was asked for.
  std::string NodeOf(const Object& claim) const {
    for (const BindingPtr& binding : bindings_)
      if (std::ranges::find(binding->claims, NameOf(claim)) != binding->claims.end())
        return binding->node;
    return AnnotationOf(claim, kSelectedNode);
  }

  bool CanServe(const Object& claim, const NodeInfo& node) const {
    const std::string chosen = NodeOf(claim);
    if (!chosen.empty()) return chosen == node.name;
    if (MatchingVolume(lookups_.volumes.List(), claim, Where::kOnNode, node.node.root())) {
      return true;
    }
    const Object storage_class = ClassOf(claim);
    return Provisions(storage_class) && AllowsTopology(storage_class, node.labels());
  }

  // Gives the claim a volume that is there, or says where one is to be made.
  void BindClaim(const BindingPtr& binding, const Object& claim, const NodeInfo& node) {
    const auto written = Guarded([this, binding](Result<Object> result) {
      if (!result) End(binding, Fail(std::move(result).error()));
    });
    const client::WriteOptions options{.field_manager = std::string(kManager)};
    const Object volume =
        MatchingVolume(lookups_.volumes.List(), claim, Where::kOnNode, node.node.root());
    if (volume) {
      client_.Update(client::kPersistentVolumes, NameOf(volume), BoundToClaim(volume, claim),
                     options, written);
    } else if (AnnotationOf(claim, kSelectedNode) != node.name) {
      api::Editor edit(claim);
      edit["metadata"]["annotations"].Set(kSelectedNode, node.name);
      client_.Update(client::kPersistentVolumeClaims, NameOf(claim), std::move(edit).Finish(),
                     options, written);
    }
  }

  void LookAtBindings() {
    for (const BindingPtr& binding : std::vector<BindingPtr>(bindings_.begin(), bindings_.end())) {
      const bool all = std::ranges::all_of(binding->claims, [this](const ObjectName& name) {
        return IsBound(lookups_.claims.Get(name));
      });
      if (all) End(binding, {});
    }
  }

  void End(const BindingPtr& binding, Status status) {
    if (bindings_.erase(binding) == 0) return;
    client_.executor().Cancel(binding->timer);
    std::exchange(binding->done, {})(std::move(status));
  }

  client::Client& client_;
  const Lookups lookups_;
  std::set<BindingPtr> bindings_;
  std::unique_ptr<client::Subscription> claims_changed_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Plugin> MakeVolumeBinding(client::Client& client, Lookups lookups) {
  return std::make_unique<VolumeBinding>(client, lookups);
}

}  // namespace sextant::scheduler
