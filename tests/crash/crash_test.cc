// Kills a real lab at random moments under load, again and again, and looks whether anything that
// anybody was told is lost.
//
//   crash_test --sextant build/release/sextant [--kills 200] [--seconds 60] [--seed N]
//
// It ends after so many kills or seconds, whichever comes first (0: no limit). The seed decides the
// load and the moments; SEXTANT_SEED sets it too. Exit status: 0 nothing lost, 1 not, or too few
// kills (kLeastKills) or no resumed watch to tell.
//
// After each kill: every acknowledged write is there with its uid and resourceVersion, requests
// without an answer happened whole or not at all, revisions never go back, the watcher resumes
// without a gap or gets 410. Every kKillsToSettle kills the load rests, until every Pod runs and
// every card that is held is held by exactly one of them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <set>

#include "api/json.h"
#include "base/file.h"
#include "client/blocking.h"
#include "lab_process.h"
#include "load.h"
#include "net/io.h"

namespace sextant::crash {
namespace {

using namespace std::chrono_literals;

constexpr Duration kServeLimit = 60s;
constexpr Duration kAnswerLimit = 30s;
constexpr Duration kSettleLimit = 60s;
constexpr uint64_t kKillsToSettle = 25;
constexpr uint64_t kLeastKills = 10;
constexpr uint64_t kLeastSettled = 5;  // so many marks, and none that was the last revision?
constexpr int64_t kStartMs = 100;      // while the lab starts
constexpr int64_t kLoadMs = 150;       // under load
constexpr size_t kMaxCheckpoint = 16 << 20;

struct Wanted {
  std::string sextant;
  uint64_t kills = 200;
  uint64_t seconds = 60;
  uint64_t seed = 0;
};

// One life of the lab, as its clients see it.
struct Session {
  Session(net::IoThread& io, Loop& loop, client::RemoteOptions options)
      : client(io, loop, std::move(options)), calls(client) {}
  client::RemoteClient client;
  client::Blocking calls;
};

class Run {
 public:
  Run(Wanted wanted, std::string directory)
      : wanted_(std::move(wanted)),
        place_{wanted_.sextant, std::move(directory), fmt::format("crash-{}", getpid())},
        random_(wanted_.seed),
        load_(random_) {}

  Status Prepare() {
    RETURN_IF_ERROR(RunCommand(
        place_, {"up", "--name", place_.lab, "--nodes", "3", "--gpu-nodes", "all", "--gpu-pool",
                 "default=l40s:4", "--runtime", "simulated", "--wait", "60s"}));
    return RunCommand(place_, {"stop", "--name", place_.lab});
  }

  Status Kills() {
    const Duration end = clock_.Monotonic() + std::chrono::seconds(wanted_.seconds);
    while ((wanted_.kills == 0 || kills_ < wanted_.kills) &&
           (wanted_.seconds == 0 || clock_.Monotonic() < end)) {
      RETURN_IF_ERROR(OneLife(kills_ % kKillsToSettle == kKillsToSettle - 1));
      ++kills_;
    }
    RETURN_IF_ERROR(OneLife(true));
    return Enough();
  }

  void Tell() const {
    const Load::Counts counts = load_.counts();
    fmt::print(
        "{} kills, {} writes acknowledged, {} events heard, watches resumed {} times and expired "
        "{} times, settled {} times\n",
        kills_, counts.answers, counts.events, counts.resumed, counts.expired, settled_);
  }

 private:
  template <typename F>
  auto OnLoop(F work) {
    std::promise<decltype(work())> promise;
    loop_.Post([&] {
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        promise.set_value();
      } else {
        promise.set_value(work());
      }
    });
    return promise.get_future().get();
  }

  Status OneLife(bool settle) {
    ASSIGN_OR_RETURN(LabProcess lab, LabProcess::Spawn(place_));
    if (!settle && random_.Below(5) == 0) {
      Sleep(kStartMs);
      return lab.Kill();
    }
    ASSIGN_OR_RETURN(client::RemoteOptions options, lab.Access(kServeLimit));
    Session session(io_, loop_, std::move(options));
    RETURN_IF_ERROR(StartLoad(session));
    Sleep(kLoadMs);
    Status status;
    if (settle) {
      status = Rest();
      if (status) status = Settle(session);
      if (status) status = HearTheLast(session);
    }
    const Status killed = lab.Kill();
    const Status rested = Rest();
    OnLoop([&] { load_.Detach(); });
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(killed);
    RETURN_IF_ERROR(rested);
    return Complaints();
  }

