#include "load.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"

namespace sextant::crash {
namespace {

constexpr int kConfigMapWriters = 4;
constexpr int kConfigMapsEach = 6;
constexpr int kPodWriters = 2;
constexpr int kPodsEach = 3;
constexpr int kMaxReplicas = 5;  // with the Pods above: fewer than the lab has GPUs
constexpr std::string_view kDeployment = "web";

std::string TextOf(const api::Object& object) {
  return std::string(object["data"]["text"].AsString());
}
std::string LabelOf(const api::Object& object) {
  return std::string(object["metadata"]["labels"]["n"].AsString());
}
std::string ReplicasOf(const api::Object& object) {
  return std::to_string(object["spec"]["replicas"].AsInt());
}

api::Object Parse(const std::string& text) { return api::ParseJson(text).value(); }

api::Object ConfigMap(const std::string& name, const std::string& text) {
  return Parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"{}"}},)"
      R"("data":{{"text":"{}"}}}})",
      name, kNamespace, text));
}

std::string PodSpec() {
  return R"({"terminationGracePeriodSeconds":0,"containers":[{"name":"main",)"
         R"("image":"registry.example/train:1","resources":{"limits":{"nvidia.com/gpu":"1"}}}]})";
}

api::Object Pod(const std::string& name, const std::string& label) {
  return Parse(
      fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"{}",)"
                  R"("labels":{{"n":"{}"}}}},"spec":{}}})",
                  name, kNamespace, label, PodSpec()));
}

api::Object Deployment(int replicas) {
  return Parse(fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{}","namespace":"{}"}},)"
      R"("spec":{{"replicas":{},"selector":{{"matchLabels":{{"app":"web"}}}},)"
      R"("template":{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{}}}}}}})",
      kDeployment, kNamespace, replicas, PodSpec()));
}

// The lab may say these at any time without having decided anything about the object.
bool LeavesInDoubt(const Error& error) {
  return error.code == client::kTransport || error.code == 429 || error.code == 500 ||
         error.code == 503 || error.code == 504;
}

}  // namespace

Load::Load(Random& random)
    : random_(random),
      config_maps_("configmap", false, &TextOf, &newest_),
      pods_("pod", true, &LabelOf, &newest_),
      deployments_("deployment", true, &ReplicasOf, &newest_) {}

void Load::Start(client::Client& client, const std::vector<api::Object>& config_maps,
                 const std::vector<api::Object>& pods, const std::vector<api::Object>& deployments,
                 Revision listed_at) {
  client_ = &client;
  running_ = true;
  if (listed_at < newest_)
    complaints_.push_back(fmt::format("the lab is at revision {} after {}", listed_at, newest_));
  newest_ = std::max(newest_, listed_at);
  CheckHeard(config_maps);
  config_maps_.Check(config_maps);
  pods_.Check(pods);
  deployments_.Check(deployments);
  resuming_ = heard_ > 0;
  WatchFrom(heard_ > 0 ? heard_ : listed_at);
  for (int i = 0; i < kConfigMapWriters; ++i) NextConfigMap(i);
  for (int i = 0; i < kPodWriters; ++i) NextPod(i);
  NextReplicas();
}

void Load::Detach() {
  watch_.reset();
  client_ = nullptr;
}

// ---- writers ----

void Load::Send(Ledger& ledger, client::Gvr gvr, Verb verb, std::string name, api::Object object,
                std::string data, std::function<void()> next) {
  ledger.Ask(name, verb, std::move(data));
  ++under_way_;
  auto done = [this, &ledger, name, next = std::move(next)](Result<api::Object> answer) {
    --under_way_;
    if (!answer) {
      if (!LeavesInDoubt(answer.error()))
        complaints_.push_back(fmt::format("{}: {}", name, answer.error().message));
      return;
    }
    ledger.Answer(name, *answer);
    if (running_) next();
  };
  const client::ObjectName place{std::string(kNamespace), name};
  if (verb == Verb::kCreate) {
    client_->Create(gvr, place, std::move(object), {}, std::move(done));
  } else if (verb == Verb::kUpdate) {
    client_->Patch(gvr, place, client::PatchType::kMerge, std::move(object), {}, std::move(done));
  } else {
    client_->Delete(gvr, place, {.grace_period_s = 0}, std::move(done));
  }
}

void Load::NextConfigMap(int writer) {
  const std::string name = fmt::format("w{}-{}", writer, random_.Below(kConfigMapsEach));
  const Tracked& tracked = config_maps_.Of(name);
  if (tracked.asked != Verb::kNone) return;
  const Verb verb = !tracked.there          ? Verb::kCreate
                    : random_.Below(4) == 0 ? Verb::kDelete
                                            : Verb::kUpdate;
  const std::string text = std::to_string(next_data_++) + std::string(random_.Below(3000), 'x');
  Send(config_maps_, client::kConfigMaps, verb, name, ConfigMap(name, text), text,
       [this, writer] { NextConfigMap(writer); });
}

