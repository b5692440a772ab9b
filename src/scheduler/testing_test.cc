#include "scheduler/testing.h"

#include <fmt/format.h>

#include "api/json.h"

namespace sextant::scheduler::testing {

using api::Object;
using api::Value;
using client::NameOf;
using client::ObjectName;
using client::WatchEvent;
using client::WatchEventType;

namespace {

Object Parse(std::string_view json) {
  auto parsed = api::ParseJson(json);
  EXPECT_TRUE(parsed) << json << ": " << parsed.error().message;
  return parsed ? *parsed : Object();
}

// RFC 7386, as far as tests need it.
void Merge(api::Mut into, Value patch) {
  for (auto [key, value] : patch.members()) {
    if (value.IsNull()) {
      into.Erase(key);
    } else if (value.IsMap()) {
      Merge(into[key], value);
    } else {
      into[key].Set(value);
    }
  }
}

// A strategic merge of status: conditions by type.
Object WithStatus(const Object& pod, const Object& patch) {
  api::Editor edit(pod);
  edit.Keep(patch);
  const api::Mut status = edit["status"];
  for (auto [key, value] : patch["status"].members()) {
    if (key != "conditions") {
      if (value.IsNull()) {
        status.Erase(key);
      } else {
        status.Set(key, value);
      }
      continue;
    }
    for (Value condition : value.items()) {
      const api::Mut all = status["conditions"];
      for (size_t i = 0; i < all.size(); ++i)
        if (all.at(i)["type"].AsString() == condition["type"].AsString()) all.EraseAt(i--);
      all.Append().Set(condition);
    }
  }
  return std::move(edit).Finish();
}

}  // namespace

// ---- FakeApi ----

std::unique_ptr<client::WatchHandle> FakeApi::Watch(client::Gvr gvr, client::WatchOptions,
                                                    client::WatchCallbacks callbacks) {
  auto stream =
      std::make_shared<Stream>(Stream{std::string(gvr.resource), std::move(callbacks), true});
  streams_.push_back(stream);
  if (!held_.contains(stream->resource)) SendAll(stream);
  struct Handle : client::WatchHandle {
    explicit Handle(std::shared_ptr<Stream> s) : stream(std::move(s)) {}
    ~Handle() override { stream->open = false; }
    std::shared_ptr<Stream> stream;
  };
  return std::make_unique<Handle>(std::move(stream));
}

void FakeApi::Send(const std::shared_ptr<Stream>& stream, std::vector<WatchEvent> sent) {
  loop_.Post([stream, sent = std::move(sent)] {
    if (stream->open) stream->callbacks.on_events(sent);
  });
}

void FakeApi::SendAll(const std::shared_ptr<Stream>& stream) {
  std::vector<WatchEvent> all;
  for (const auto& [name, object] : objects_[stream->resource])
    all.push_back({WatchEventType::kAdded, object});
  all.push_back({WatchEventType::kBookmark,
                 Parse(fmt::format(R"({{"metadata":{{"resourceVersion":"{}","annotations":
                   {{"k8s.io/initial-events-end":"true"}}}}}})",
                                   revision_))});
  Send(stream, std::move(all));
}

void FakeApi::Tell(std::string_view resource, WatchEventType type, const Object& object) {
  for (const auto& stream : streams_)
    if (stream->open && stream->resource == resource && !held_.contains(stream->resource))
      Send(stream, {{type, object}});
}

void FakeApi::Release(const std::string& resource) {
  held_.erase(resource);
  for (const auto& stream : streams_)
    if (stream->open && stream->resource == resource) SendAll(stream);
}

void FakeApi::Put(std::string_view resource, Object object) {
  api::Editor edit(std::move(object));
  edit["metadata"].Set("resourceVersion", std::to_string(++revision_));
  Object now = std::move(edit).Finish();
  Object& place = objects_[std::string(resource)][NameOf(now)];
  const bool there = static_cast<bool>(place);
  place = now;
  Tell(resource, there ? WatchEventType::kModified : WatchEventType::kAdded, now);
}

void FakeApi::Remove(std::string_view resource, const ObjectName& name) {
  auto& all = objects_[std::string(resource)];
  const auto at = all.find(name);
  if (at == all.end()) return;
  const Object gone = at->second;
  all.erase(at);
  Tell(resource, WatchEventType::kDeleted, gone);
}