  // A run that hardly killed, or whose watcher never came back, has shown nothing.
  Status Enough() const {
    const uint64_t least = wanted_.kills == 0 ? kLeastKills : std::min(wanted_.kills, kLeastKills);
    if (kills_ < least) {
      return Fail(InternalError(fmt::format("only {} kills in {} s, at least {} are wanted", kills_,
                                            wanted_.seconds, least)));
    }
    if (settled_ >= kLeastSettled && load_.counts().resumed == 0)
      return Fail(InternalError("no watch was ever resumed"));
    return {};
  }

  Status StartLoad(Session& session) {
    client::ListOptions options;
    options.ns = kNamespace;
    ASSIGN_OR_RETURN(auto config_maps, session.calls.List(client::kConfigMaps, options));
    ASSIGN_OR_RETURN(auto pods, session.calls.List(client::kPods, options));
    ASSIGN_OR_RETURN(auto deployments, session.calls.List(client::kDeployments, options));
    for (const api::Object& pod : pods.items)
      if (pod["status"]["phase"].AsString() == "Running") ran_.emplace(pod.uid());
    OnLoop([&] {
      load_.Start(session.client, config_maps.items, pods.items, deployments.items,
                  std::strtoull(config_maps.resource_version.c_str(), nullptr, 10));
    });
    return Complaints();
  }

  // No new requests, and an answer or a failure for each that is under way.
  Status Rest() {
    OnLoop([&] { load_.Stop(); });
    const Duration end = clock_.Monotonic() + kAnswerLimit;
    while (OnLoop([&] { return load_.under_way(); }) > 0) {
      if (clock_.Monotonic() > end) return Fail(InternalError("a request got no answer"));
      usleep(1000);
    }
    return {};
  }