void Load::NextPod(int writer) {
  const std::string name = fmt::format("p{}-{}", writer, random_.Below(kPodsEach));
  const Tracked& tracked = pods_.Of(name);
  if (tracked.asked != Verb::kNone) return;
  const std::string label = std::to_string(next_data_++);
  Send(pods_, client::kPods, tracked.there ? Verb::kDelete : Verb::kCreate, name, Pod(name, label),
       label, [this, writer] { NextPod(writer); });
}

void Load::NextReplicas() {
  const std::string name(kDeployment);
  const Tracked& tracked = deployments_.Of(name);
  if (tracked.asked != Verb::kNone) return;
  int replicas = 0;
  do {
    replicas = static_cast<int>(random_.Below(kMaxReplicas + 1));
  } while (tracked.there && tracked.data == std::to_string(replicas));  // that would write nothing
  Send(deployments_, client::kDeployments, tracked.there ? Verb::kUpdate : Verb::kCreate, name,
       tracked.there ? Parse(fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas))
                     : Deployment(replicas),
       std::to_string(replicas), [this] { NextReplicas(); });
}

int64_t Load::replicas() const {
  const Tracked& tracked = deployments_.Of(std::string(kDeployment));
  return tracked.there ? std::stoll(tracked.data) : -1;
}

// ---- the watcher ----

void Load::WatchFrom(Revision after) {
  client::WatchOptions options;
  options.ns = kNamespace;
  options.resource_version = std::to_string(after);
  watch_ = client_->Watch(
      client::kConfigMaps, std::move(options),
      {[this](auto events) { OnEvents(events); }, [this](Status end) { OnWatchEnd(end); }});
}

void Load::OnEvents(const std::vector<client::WatchEvent>& events) {
  for (const client::WatchEvent& event : events) {
    const Revision revision = RevisionOf(event.object);
    const bool bookmark = event.type == client::WatchEventType::kBookmark;
    ++counts_.events;
    if (std::exchange(resuming_, false)) ++counts_.resumed;
    if (bookmark ? revision < heard_ : revision <= heard_)
      complaints_.push_back(fmt::format("the watch told {} after {}", revision, heard_));
    heard_ = std::max(heard_, revision);
    newest_ = std::max(newest_, revision);
    if (bookmark) continue;
    const std::string name(event.object.name());
    if (event.type == client::WatchEventType::kDeleted) {
      mirror_.erase(name);
      deleted_[name] = revision;
    } else {
      mirror_[name] = {revision, TextOf(event.object)};
    }
  }
}

void Load::OnWatchEnd(const Status& end) {
  if (!client_) return;
  if (end) return WatchFrom(heard_);
  if (end.error().code == 410) {
    ++counts_.expired;
    resuming_ = false;
    return ListAgain();
  }
  if (!LeavesInDoubt(end.error()) || end.error().code == 504)
    complaints_.push_back(fmt::format("the watch from {}: {}", heard_, end.error().message));
}

void Load::ListAgain() {
  ++under_way_;
  client::ListOptions options;
  options.ns = kNamespace;
  client_->List(client::kConfigMaps, std::move(options), [this](Result<struct client::List> list) {
    --under_way_;
    if (!list || !client_) return;
    mirror_.clear();
    for (const api::Object& object : list->items)
      mirror_[std::string(object.name())] = {RevisionOf(object), TextOf(object)};
    heard_ = std::strtoull(list->resource_version.c_str(), nullptr, 10);
    newest_ = std::max(newest_, heard_);
    WatchFrom(heard_);
  });
}

// What was heard was durable: no object may stand at an older revision than an event showed.
void Load::CheckHeard(const std::vector<api::Object>& config_maps) {
  for (const api::Object& object : config_maps) {
    const std::string name(object.name());
    const Revision revision = RevisionOf(object);
    const auto known = mirror_.find(name);
    if (known != mirror_.end() && revision < known->second.first)
      complaints_.push_back(
          fmt::format("{} is at {}, a watcher heard of {}", name, revision, known->second.first));
    const auto gone = deleted_.find(name);
    if (gone != deleted_.end() && revision < gone->second)
      complaints_.push_back(fmt::format("{} is at {}, a watcher heard of its end at {}", name,
                                        revision, gone->second));
  }
}

bool Load::WatcherAgrees() const {
  const std::map<std::string, std::string> there = config_maps_.Uids();
  size_t ours = 0;
  for (const auto& [name, known] : mirror_) {
    if (!name.starts_with("w")) continue;
    ++ours;
    const auto& tracked = config_maps_.Of(name);
    if (!tracked.there || tracked.revision != known.first || tracked.data != known.second)
      return false;
  }
  return ours == there.size();
}

std::vector<std::string> Load::TakeComplaints() {
  std::vector<std::string> all = std::exchange(complaints_, {});
  for (Ledger* ledger : {&config_maps_, &pods_, &deployments_})
    for (std::string& each : ledger->TakeComplaints()) all.push_back(std::move(each));
  return all;
}

Load::Counts Load::counts() const {
  Counts counts = counts_;
  counts.answers = config_maps_.answers() + pods_.answers() + deployments_.answers();
  return counts;
}

}  // namespace sextant::crash