Object FakeApi::Find(std::string_view resource, const ObjectName& name) const {
  const auto all = objects_.find(resource);
  if (all == objects_.end()) return {};
  const auto at = all->second.find(name);
  return at == all->second.end() ? Object() : at->second;
}

void FakeApi::Create(client::Gvr gvr, ObjectName name, Object object, client::WriteOptions options,
                     client::Callback<Object> done) {
  loop_.Post([this, gvr, name = std::move(name), object = std::move(object),
              subresource = options.subresource, done = std::move(done)]() mutable {
    if (gvr.resource == "events") {
      events.push_back(
          fmt::format("{} {} {}: {}", object["type"].AsString(), object["reason"].AsString(),
                      object["involvedObject"]["name"].AsString(), object["message"].AsString()));
      event_names_[name.name] = events.back();
      told[events.back()] = 1;
      return done(object);
    }
    ASSERT_EQ(subresource, "binding");
    if (!binding_error.empty())
      return done(std::unexpected(Error{
          .code = 500, .reason = "InternalError", .message = std::exchange(binding_error, "")}));
    const Object pod = Find("pods", name);
    if (!pod) return done(std::unexpected(Error{.code = 404, .reason = "NotFound"}));
    EXPECT_EQ(pod.uid(), object["metadata"]["uid"].AsString());
    api::Editor edit(pod);
    edit["spec"].Set("nodeName", object["target"]["name"].AsString());
    Put("pods", std::move(edit).Finish());
    done(object);
  });
}

void FakeApi::Patch(client::Gvr gvr, ObjectName name, client::PatchType type, Object patch,
                    client::WriteOptions options, client::Callback<Object> done) {
  loop_.Post([this, gvr, name = std::move(name), type, patch = std::move(patch),
              subresource = options.subresource, done = std::move(done)]() mutable {
    EXPECT_EQ(type, client::PatchType::kStrategic);
    if (gvr.resource == "events") {
      told[event_names_[name.name]] = static_cast<int>(patch["count"].AsInt());
      return done(patch);
    }
    EXPECT_EQ(subresource, "status");
    const Object pod = Find("pods", name);
    if (!pod) return done(std::unexpected(Error{.code = 404, .reason = "NotFound"}));
    Put("pods", WithStatus(pod, patch));
    done(Find("pods", name));
  });
}

void FakeApi::Delete(client::Gvr gvr, ObjectName name, client::DeleteOptions options,
                     client::Callback<Object> done) {
  loop_.Post(
      [this, gvr, name = std::move(name), uid = options.uid, done = std::move(done)]() mutable {
        const Object pod = Find(gvr.resource, name);
        EXPECT_EQ(pod.uid(), uid);
        if (victims_linger) {
          api::Editor edit(pod);
          edit["metadata"].Set("deletionTimestamp", FormatTime(loop_.Now()));
          Put(gvr.resource, std::move(edit).Finish());
        } else {
          Remove(gvr.resource, name);
        }
        done(pod);
      });
}

void FakeApi::Get(client::Gvr, ObjectName, client::Callback<Object>) { ADD_FAILURE(); }
void FakeApi::List(client::Gvr, client::ListOptions, client::Callback<struct client::List>) {
  ADD_FAILURE();
}
void FakeApi::Update(client::Gvr gvr, ObjectName name, Object object, client::WriteOptions,
                     client::Callback<Object> done) {
  loop_.Post([this, gvr, name = std::move(name), object = std::move(object),
              done = std::move(done)]() mutable {
    if (!update_error.empty())
      return done(std::unexpected(
          Error{.code = 409, .reason = "Conflict", .message = std::exchange(update_error, "")}));
    Put(gvr.resource, std::move(object));
    done(Find(gvr.resource, name));
  });
}
void FakeApi::DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                               client::Callback<Object>) {
  ADD_FAILURE();
}
void FakeApi::PodLog(ObjectName, std::string, int64_t, client::Callback<std::string>) {
  ADD_FAILURE();
}
void FakeApi::GetRaw(std::string, client::Callback<std::string>) { ADD_FAILURE(); }

