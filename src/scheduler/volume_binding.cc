// VolumeBinding: a Pod goes where its volumes are or can be made; before it is bound, its claims
// are.
//
// Source: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go) at v1.36.3.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/pods.h"
#include "base/alive.h"
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

// A claim that is not bound, of a class that waits for a Pod.
struct Unbound {
  Object claim;
  Object storage_class;
  std::string node;     // where it is being bound for another Pod or was asked for, else empty
  Object volume;        // the one that it is being bound to there, else empty
  VolumeChoice choice;  // where there is no such node
};

// What a Pod's claims need, looked up once for all nodes.
struct Wanted {
  std::vector<Object> volumes;   // of bound claims
  bool lost = false;             // one of those is not there
  std::vector<Unbound> unbound;  // those that ask for less first
};
using WantedPtr = std::shared_ptr<const Wanted>;

// The volume for each claim, empty where one is to be made.
using Plan = std::vector<std::pair<Object, Object>>;

Error TimedOut() {
  return {.code = 504,
          .reason = "Timeout",
          .message = "binding volumes: timed out waiting for the condition"};
}

Error BindingFailed(std::string_view why) {
  return {
      .code = 500, .reason = "InternalError", .message = fmt::format("binding volumes: {}", why)};
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
 public:
  VolumeBinding(client::Client& client, Lookups lookups)
      : client_(client),
        lookups_(lookups),
        claims_changed_(
            lookups.claims.Subscribe([this](const client::Change&) { LookAtBindings(); })) {}
  ~VolumeBinding() override {
    alive_.End();
    for (const auto& binding : bindings_) client_.executor().Cancel(binding->timer);
  }

  std::string_view name() const override { return kPlugin; }

  Verdict PreFilter(CycleState& state, const ClusterState&, NodeSet&) const override {
    auto wanted = std::make_shared<Wanted>();
    const Object& pod = state.pod->pod;
    for (Value volume : pod["spec"]["volumes"].items()) {
      const std::string name = api::ClaimOf(pod, volume);
      if (name.empty()) continue;
      const Object claim = lookups_.claims.Get({std::string(pod.ns()), name});
      const bool to_come = !claim && volume["ephemeral"];
      const std::string why = to_come ? WaitsFor(name) : WhyUnusable(claim, name);
      if (!why.empty()) return Verdict::RejectForGood(why);
      const bool named = !claim["spec"]["volumeName"].AsString().empty();
      if (!IsBound(claim) && (named || !DelaysBinding(ClassOf(claim)))) {
        return Verdict::RejectForGood("pod has unbound immediate PersistentVolumeClaims");
      }
      Read(claim, *wanted);
    }
    if (wanted->volumes.empty() && wanted->unbound.empty() && !wanted->lost) return {};
    Sort(*wanted);
    state.data[kPlugin] = WantedPtr(std::move(wanted));
    return {};
  }

  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const auto* found = state.Find<WantedPtr>(kPlugin);
    if (!found) return {};
    const Wanted& wanted = **found;
    for (const Object& volume : wanted.volumes) {
      if (!IsUsableOn(volume, node.node.root())) {
        return Verdict::RejectForGood(std::string(kNodeConflict));
      }
    }
    if (wanted.lost) return Verdict::RejectForGood(std::string(kNoVolume));
    if (!PlanOn(wanted, node)) return Verdict::RejectForGood(std::string(kBindConflict));
    return {};
  }

  bool MayHelp(const ClusterEvent& event, const std::shared_ptr<const PodInfo>&) const override {
    return event.storage || event.node;
  }

  void PreBind(const std::shared_ptr<const PodInfo>& pod, const NodeInfo& node,
               Done done) override {
    Wanted wanted;
    for (const std::string& name : api::ClaimNames(pod->pod)) {
      const Object claim = lookups_.claims.Get({std::string(pod->pod.ns()), name});
      if (!IsBound(claim)) Read(claim, wanted);
    }
    if (wanted.unbound.empty()) return done({});
    Sort(wanted);
    const std::optional<Plan> plan = PlanOn(wanted, node);
    if (!plan) return done(Fail(BindingFailed(kBindConflict)));
    auto binding = std::make_shared<Binding>();
    binding->node = node.name;
    for (const auto& [claim, volume] : *plan) binding->volumes[NameOf(claim)] = volume;
    binding->done = std::move(done);
    bindings_.insert(binding);
    for (const auto& [claim, volume] : *plan) IsGivenUp(*binding, claim);
    binding->timer = client_.executor().After(
        kBindTimeout, alive_.Guard([this, binding] { End(binding, Fail(TimedOut())); }));
    for (const auto& [claim, volume] : *plan) BindClaim(binding, claim, volume);
  }

 private:
  // A Pod that waits for its claims.
  struct Binding {
    std::string node;
    std::map<ObjectName, Object> volumes;  // by claim; empty where one is to be made
    std::set<ObjectName> asked;            // claims that have been seen with the node
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

  static std::string WaitsFor(std::string_view name) {
    return fmt::format(
        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"", name);
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

  void Read(const Object& claim, Wanted& wanted) const {
    if (IsBound(claim)) {
      const Object volume = VolumeOf(claim);
      if (!volume) wanted.lost = true;
      if (volume) wanted.volumes.push_back(volume);
      return;
    }
    Unbound unbound{claim, ClassOf(claim), AnnotationOf(claim, kSelectedNode), {}, {}};
    for (const BindingPtr& binding : bindings_) {
      const auto at = binding->volumes.find(NameOf(claim));
      if (at == binding->volumes.end()) continue;
      unbound.node = binding->node;
      unbound.volume = at->second;
    }
    if (unbound.node.empty()) unbound.choice = VolumesFor(FreeVolumes(), claim);
    wanted.unbound.push_back(std::move(unbound));
  }

  static void Sort(Wanted& wanted) {
    std::ranges::sort(wanted.unbound, [](const Unbound& a, const Unbound& b) {
      return AsksForLess(a.claim, b.claim);
    });
  }

  // Without those that are being bound: our cache may not show it yet.
  std::vector<Object> FreeVolumes() const {
    std::set<std::string, std::less<>> taken;
    for (const BindingPtr& binding : bindings_)
      for (const auto& [claim, volume] : binding->volumes) taken.emplace(volume.name());
    std::vector<Object> volumes = lookups_.volumes.List();
    std::erase_if(volumes, [&](const Object& volume) { return taken.contains(volume.name()); });
    return volumes;
  }

  // What each claim gets on the node, no volume twice; nothing if one gets none.
  static std::optional<Plan> PlanOn(const Wanted& wanted, const NodeInfo& node) {
    Plan plan;
    for (const Unbound& unbound : wanted.unbound) {
      if (!unbound.node.empty()) {
        if (unbound.node != node.name) return {};
        plan.emplace_back(unbound.claim, unbound.volume);
        continue;
      }
      Object volume = VolumeOn(unbound.choice, node, plan);
      const bool served = volume || (Provisions(unbound.storage_class) &&
                                     AllowsTopology(unbound.storage_class, node.labels()));
      if (!served) return {};
      plan.emplace_back(unbound.claim, std::move(volume));
    }
    return plan;
  }

  static Object VolumeOn(const VolumeChoice& choice, const NodeInfo& node, const Plan& plan) {
    const Value root = node.node.root();
    if (choice.kept) return IsUsableOn(choice.kept, root) ? choice.kept : Object();
    for (const Object& volume : choice.free) {
      const bool taken = std::ranges::any_of(
          plan, [&](const auto& given) { return given.second.name() == volume.name(); });
      if (!taken && IsUsableOn(volume, root)) return volume;
    }
    return {};
  }

  // Gives the claim a volume that is there, or says where one is to be made.
  void BindClaim(const BindingPtr& binding, const Object& claim, const Object& volume) {
    const auto written = alive_.Guard([this, binding](Result<Object> result) {
      if (!result) End(binding, Fail(std::move(result).error()));
    });
    const client::WriteOptions options{.field_manager = std::string(kManager)};
    if (volume) {
      client_.Update(client::kPersistentVolumes, NameOf(volume), BoundToClaim(volume, claim),
                     options, written);
    } else if (AnnotationOf(claim, kSelectedNode) != binding->node) {
      api::Editor edit(claim);
      edit["metadata"]["annotations"].Set(kSelectedNode, binding->node);
      client_.Update(client::kPersistentVolumeClaims, NameOf(claim), std::move(edit).Finish(),
                     options, written);
    }
  }

  void LookAtBindings() {
    for (const BindingPtr& binding : std::vector<BindingPtr>(bindings_.begin(), bindings_.end())) {
      bool all = true;
      std::string failure;
      for (const auto& [name, volume] : binding->volumes) {
        const Object claim = lookups_.claims.Get(name);
        if (IsBound(claim)) continue;
        all = false;
        if (!volume && IsGivenUp(*binding, claim)) failure = WhyGivenUp(claim);
      }
      if (all) End(binding, {});
      if (!failure.empty()) End(binding, Fail(BindingFailed(failure)));
    }
  }

  // Who makes volumes takes the node away again where it cannot make one.
  static bool IsGivenUp(Binding& binding, const Object& claim) {
    if (AnnotationOf(claim, kSelectedNode) != binding.node)
      return binding.asked.contains(NameOf(claim));
    binding.asked.insert(NameOf(claim));
    return false;
  }
  static std::string WhyGivenUp(const Object& claim) {
    return fmt::format(fmt::runtime(claim["metadata"]["annotations"]
                                        ? "provisioning failed for PVC \"{}\""
                                        : "selectedNode annotation reset for PVC \"{}\""),
                       claim.name());
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
  Alive alive_;
};

}  // namespace

std::unique_ptr<Plugin> MakeVolumeBinding(client::Client& client, Lookups lookups) {
  return std::make_unique<VolumeBinding>(client, lookups);
}

}  // namespace sextant::scheduler
