#include "kubelet/kubelet.h"

#include <fmt/format.h>

#include <deque>
#include <filesystem>
#include <set>

#include "base/alive.h"
#include "base/check.h"
#include "kubelet/admission.h"
#include "kubelet/device_manager.h"
#include "kubelet/ip_pool.h"
#include "kubelet/node_reporter.h"
#include "kubelet/pod_storage.h"
#include "kubelet/pod_worker.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

using api::Object;

// A disk can be full before a real kubelet looks again (ten seconds).
constexpr Duration kStorageInterval = std::chrono::seconds(1);
// Whoever keeps less is not worth an eviction for the sake of the disk.
constexpr int64_t kWorthEvicting = 16 << 20;

struct Measured {
  std::string uid;
  PodStorage used;
};

}  // namespace

class Kubelet::Impl {
 public:
  template <typename F>
  auto Guard(F f) {
    return alive_.Guard(std::move(f));
  }

  Impl(KubeletParts parts, KubeletOptions options, plugin::Registrar& registrar)
      : parts_(parts),
        options_(std::move(options)),
        registrar_(registrar),
        ips_(options_.pod_cidr) {}

  ~Impl() { alive_.End(); }

  void Start() {
    CHECK(!life_);
    life_ = std::make_unique<Life>();
    life_->events = std::make_unique<client::EventRecorder>(
        parts_.client, client::EventSource{"kubelet", options_.node});
    const std::string checkpoint = options_.state_directory.empty()
                                       ? std::string()
                                       : options_.state_directory + "/kubelet_internal_checkpoint";
    life_->devices = std::make_unique<DeviceManager>(parts_.client.executor(), parts_.files,
                                                     checkpoint, [this] { OnDevices(); });
    life_->node = std::make_unique<NodeReporter>(parts_.client, parts_.machine, *life_->devices,
                                                 *life_->events, options_, parts_.runtime.Level());
    life_->devices->Load(Guard([this] { life_->node->Start(Guard([this] { Follow(); })); }));
  }

  void Stop() {
    if (!life_) return;
    for (auto& [uid, worker] : life_->workers) worker->PowerOff();
    alive_.End();
    life_.reset();
  }

  bool running() const { return life_ != nullptr; }
  const KubeletOptions& options() const { return options_; }
  const KubeletParts& parts() const { return parts_; }
  DeviceManager* devices() { return life_ ? life_->devices.get() : nullptr; }

  PodWorker* Find(std::string_view ns, std::string_view name) const {
    if (!life_) return nullptr;
    for (const auto& [uid, worker] : life_->workers) {
      const Object& pod = worker->record().pod;
      if (pod.name() == name && pod.ns() == ns) return worker.get();
    }
    return nullptr;
  }

  std::vector<Object> Pods() const {
    std::vector<Object> pods;
    if (!life_) return pods;
    for (const auto& [uid, worker] : life_->workers) pods.push_back(worker->record().pod);
    return pods;
  }

 private:
  // What exists between Start and Stop.
  struct Life {
    std::unique_ptr<client::EventRecorder> events;
    std::unique_ptr<DeviceManager> devices;
    std::unique_ptr<NodeReporter> node;
    std::map<std::string, std::unique_ptr<PodWorker>> workers;  // by uid
    std::deque<std::string> admissions;                         // uids that wait, in order
    bool admitting = false;
    bool synced = false;
    std::shared_ptr<void> feed;
    bool measuring = false;  // from a Pod that keeps files on the disk until there is none
  };

  void Follow() {
    life_->feed = parts_.feed.Follow(
        options_.node,
        {Guard([this](const client::Change& change) { OnPod(change); }),
         Guard([this](const client::Change& change) { life_->node->OnNode(change); })});
    parts_.feed.OnSynced(Guard([this] {
      std::set<std::string> uids;
      for (const Object& pod : parts_.feed.PodsOf(options_.node)) uids.emplace(pod.uid());
      life_->devices->Retain(uids);
      if (options_.materialise) RemoveOrphans(std::move(uids));
    }));
  }

  // Directories of Pods that are no more.
  void RemoveOrphans(std::set<std::string> uids) {
    parts_.files.Post([directory = options_.state_directory + "/pods", uids = std::move(uids)] {
      std::error_code error;
      std::vector<std::filesystem::path> orphans;
      for (const auto& entry : std::filesystem::directory_iterator(directory, error))
        if (!uids.contains(entry.path().filename().string())) orphans.push_back(entry.path());
      for (const auto& path : orphans) std::filesystem::remove_all(path, error);
    });
  }

  void OnPod(const client::Change& change) {
    const std::string uid(change.object().uid());
    if (change.before && change.after && change.before.uid() != change.after.uid()) {
      Forgotten(std::string(change.before.uid()));
    }
    if (change.deleted()) return Forgotten(uid);
    const auto found = life_->workers.find(uid);
    if (found != life_->workers.end()) return found->second->Update(change.after);
    Add(change.after);
  }

  void Forgotten(const std::string& uid) {
    const auto found = life_->workers.find(uid);
    if (found != life_->workers.end()) found->second->Vanished();
  }