// ---- Cluster ----

Cluster::Cluster(bool started) {
  if (started) Start();
}

void Cluster::Start() {
  informers_ = std::make_unique<client::SharedInformers>(api);
  scheduler_ = std::make_unique<Scheduler>(api, *informers_, SchedulerOptions{}, 1);
  scheduler_->Start();
}

Cluster::~Cluster() {
  scheduler_.reset();
  informers_.reset();
}

void Cluster::AddNode(const NodeSpec& node) {
  api::Editor edit(Parse(fmt::format(
      R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{0}","uid":"node-{0}","labels":{1}}},
         "spec":{2},"status":{{"allocatable":{{"cpu":"{3}","memory":"{4}","pods":"{5}"}}}}}})",
      node.name, node.labels, node.spec, node.cpu, node.memory, node.pods)));
  edit["metadata"]["labels"].Set("kubernetes.io/hostname", node.name);
  if (node.gpus > 0) edit["status"]["allocatable"].Set("nvidia.com/gpu", std::to_string(node.gpus));
  api.Put("nodes", std::move(edit).Finish());
  Settle();
}

void Cluster::RemoveNode(const std::string& name) {
  api.Remove("nodes", {"", name});
  Settle();
}

void Cluster::AddPod(const PodSpec& pod) {
  api::Editor edit(Parse(fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","namespace":"{}","uid":"uid-{}",
         "labels":{}}},"spec":{},"status":{{"phase":"Pending"}}}})",
      pod.name, pod.ns, next_uid_++, pod.labels, pod.spec)));
  const Object owner = Parse(pod.owner);
  if (!owner.root().empty()) edit["metadata"]["ownerReferences"].Append().Set(owner);
  edit["spec"].Set("priority", pod.priority);
  if (!pod.node.empty()) edit["spec"].Set("nodeName", pod.node);
  const api::Mut container = edit["spec"]["containers"].Append();
  container.Set("name", "c");
  if (pod.gpus > 0)
    container["resources"]["requests"].Set("nvidia.com/gpu", std::to_string(pod.gpus));
  if (!pod.cpu.empty()) container["resources"]["requests"].Set("cpu", pod.cpu);
  api.Put("pods", std::move(edit).Finish());
  Settle();
}

void Cluster::ChangePod(const std::string& name, std::string_view merge) {
  const Object patch = Parse(merge);
  api::Editor edit(Pod(name));
  edit.Keep(patch);
  Merge(edit.Root(), patch.root());
  api.Put("pods", std::move(edit).Finish());
  Settle();
}

void Cluster::RemovePod(const std::string& name) {
  api.Remove("pods", {"default", name});
  Settle();
}

void Cluster::Add(std::string_view resource, std::string_view json) {
  api.Put(resource, Parse(json));
  Settle();
}

Object Cluster::Pod(const std::string& name, const std::string& ns) const {
  const Object pod = api.Find("pods", {ns, name});
  EXPECT_TRUE(pod) << name;
  return pod;
}

std::string Cluster::NodeOf(const std::string& name, const std::string& ns) const {
  return std::string(Pod(name, ns)["spec"]["nodeName"].AsString());
}

std::vector<std::string> Cluster::NodesOf(const std::vector<std::string>& pods) const {
  std::vector<std::string> nodes;
  for (const std::string& pod : pods) nodes.push_back(NodeOf(pod));
  return nodes;
}

std::string Cluster::Why(const std::string& name) const {
  const Object pod = Pod(name);
  for (Value condition : pod["status"]["conditions"].items())
    if (condition["type"].AsString() == "PodScheduled")
      return std::string(condition["message"].AsString());
  return "";
}

int Cluster::Told(std::string_view reason, std::string_view pod) const {
  int count = 0;
  for (const std::string& event : api.events)
    if (event.find(fmt::format(" {} {}: ", reason, pod)) != event.npos) ++count;
  return count;
}

int Cluster::Tries(const std::string& pod) const {
  int tries = 0;
  for (const auto& [event, count] : api.told)
    if (event.starts_with(fmt::format("Warning FailedScheduling {}: ", pod))) tries += count;
  return tries;
}

}  // namespace sextant::scheduler::testing
