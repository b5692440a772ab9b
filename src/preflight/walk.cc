#include "preflight/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/json.h"
#include "base/check.h"
#include "preflight/checks.h"
#include "preflight/cluster_view.h"

namespace sextant::preflight {
namespace {

using api::Object;
using api::Value;

constexpr std::string_view kNotAsked = "not asked: --probe runs the capability Pod";

// What a container that does not start says, and the layer that it speaks of: containerd's, runc's
// and the NVIDIA container toolkit's texts (reference/gpu-faults.md 4.5).
struct RuntimeText {
  std::string_view text;
  std::string_view code;  // of rt.probe
};
constexpr std::array<RuntimeText, 7> kRuntimeTexts = {{
    {"no runtime for", "HANDLER_MISSING"},
    {"unresolvable CDI devices", "CDI_UNRESOLVABLE"},
    {"libnvidia-ml.so", "LIB_NOT_FOUND"},
    {"driver not loaded", "LIB_NOT_FOUND"},
    {"nvidia-container", "HOOK_ERROR"},
    {"nvidia-ctk", "HOOK_ERROR"},
    {"could not select device driver", "HOOK_ERROR"},
}};

struct Rejection {
  std::string_view reason;  // of a Pod that its kubelet refused
  std::string_view code;
};
constexpr std::array<Rejection, 3> kRejections = {{
    {"UnexpectedAdmissionError", "UNEXPECTED_ADMISSION"},
    {"TopologyAffinityError", "TOPOLOGY_AFFINITY"},
    {"OutOfnvidia.com/gpu", "OUT_OF_GPU"},
}};

// nvidia-smi's status where a command is missing (the shell's), and where the library is.
constexpr int64_t kNoCommand = 127;
constexpr int64_t kNoLibrary = 12;

std::string_view RemedyFor(const Error& error) {
  if (error.code == 401) return "its credentials were refused: renew them in the kubeconfig";
  if (error.code == 403) {
    return "this user may not: it needs get on /version and list on nodes";
  }
  return "is it running (a lab: `sextant list`, `sextant start`), and is it the right context? "
         "--context and --kubeconfig name another";
}

std::string LastLine(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t newline = text.rfind('\n');
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

class Walker {
 public:
  Walker(client::Client& client, const Clock& clock, Random& random, const WalkOptions& options)
      : calls_(client),
        clock_(clock),
        options_(options),
        prober_(calls_, clock, random, options.ns, options.limits, options.sleep) {
    report_.run_id = NewUuid(random);
    report_.started = clock.Now();
    report_.context = options.context;
    for (const CheckKind& kind : CheckKinds()) {
      Check check;
      check.id = kind.id;
      check.layer = kind.layer;
      check.required = kind.required;
      check.started = report_.started;
      report_.checks.push_back(std::move(check));
    }
  }

  Report Run() {
    TellUnseen();
    if (Reach()) {
      Driver();
      if (!Blocked()) Plugin();
      if (options_.probe && !Blocked()) Probe();
    }
    ExplainSkipped();
    return std::move(report_);
  }

 private:
  Check& Find(std::string_view id) {
    for (Check& check : report_.checks) {
      if (check.id != id) continue;
      if (check.started == report_.started) check.started = clock_.Now();
      return check;
    }
    CHECK(false);
  }
  void End(Check& check, CheckStatus status) {
    check.status = status;
    check.took = clock_.Now() - check.started;
  }
  void Pass(Check& check, std::string summary) {
    check.summary = std::move(summary);
    End(check, CheckStatus::kPassed);
  }
  void Refuse(Check& check, std::string_view code, std::string summary) {
    check.code = code;
    check.summary = std::move(summary);
    End(check, CheckStatus::kFailed);
  }
  // The check itself went wrong: nothing is known.
  void Err(Check& check, std::string summary) {
    check.summary = std::move(summary);
    End(check, CheckStatus::kError);
  }
  void Unsupported(Check& check, std::string reason) {
    check.reason = std::move(reason);
    End(check, CheckStatus::kUnsupported);
  }
  static void See(Check& check, std::string source, std::string ref, std::string excerpt) {
    check.observations.push_back({std::move(source), std::move(ref), std::move(excerpt)});
  }
  bool Blocked() const { return StopOf(report_.checks) != nullptr; }
  bool simulated() const { return report_.mode == Mode::kSimulated; }

  // Whose cluster it is, and its nodes. False when the API cannot be asked.
  bool Reach() {
    auto version = calls_.GetRaw("/version");
    if (!version) return CannotAsk("", version.error());
    if (auto parsed = api::ParseJson(*version)) {
      report_.server_version = (*parsed)["gitVersion"].AsString();
    }
    auto nodes = calls_.List(client::kNodes);
    const bool ours = report_.server_version.find("+sextant") != std::string::npos;
    report_.mode = ours ? Mode::kSimulated : Mode::kReal;
    if (!nodes) return CannotAsk(" for its nodes", nodes.error());
    if (std::any_of(nodes->items.begin(), nodes->items.end(), SaysSimulated)) {
      report_.mode = Mode::kSimulated;
    }
    nodes_ = GpuNodesOf(nodes->items);
    node_count_ = nodes->items.size();
    TellUnseen();
    return true;
  }

  bool CannotAsk(std::string_view what, const Error& error) {
    const std::string where = options_.server.empty() ? "" : " at " + options_.server;
    report_.error = fmt::format("the cluster{} cannot be asked{}: {}", where, what, error.message);
    report_.remedy = std::string(RemedyFor(error));
    return false;
  }

  // What no Kubernetes API shows, and what this version does not look at.
  void TellUnseen() {
    const std::pair<std::string_view, std::string_view> reasons[] = {
        {"host.nvml", simulated() ? "simulated cards: there is no NVML"
                                  : "the host is not visible through the Kubernetes API"},
        {"rt.cdi", simulated() ? "simulated nodes have no container runtime configuration"
                               : "the runtime's configuration is not visible through the API"},
        {"ctr.cuda",
         simulated() ? "simulated cards compute nothing" : "this version runs no CUDA program"},
        {"serve.ready", "this version asks no model server: nothing is known of serving"}};
    for (const auto& [id, reason] : reasons) {
      Check& check = Find(id);
      Unsupported(check, std::string(reason));
      check.took = Duration{0};
    }
  }

  void Driver() {
    Check& labels = Find("node.labels");
    labels.expected = fmt::format("a node with {}=true", kPciLabel);
    const auto labelled =
        std::count_if(nodes_.begin(), nodes_.end(), [](const GpuNode& n) { return n.labelled; });
    labels.observed = fmt::format("{} of {} nodes", labelled, node_count_);
    if (nodes_.empty()) {
      return Refuse(
          labels, "NFD_LABEL_MISSING",
          fmt::format("none of {} nodes is labelled as having an NVIDIA GPU", node_count_));
    }
    if (labelled == 0) {
      return Unsupported(labels,
                         fmt::format("{} has {}, yet no node is labelled: node feature discovery "
                                     "does not run here, so nothing tells what the host sees",
                                     nodes_.front().name, kGpu));
    }
    std::string summary;
    for (const GpuNode& node : nodes_) {
      if (!node.labelled) continue;
      See(labels, "kube", fmt::format("v1/nodes/{} metadata.labels", node.name), node.facts);
      if (summary.empty()) summary = fmt::format("{}: {}", node.name, node.facts);
    }
    if (labelled > 1) summary += fmt::format(" and {} more nodes", labelled - 1);
    Pass(labels, summary + (simulated() ? " (simulated)" : ""));
  }

  void Plugin() {
    Check& registered = Find("dp.registered");
    int64_t total = 0;
    int64_t allocatable = 0;
    size_t offering = 0;
    const GpuNode* silent = nullptr;
    const GpuNode* bare = nullptr;
    for (const GpuNode& node : nodes_) {
      See(registered, "kube", fmt::format("v1/nodes/{} status", node.name),
          fmt::format("capacity {} allocatable {} ready {} {}", node.capacity, node.allocatable,
                      node.ready, node.ready ? "" : node.ready_message));
      if (!node.ready) {
        if (!silent) silent = &node;  // what it once said is stale
      } else if (node.capacity == 0) {
        if (!bare) bare = &node;
      } else {
        total += node.capacity;
        allocatable += node.allocatable;
        ++offering;
      }
    }
    if (bare) {
      return Refuse(registered, "NOT_REGISTERED",
                    fmt::format("{} has no {} in its capacity: no device plugin is registered",
                                bare->name, kGpu));
    }
    if (silent) {
      return Refuse(registered, "NODE_NOT_READY",
                    fmt::format("{} is not Ready, what it says of its cards is stale: {}",
                                silent->name, silent->ready_message));
    }
    Pass(registered, fmt::format("{} {} on {} node(s)", total, kGpu, offering));
    Check& capacity = Find("node.capacity");
    capacity.expected = fmt::format("{}", total);
    capacity.observed = fmt::format("{}", allocatable);
    if (allocatable == 0) {
      return Refuse(capacity, "ALLOCATABLE_ZERO", "cards are registered but none is allocatable");
    }
    if (allocatable < total) {
      return Refuse(capacity, "UNHEALTHY_DEVICE",
                    fmt::format("{} of {} cards are allocatable", allocatable, total));
    }
    Pass(capacity, fmt::format("{} allocatable on {} node(s)", allocatable, offering));
  }

  void Probe() {
    const PodRun run = prober_.Run(1);
    report_.probed = true;
    report_.pod_log = run.log;
    if (!JudgeCreated(run)) return;
    if (JudgePlaced(run) && JudgeAdmitted(run) && JudgeStarted(run)) JudgeIdentity(run);
    JudgeReleased(run);
  }

  bool JudgeCreated(const PodRun& run) {
    Check& admitted = Find("api.admit");
    if (!run.refused) {
      Pass(admitted, fmt::format("Pod {}/{} was accepted", run.ns, run.name));
      return true;
    }
    const Error& error = *run.refused;
    const auto says = [&](std::string_view text) {
      return error.message.find(text) != std::string::npos;
    };
    if (says("exceeded quota")) {
      Refuse(admitted, "QUOTA", error.message);
    } else if (says("cannot create resource")) {
      Unsupported(admitted, "this user may not run Pods: " + error.message);
    } else if (error.code == 403) {
      Refuse(admitted, "POLICY", error.message);
    } else if (error.code == 422 || error.code == 400) {
      Refuse(admitted, "INVALID", error.message);
    } else {
      Err(admitted, error.message);
    }
    return false;
  }

  // True where the Pod could be followed; else `check` says that it could not.
  bool Followed(const PodRun& run, Check& check) {
    if (run.lost) Err(check, "the Pod could not be followed: " + run.lost->message);
    return !run.lost;
  }

  bool JudgePlaced(const PodRun& run) {
    Check& place = Find("sched.place");
    const Value scheduled = run.Condition("PodScheduled");
    const std::string message(scheduled["message"].AsString());
    See(place, "kube", run.where(), fmt::format("nodeName {} {}", run.node(), message));
    if (!run.node().empty()) {
      Pass(place, fmt::format("placed on {}", run.node()));
      return true;
    }
    if (!Followed(run, place)) return false;
    if (!scheduled) {
      Refuse(place, "NOT_SCHEDULED",
             fmt::format("no scheduler has looked at the Pod within {}",
                         FormatDuration(options_.limits.run)));
      return false;
    }
    const auto requested = Requested({run.name});
    const Unplaced why = ExplainUnplaced(
        NodesNow(), requested ? *requested : std::map<std::string, int64_t>(), message);
    for (const auto& [node, text] : why.by_node) See(place, "kube", "v1/nodes/" + node, text);
    Refuse(place, why.code, why.summary);
    return false;
  }

  // A node name alone is no admission: its kubelet has to have said something.
  bool JudgeAdmitted(const PodRun& run) {
    Check& admit = Find("kubelet.admit");
    const Value status = run.pod["status"];
    const std::string reason(status["reason"].AsString());
    See(admit, "kube", run.where() + " status",
        fmt::format("phase {} reason {} startTime {}", status["phase"].AsString(), reason,
                    status["startTime"].AsString()));
    if (run.container()) {
      Pass(admit, run.allocated.empty()
                      ? fmt::format("the kubelet of {} reports the container", run.node())
                      : fmt::format("the kubelet of {} gave it {}", run.node(),
                                    fmt::join(run.allocated, " ")));
      return true;
    }
    if (!reason.empty()) {
      std::string_view code = "REJECTED";
      for (const Rejection& one : kRejections)
        if (one.reason == reason) code = one.code;
      Refuse(admit, code, fmt::format("{}: {}", reason, status["message"].AsString("no message")));
      return false;
    }
    if (!Followed(run, admit)) return false;
    Refuse(
        admit, "NOT_ACKNOWLEDGED",
        fmt::format("the kubelet of {} has not reported the Pod's container within {}", run.node(),
                    FormatDuration(status["startTime"] ? options_.limits.run
                                                       : options_.limits.acknowledge)));
    return false;
  }

  bool JudgeStarted(const PodRun& run) {
    Check& start = Find("ctr.start");
    const Value state = run.container()["state"];
    See(start, "kube", run.where() + " status.containerStatuses", api::ToJson(state));
    for (const std::string& warning : run.warnings) See(start, "kube", "events", warning);
    if (!run.runtime.empty()) {
      See(start, "kube", fmt::format("v1/nodes/{} status.nodeInfo", run.node()), run.runtime);
    }
    if (run.simulated) return NothingRan(run);
    const Value ended = state["terminated"];
    // A process that never was has no time of its start (kubelet: StartError, exit code 128).
    const bool ran = state["running"] || (ended && ended["reason"].AsString() != "StartError" &&
                                          ended["reason"].AsString() != "ContainerCannotRun");
    if (!ran) {
      if (!Followed(run, start)) return false;
      JudgeNotStarted(run, ended ? ended : state["waiting"]);
      return false;
    }
    const int64_t code = ended["exitCode"].AsInt();
    if (ended && (code == kNoCommand || code == kNoLibrary)) {
      Refuse(Find("rt.probe"), "LIB_NOT_FOUND",
             fmt::format("the driver's {} is not in the container: {}",
                         code == kNoCommand ? "nvidia-smi" : "library", LastLine(run.log)));
    } else {
      Pass(Find("rt.probe"), "a container with a GPU was started");
    }
    // A lab without any isolation answers the capability Pod's command in its own process.
    const std::string_view how =
        run.runtime.starts_with("sextant-built-in://") ? ", as the lab itself answers it" : "";
    Pass(start, ended ? fmt::format("its command ended with {}{}", code, how)
                      : fmt::format("its command runs{}", how));
    return true;
  }

  // What only the command could show stays unseen, however well the Pod looks.
  bool NothingRan(const PodRun& run) {
    report_.mode = Mode::kSimulated;
    report_.allocated = run.allocated;
    for (std::string_view id : {"rt.probe", "ctr.start", "ctr.identity"}) {
      Check& check = Find(id);
      See(check, "kube", run.simulated->ref, run.simulated->text);
      Unsupported(check, fmt::format("simulated: nothing really ran in the Pod's container ({})",
                                     run.simulated->text));
    }
    return false;
  }

  // The runtime's own words tell whether the toolkit below is what is broken.
  void JudgeNotStarted(const PodRun& run, Value why) {
    std::string text =
        fmt::format("{}: {}", why["reason"].AsString("not started"), why["message"].AsString());
    if (!run.warnings.empty()) text += fmt::format(" ({})", fmt::join(run.warnings, "; "));
    for (const RuntimeText& one : kRuntimeTexts) {
      if (text.find(one.text) == std::string::npos) continue;
      return Refuse(Find("rt.probe"), one.code, std::move(text));
    }
    Refuse(Find("ctr.start"), "START_ERROR", std::move(text));
  }

  void JudgeIdentity(const PodRun& run) {
    Check& identity = Find("ctr.identity");
    const std::set<std::string> seen = UuidsIn(run.log);
    const std::string list = fmt::format("{}", fmt::join(seen, " "));
    report_.allocated = run.allocated;
    report_.seen = seen;
    identity.expected =
        run.allocated.empty() ? "exactly 1 GPU" : fmt::format("{}", fmt::join(run.allocated, " "));
    identity.observed = list;
    if (!Followed(run, identity)) return;
    if (run.log_error) return Err(identity, "its log: " + run.log_error->message);
    See(identity, "log", run.where() + "/log", run.log);
    const Value ended = run.container()["state"]["terminated"];
    if (!ended) {
      return Refuse(
          identity, "GPU_NONE",
          fmt::format("nvidia-smi did not end within {}", FormatDuration(options_.limits.run)));
    }
    if (ended["exitCode"].AsInt() != 0) {
      return Refuse(identity, "GPU_NONE",
                    fmt::format("nvidia-smi ended with {}: {}", ended["exitCode"].AsInt(),
                                LastLine(run.log)));
    }
    if (seen.size() != 1) {
      return Refuse(identity, seen.empty() ? "GPU_NONE" : "GPU_EXTRA",
                    fmt::format("the container sees {} GPUs instead of one", seen.size()));
    }
    if (run.allocated.empty()) {
      return Unsupported(identity,
                         fmt::format("the container sees {}; which card the kubelet gave is not "
                                     "shown: the Pod's status has no allocatedResourcesStatus "
                                     "(feature gate ResourceHealthStatus)",
                                     list));
    }
    if (seen != run.allocated) {
      return Refuse(identity, "GPU_WRONG",
                    fmt::format("the container sees {}, the kubelet gave {}", list,
                                fmt::join(run.allocated, " ")));
    }
    Pass(identity, fmt::format("the container sees {}, the card that the kubelet gave", list));
  }

  std::vector<GpuNode> NodesNow() {
    auto nodes = calls_.List(client::kNodes);
    return nodes ? GpuNodesOf(nodes->items) : nodes_;
  }

  // What Pods ask for, without those of the preflight itself.
  Result<std::map<std::string, int64_t>> Requested(const std::set<std::string>& without) {
    ASSIGN_OR_RETURN(struct client::List pods, calls_.List(client::kPods));
    std::erase_if(pods.items,
                  [&](const Object& pod) { return without.contains(std::string(pod.name())); });
    return RequestedCards(pods.items);
  }

  // As its container lists them; of a simulated one the kubelet's word is all that there is.
  static std::set<std::string> CardsOf(const PodRun& run) {
    return run.simulated ? run.allocated : UuidsIn(run.log);
  }

  // The card has to come back whatever came before; that is seen when it is given out again.
  void JudgeReleased(const PodRun& run) {
    Check& free = Find("free.after");
    const Status gone = prober_.Remove(run);
    See(free, "kube", run.where(), gone ? "gone" : gone.error().message);
    if (!gone && !run.silent()) return Refuse(free, "TERMINATING_LONG", gone.error().message);
    const std::set<std::string> seen = CardsOf(run);
    if (Find("kubelet.admit").status != CheckStatus::kPassed || seen.size() != 1) {
      free.blocked_by = {StopOrSelf("ctr.identity")};
      free.reason = fmt::format("blocked by {}; the Pod {}", free.blocked_by.front(),
                                gone ? "is gone" : "goes when its kubelet answers");
      return;
    }
    JudgeAgain(free, run.node(), *seen.begin(), {run.name});
  }

  std::string StopOrSelf(std::string_view otherwise) const {
    const Check* stop = StopOf(report_.checks);
    return stop ? stop->id : std::string(otherwise);
  }

  Result<int64_t> FreeOn(const std::string& node, const std::set<std::string>& without) {
    ASSIGN_OR_RETURN(const auto requested, Requested(without));
    ASSIGN_OR_RETURN(const struct client::List nodes, calls_.List(client::kNodes));
    const auto asked = requested.find(node);
    for (const GpuNode& one : GpuNodesOf(nodes.items)) {
      if (one.name == node) return one.allocatable - (asked == requested.end() ? 0 : asked->second);
    }
    return 0;
  }

  // A second Pod gets every card of the node that is free: the first one's is among them.
  void JudgeAgain(Check& free, const std::string& node, const std::string& card,
                  std::set<std::string> ours) {
    const Result<int64_t> counted = FreeOn(node, ours);
    if (!counted) {
      return Unsupported(free, fmt::format("the Pod is gone; which cards of {} are free cannot be "
                                           "seen: {}",
                                           node, counted.error().message));
    }
    const int64_t cards = *counted;
    if (cards < 1) {
      return Unsupported(free, fmt::format("the Pod is gone; other Pods took the cards of {} "
                                           "before it could be seen that its own is free",
                                           node));
    }
    const PodRun again = prober_.Run(cards, node);
    ours.insert(again.name);
    const std::set<std::string> seen = CardsOf(again);
    const Result<int64_t> after = FreeOn(node, ours);
    const bool others_came = !after || *after < cards;
    if (again.simulated) {
      See(free, "kube", again.where() + " status.allocatedResourcesStatus",
          fmt::format("{}", fmt::join(seen, " ")));
    } else {
      See(free, "log", again.where() + "/log", again.log);
    }
    const Status gone = prober_.Remove(again);
    free.expected = card;
    free.observed = fmt::format("{}", fmt::join(seen, " "));
    if (!gone) return Refuse(free, "TERMINATING_LONG", gone.error().message);
    if (seen.contains(card)) {
      return Pass(free, fmt::format("both Pods are gone; the second got {} free card(s) of {}, the "
                                    "first one's among them{}",
                                    cards, node, again.simulated ? ", as the kubelet says" : ""));
    }
    if (again.refused || again.lost || others_came) {
      return Unsupported(free, fmt::format("the Pod is gone; that its card is free could not be "
                                           "seen: {}",
                                           again.refused ? again.refused->message
                                           : again.lost  ? again.lost->message
                                                         : "other Pods took cards meanwhile"));
    }
    const Value status = again.pod["status"];
    const std::string_view message = status["message"].AsString(
        again.Condition("PodScheduled")["message"].AsString("the second Pod did not get it"));
    Refuse(free, "DEVICE_HELD",
           fmt::format("{} did not come back: {} of {} are free, {}", card, cards, node, message));
  }

  // One reason for everything that was not judged.
  void ExplainSkipped() {
    const Check* stop = StopOf(report_.checks);
    const Check* unproven = nullptr;  // what could not be seen and stands in the way
    for (const Check& check : report_.checks) {
      if (!unproven && check.required && check.status == CheckStatus::kUnsupported) {
        unproven = &check;
      }
    }
    for (Check& check : report_.checks) {
      if (check.status != CheckStatus::kSkipped || !check.reason.empty()) continue;
      if (!report_.error.empty()) {
        check.reason = "the cluster could not be asked";
        continue;
      }
      const Check* block = stop ? stop : unproven;
      if (!stop && !options_.probe && FindCheckKind(check.id)->by_probe) {
        check.reason = kNotAsked;
      } else if (block) {
        check.blocked_by = {block->id};
        check.reason = "blocked by " + block->id;
      }
    }
  }

  client::Blocking calls_;
  const Clock& clock_;
  const WalkOptions& options_;
  Prober prober_;
  Report report_;
  std::vector<GpuNode> nodes_;
  size_t node_count_ = 0;
};

}  // namespace

Report Walk(client::Client& client, const Clock& clock, Random& random,
            const WalkOptions& options) {
  return Walker(client, clock, random, options).Run();
}

}  // namespace sextant::preflight