  void Add(const Object& pod) {
    const std::string uid(pod.uid());
    WorkerParts parts{parts_.client,
                      parts_.runtime,
                      parts_.files,
                      parts_.components,
                      registrar_,
                      *life_->events,
                      *life_->devices,
                      options_,
                      [this] { return parts_.feed.Node(options_.node); },
                      [this] { return ips_.Take(); },
                      [this](const std::string& ip) { ips_.Give(ip); }};
    auto worker = std::make_unique<PodWorker>(std::move(parts), pod,
                                              Guard([this, uid] { life_->workers.erase(uid); }));
    PodWorker& added = *worker;
    life_->workers.emplace(uid, std::move(worker));
    if (added.AlreadyEnded()) return added.EndAtOnce();
    life_->admissions.push_back(uid);
    AdmitNext();
  }

  // One Pod after another, so that no two count on the same card.
  void AdmitNext() {
    if (life_->admitting) return;
    while (!life_->admissions.empty()) {
      const std::string uid = life_->admissions.front();
      life_->admissions.pop_front();
      const auto found = life_->workers.find(uid);
      if (found == life_->workers.end() || found->second->stopping()) continue;
      life_->admitting = true;
      life_->devices->Allocate(found->second->record().pod, Guard([this, uid](Status allocated) {
                                 Admit(uid, std::move(allocated));
                               }));
      return;
    }
  }

  void Admit(const std::string& uid, Status allocated) {
    PodWorker* worker = Waiting(uid);
    if (!worker) return Admitted();
    if (!allocated) {
      worker->Reject(AllocationFailed(allocated.error()));
      return Admitted();
    }
    if (!Refused(*worker, parts_.feed.Node(options_.node))) {
      Begin(*worker);
      return Admitted();
    }
    // What this kubelet has seen of its Node may be old: it is looked at anew before a refusal.
    parts_.client.Get(client::kNodes, {"", options_.node}, Guard([this, uid](Result<Object> node) {
                        AdmitAnew(uid, node ? *node : Object());
                      }));
  }

  void AdmitAnew(const std::string& uid, const Object& node) {
    if (PodWorker* worker = Waiting(uid)) {
      if (auto refusal = Refused(*worker, node)) {
        life_->devices->Release(uid);
        worker->Reject(*refusal);
      } else {
        Begin(*worker);
      }
    }
    Admitted();
  }

  void Begin(PodWorker& worker) {
    worker.Begin();
    if (!life_->measuring) MeasureStorageLater();
  }

  void MeasureStorageLater() {
    std::vector<std::pair<std::string, std::string>> pods;  // uid, directory
    for (const auto& [uid, worker] : life_->workers) {
      if (worker->active() && KeepsOnDisk(worker->record().pod))
        pods.emplace_back(uid, worker->PodDirectory());
    }
    life_->measuring = options_.materialise && !pods.empty();
    if (!life_->measuring) return;
    parts_.client.executor().After(
        kStorageInterval,
        Guard([this, pods = std::move(pods)]() mutable { MeasureOnDisk(std::move(pods)); }));
  }

  void MeasureOnDisk(std::vector<std::pair<std::string, std::string>> pods) {
    Loop& loop = parts_.client.executor();
    auto told =
        Guard([this](const std::vector<Measured>& all, int64_t free) { OnStorage(all, free); });
    parts_.files.Post([&loop, pods = std::move(pods), told = std::move(told),
                       state = options_.state_directory]() mutable {
      std::vector<Measured> all;
      for (const auto& [uid, directory] : pods) all.push_back({uid, MeasureStorage(directory)});
      std::error_code error;
      const auto space = std::filesystem::space(state, error);
      const int64_t free = error ? INT64_MAX : static_cast<int64_t>(space.available);
      loop.Post(
          [told = std::move(told), all = std::move(all), free]() mutable { told(all, free); });
    });
  }

  // Limits of their own first; one Pod at a time for the sake of the disk.
  void OnStorage(const std::vector<Measured>& all, int64_t free) {
    const Measured* largest = nullptr;
    for (const Measured& one : all) {
      const auto found = life_->workers.find(one.uid);
      if (found == life_->workers.end() || found->second->stopping()) continue;
      const std::string excess = StorageExcess(found->second->record().pod, one.used);
      if (!excess.empty()) {
        found->second->Evict(excess);
      } else if (!largest || largest->used.Total() < one.used.Total()) {
        largest = &one;
      }
    }
    if (free < options_.least_free_bytes && largest && largest->used.Total() >= kWorthEvicting) {
      life_->workers.at(largest->uid)->Evict(LowOnStorage(options_.least_free_bytes, free));
    }
    MeasureStorageLater();
  }

  void Admitted() {
    life_->admitting = false;
    AdmitNext();
  }

  // The Pod that waits for admission; null, and its devices free, if it was deleted meanwhile.
  PodWorker* Waiting(const std::string& uid) {
    const auto found = life_->workers.find(uid);
    if (found != life_->workers.end() && !found->second->stopping()) return found->second.get();
    life_->devices->Release(uid);
    return nullptr;
  }