  Status Settle(Session& session) {
    const Duration end = clock_.Monotonic() + kSettleLimit;
    for (;;) {
      Result<std::string> missing = Missing(session);
      if (!missing) return Fail(std::move(missing).error());
      if (missing->empty()) break;
      if (clock_.Monotonic() > end)
        return Fail(InternalError(fmt::format("never came to rest: {}", *missing)));
      usleep(50'000);
    }
    ++settled_;
    return {};
  }

  // A lab that starts again keeps no history, so a watch resumes only from the very last revision:
  // that of a mark, unless a lease is renewed between its being heard and the kill.
  Status HearTheLast(Session& session) {
    ASSIGN_OR_RETURN(
        const api::Object mark,
        api::ParseJson(fmt::format(
            R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"mark-{}"}}}})",
            settled_)));
    ASSIGN_OR_RETURN(
        const api::Object made,
        session.calls.Create(client::kConfigMaps, {std::string(kNamespace), ""}, mark));
    const Revision revision = RevisionOf(made);
    const Duration end = clock_.Monotonic() + kAnswerLimit;
    while (OnLoop([&] { return load_.heard(); }) < revision) {
      if (clock_.Monotonic() > end) return Fail(InternalError("a mark was never heard"));
      usleep(1000);
    }
    return {};
  }

  // What keeps the lab from being at rest; empty: nothing.
  Result<std::string> Missing(Session& session) {
    if (!OnLoop([&] { return load_.WatcherAgrees(); })) return "the watcher lags";
    client::ListOptions options;
    options.ns = kNamespace;
    ASSIGN_OR_RETURN(auto pods, session.calls.List(client::kPods, options));
    std::map<std::string, std::set<std::string>> holders;  // by node: uids
    size_t replicas = 0, own = 0;
    for (const api::Object& pod : pods.items) {
      const bool of_deployment = pod["metadata"]["labels"]["app"].AsString() == "web";
      if (!of_deployment) ++own;
      if (Refused(pod)) continue;
      const std::string_view phase = pod["status"]["phase"].AsString();
      if (phase != "Running" || pod["metadata"]["deletionTimestamp"])
        return fmt::format("{} is {} {}", pod.name(), phase, pod["status"]["message"].AsString());
      ran_.emplace(pod.uid());
      holders[std::string(pod["spec"]["nodeName"].AsString())].emplace(pod.uid());
      if (of_deployment) ++replicas;
    }
    const auto [wanted, created] =
        OnLoop([&] { return std::pair(load_.replicas(), load_.Pods().size()); });
    if (wanted >= 0 && replicas != static_cast<size_t>(wanted))
      return fmt::format("{} replicas instead of {}", replicas, wanted);
    if (own != created) return fmt::format("{} Pods instead of {}", own, created);
    ASSIGN_OR_RETURN(auto nodes, session.calls.List(client::kNodes, {}));
    for (const api::Object& node : nodes.items) {
      const std::string name(node.name());
      ASSIGN_OR_RETURN(std::string wrong, CardsOf(name, holders[name]));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  // A Pod that was bound and not yet admitted when the lab died, and that came to its kubelet
  // before the device plugin did: a real node that boots refuses it as well. One that ran never is.
  bool Refused(const api::Object& pod) const {
    return pod["status"]["phase"].AsString() == "Failed" &&
           pod["status"]["reason"].AsString() == "UnexpectedAdmissionError" &&
           !ran_.contains(std::string(pod.uid()));
  }

  // The device manager's file of a node against the Pods that must hold one card each.
  Result<std::string> CardsOf(const std::string& node, const std::set<std::string>& holders) {
    const std::string path =
        fmt::format("{}/nodes/{}/kubelet_internal_checkpoint", place_.state(), node);
    const Result<std::string> text = ReadFile(path, kMaxCheckpoint);
    if (!text) return holders.empty() ? Result<std::string>("") : Fail(text.error());
    ASSIGN_OR_RETURN(const api::Object checkpoint, api::ParseJson(*text));
    std::set<std::string> cards, seen;
    for (api::Value entry : checkpoint["entries"].items()) {
      const std::string uid(entry["podUID"].AsString());
      if (!holders.contains(uid)) return fmt::format("{}: cards held by nobody ({})", node, uid);
      if (entry["deviceIDs"].size() != 1 || !seen.insert(uid).second)
        return fmt::format("{}: {} holds more or less than its card", node, uid);
      if (!cards.emplace(entry["deviceIDs"].at(0).AsString()).second)
        return fmt::format("{}: a card is held twice", node);
    }
    if (seen != holders)
      return fmt::format("{}: {} Pods hold cards, {} should", node, seen.size(), holders.size());
    return "";
  }

  Status Complaints() {
    const std::vector<std::string> all = OnLoop([&] { return load_.TakeComplaints(); });
    if (all.empty()) return {};
    return Fail(
        InternalError(fmt::format("after {} kills:\n  {}", kills_, fmt::join(all, "\n  "))));
  }

  void Sleep(int64_t most_ms) {
    const uint64_t us =
        OnLoop([&] { return random_.Below(static_cast<uint64_t>(most_ms) * 1000); });
    usleep(static_cast<useconds_t>(us));
  }

  const Wanted wanted_;
  const Place place_;
  Random random_;  // on the loop, once the load has begun
  RealClock clock_;
  uint64_t kills_ = 0;
  uint64_t settled_ = 0;
  std::set<std::string> ran_;  // uids of Pods that were seen Running
  Load load_;
  net::IoThread io_{"io", clock_};
  EventLoop loop_{"load", clock_};
};

int Usage() {
  fmt::print(stderr, "usage: crash_test --sextant PROGRAM [--kills N] [--seconds N] [--seed N]\n");
  return 2;
}

int Main(int argc, char** argv) {
  Wanted wanted;
  const char* given = getenv("SEXTANT_SEED");
  wanted.seed = given ? std::strtoull(given, nullptr, 10) : RandomSeed();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    const uint64_t number = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--sextant") {
      wanted.sextant = argv[i + 1];
    } else if (flag == "--kills") {
      wanted.kills = number;
    } else if (flag == "--seconds") {
      wanted.seconds = number;
    } else if (flag == "--seed") {
      wanted.seed = number;
    } else {
      return Usage();
    }
  }
  if (wanted.sextant.empty() || argc % 2 == 0) return Usage();
  fmt::print("SEXTANT_SEED={}\n", wanted.seed);
  std::fflush(stdout);
  auto directory = TempDir::Make("crash");
  if (!directory) {
    fmt::print(stderr, "{}\n", directory.error().message);
    return 1;
  }
  Run run(wanted, directory->path());
  Status status = run.Prepare();
  if (status) status = run.Kills();
  run.Tell();
  if (!status)
    fmt::print(stderr, "FAILED (SEXTANT_SEED={}): {}\n", wanted.seed, status.error().message);
  return status ? 0 : 1;
}

}  // namespace
}  // namespace sextant::crash

int main(int argc, char** argv) { return sextant::crash::Main(argc, argv); }