  std::optional<Refusal> Refused(const PodWorker& worker, const Object& node) {
    std::vector<Object> others;
    for (const auto& [uid, other] : life_->workers)
      if (other->active()) others.push_back(other->record().pod);
    return CheckFit(worker.record().pod, node, others, *life_->devices);
  }

  void OnDevices() {
    life_->node->Changed();
    for (auto& [uid, worker] : life_->workers) worker->DevicesChanged();
  }

  const KubeletParts parts_;
  const KubeletOptions options_;
  plugin::Registrar& registrar_;
  IpPool ips_;
  std::unique_ptr<Life> life_;
  Alive alive_;
};

Kubelet::Kubelet(KubeletParts parts, KubeletOptions options)
    : impl_(std::make_shared<Impl>(parts, std::move(options), *this)) {}

Kubelet::~Kubelet() { impl_->Stop(); }

void Kubelet::Start() { impl_->Start(); }
void Kubelet::Stop() { impl_->Stop(); }
bool Kubelet::running() const { return impl_->running(); }
const std::string& Kubelet::node() const { return impl_->options().node; }
Runtime& Kubelet::runtime() const { return impl_->parts().runtime; }
Executor& Kubelet::files() const { return impl_->parts().files; }
Loop& Kubelet::loop() const { return impl_->parts().client.executor(); }
std::vector<Object> Kubelet::Pods() const { return impl_->Pods(); }

void Kubelet::Register(std::shared_ptr<plugin::DevicePlugin> plugin) {
  if (DeviceManager* devices = impl_->devices()) devices->Register(std::move(plugin));
}

void Kubelet::Unregister(const std::string& resource) {
  if (DeviceManager* devices = impl_->devices()) devices->Unregister(resource);
}

Result<ContainerLog> Kubelet::FindLog(std::string_view ns, std::string_view pod,
                                      std::string_view container, bool previous) const {
  const PodWorker* worker = impl_->Find(ns, pod);
  if (!worker) {
    Error error = NotFound({"", "pods"}, pod);
    error.message = fmt::format("pod \"{}\" does not exist", pod);
    return Fail(std::move(error));
  }
  const ContainerState* state = worker->record().Find(container);
  if (!state) {
    Error error = NotFound({"", "pods"}, pod);
    error.message = fmt::format("container \"{}\" not found in pod \"{}\"", container, pod);
    return Fail(std::move(error));
  }
  if (previous && (!state->last || state->last->container_id.empty())) {
    return Fail(BadRequest(fmt::format(
        "previous terminated container \"{}\" in pod \"{}\" not found", container, pod)));
  }
  ContainerLog log;
  if (previous) {
    // The instance before the one that runs or ran last; while it waits to be started again, `last`
    // is that one itself.
    const bool waits = state->phase == ContainerState::Phase::kWaiting;
    log.path = worker->LogPath(state->name, state->restart_count - !waits);
    log.container_id = state->last->container_id;
    return log;
  }
  if (state->phase == ContainerState::Phase::kWaiting && !state->last) {
    const std::string reason =
        state->waiting_reason.empty()
            ? (IsInit(worker->record().containers[0].kind) ? "PodInitializing"
                                                           : "ContainerCreating")
            : state->waiting_reason;
    return Fail(BadRequest(fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}",
                                       container, pod, reason)));
  }
  log.path = worker->LogPath(state->name, state->restart_count);
  log.container_id = state->id;
  log.running = state->running();
  return log;
}

Result<std::string> Kubelet::FindRunning(std::string_view ns, std::string_view pod,
                                         std::string_view container) const {
  const PodWorker* worker = impl_->Find(ns, pod);
  if (!worker) {
    Error error = NotFound({"", "pods"}, pod);
    error.message = "pod does not exist";
    return Fail(std::move(error));
  }
  const ContainerState* state = worker->record().Find(container);
  if (!state || !state->running()) {
    Error error = TextError(fmt::format("container not found (\"{}\")", container));
    error.code = 500;
    return Fail(std::move(error));
  }
  return state->id;
}

Result<std::string> Kubelet::FindSandbox(std::string_view ns, std::string_view pod) const {
  const PodWorker* worker = impl_->Find(ns, pod);
  if (!worker || !worker->record().sandbox_ready) {
    Error error = NotFound({"", "pods"}, pod);
    error.message = "pod does not exist";
    return Fail(std::move(error));
  }
  return std::string(worker->record().pod.uid());
}

bool Kubelet::ContainerRuns(std::string_view ns, std::string_view pod,
                            const std::string& container_id) const {
  const PodWorker* worker = impl_->Find(ns, pod);
  if (!worker) return false;
  for (const ContainerState& state : worker->record().containers)
    if (state.id == container_id) return state.running();
  return false;
}

std::map<std::string, std::map<std::string, std::string>> Kubelet::DevicesInUse() const {
  DeviceManager* devices = impl_->devices();
  if (!devices) return {};
  return devices->InUse();
}

}  // namespace sextant::kubelet
