// For the kubelet's tests: an API server of one map, a runtime that does what the test says, a
// machine with a device plugin.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/patch.h"
#include "api/schema.h"
#include "client/informer.h"
#include "kubelet/kubelet.h"

namespace sextant::kubelet::testing {

// Keeps objects, applies patches by the real schema, and tells watchers. Everything is posted.
class TestApi : public client::Client {
 public:
  explicit TestApi(Loop& loop) : loop_(loop) {}
  Loop& executor() override { return loop_; }

  api::Object Find(std::string_view resource, const std::string& ns,
                   const std::string& name) const {
    const auto found = objects_.find({std::string(resource), ns, name});
    return found == objects_.end() ? api::Object() : found->second;
  }
  api::Object Pod(const std::string& name) const { return Find("pods", "default", name); }
  api::Object Node(const std::string& name) const { return Find("nodes", "", name); }
  // A test's own write, as the API server would store it.
  void Put(std::string_view resource, std::string_view json) {
    auto object = api::ParseJson(json);
    ASSERT_TRUE(object) << object.error().message;
    Store(std::string(resource), *object);
  }
  // What DELETE does to a Pod that runs.
  void MarkDeleted(const std::string& name, int grace) {
    api::Editor edit(Pod(name));
    edit.Root()["metadata"].Set("deletionTimestamp", "2026-01-01T00:00:00Z");
    edit.Root()["metadata"].Set("deletionGracePeriodSeconds", grace);
    Store("pods", std::move(edit).Finish());
  }
  std::vector<std::string> Events(std::string_view reason) const {
    std::vector<std::string> messages;
    for (const auto& [key, object] : objects_) {
      if (std::get<0>(key) == "events" && object["reason"].AsString() == reason)
        messages.emplace_back(object["message"].AsString());
    }
    return messages;
  }

  void Get(client::Gvr gvr, client::ObjectName name, client::Callback<api::Object> done) override {
    Answer(std::move(done), Lookup(gvr, name));
  }
  void List(client::Gvr, client::ListOptions, client::Callback<struct client::List>) override {
    ADD_FAILURE() << "list";
  }
  std::unique_ptr<client::WatchHandle> Watch(client::Gvr gvr, client::WatchOptions,
                                             client::WatchCallbacks callbacks) override {
    auto open = std::make_shared<Open>(Open{std::string(gvr.resource), std::move(callbacks)});
    watches_.push_back(open);
    std::vector<client::WatchEvent> events;
    for (const auto& [key, object] : objects_)
      if (std::get<0>(key) == open->resource)
        events.push_back({client::WatchEventType::kAdded, object});
    api::Editor mark;
    mark.Root()["metadata"].Set("resourceVersion", std::to_string(revision_));
    mark.Root()["metadata"]["annotations"].Set("k8s.io/initial-events-end", "true");
    events.push_back({client::WatchEventType::kBookmark, std::move(mark).Finish()});
    Send(open, std::move(events));
    struct Handle : client::WatchHandle {
      explicit Handle(std::shared_ptr<Open> w) : open(std::move(w)) {}
      ~Handle() override { open->closed = true; }
      std::shared_ptr<Open> open;
    };
    return std::make_unique<Handle>(open);
  }
  void Create(client::Gvr gvr, client::ObjectName name, api::Object object,
              client::WriteOptions options, client::Callback<api::Object> done) override {
    if (options.subresource == "token") {
      api::Editor edit(object);
      edit.Root()["status"].Set("token", "token-of-" + name.name);
      return Answer(std::move(done), std::move(edit).Finish());
    }
    const std::string full(object.name());
    if (Find(gvr.resource, std::string(object.ns()), full)) {
      return Answer(std::move(done),
                    Fail(AlreadyExists({std::string(gvr.group), std::string(gvr.resource)}, full)));
    }
    Answer(std::move(done), Store(std::string(gvr.resource), object));
  }
  void Update(client::Gvr gvr, client::ObjectName, api::Object object, client::WriteOptions,
              client::Callback<api::Object> done) override {
    ++updates[std::string(gvr.resource)];
    Answer(std::move(done), Store(std::string(gvr.resource), object));
  }
  void Patch(client::Gvr gvr, client::ObjectName name, client::PatchType type, api::Object patch,
             client::WriteOptions, client::Callback<api::Object> done) override {
    auto current = Lookup(gvr, name);
    if (!current) return Answer(std::move(done), std::move(current));
    EXPECT_EQ(type, client::PatchType::kStrategic);
    const api::Message* message =
        api::Registry::Builtin().Find({gvr.group, gvr.version}, gvr.resource)->message;
    std::vector<std::string> warnings;
    auto patched = api::ApplyPatch(*current, *message,
                                   {.type = api::PatchType::kStrategic,
                                    .patch = api::ToJson(patch.root()),
                                    .field_validation = "Strict"},
                                   &warnings);
    if (!patched) {
      ADD_FAILURE() << patched.error().message << " " << api::ToJson(patch.root());
      return Answer(std::move(done), std::move(patched));
    }
    Answer(std::move(done), Store(std::string(gvr.resource), *patched));
  }
  void Delete(client::Gvr gvr, client::ObjectName name, client::DeleteOptions options,
              client::Callback<api::Object> done) override {
    auto object = Lookup(gvr, name);
    if (!object) return Answer(std::move(done), std::move(object));
    EXPECT_EQ(options.grace_period_s, 0);
    EXPECT_EQ(options.uid, object->uid());
    Erase(std::string(gvr.resource), name);
    Answer(std::move(done), std::move(object));
  }
  void Erase(const std::string& resource, const client::ObjectName& name) {
    const auto found = objects_.find({resource, name.ns, name.name});
    ASSERT_NE(found, objects_.end());
    const api::Object object = found->second;
    objects_.erase(found);
    ++revision_;
    for (const auto& open : watches_)
      if (open->resource == resource) Send(open, {{client::WatchEventType::kDeleted, object}});
  }
  void DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                        client::Callback<api::Object>) override {}
  void PodLog(client::ObjectName, std::string, int64_t, client::Callback<std::string>) override {}
  void GetRaw(std::string, client::Callback<std::string>) override {}

  std::map<std::string, int> updates;  // by resource
  // Every status that a Pod had, as "phase/reason of the first container's state".
  std::map<std::string, std::vector<std::string>> history;

 private:
  struct Open {
    std::string resource;
    client::WatchCallbacks callbacks;
    bool closed = false;
  };

  Result<api::Object> Lookup(client::Gvr gvr, const client::ObjectName& name) const {
    api::Object object = Find(gvr.resource, name.ns, name.name);
    if (object) return object;
    return Fail(NotFound({std::string(gvr.group), std::string(gvr.resource)}, name.name));
  }
  void Answer(client::Callback<api::Object> done, Result<api::Object> result) {
    loop_.Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
  void Send(const std::shared_ptr<Open>& open, std::vector<client::WatchEvent> events) {
    loop_.Post([open, events = std::move(events)] {
      if (!open->closed) open->callbacks.on_events(events);
    });
  }
  api::Object Store(const std::string& resource, const api::Object& object) {
    api::Editor edit(object);
    edit.Root()["metadata"].Set("resourceVersion", std::to_string(++revision_));
    if (object.uid().empty()) {
      edit.Root()["metadata"].Set("uid", fmt::format("uid-{}", object.name()));
    }
    const api::Object stored = std::move(edit).Finish();
    api::Object& place = objects_[{resource, std::string(stored.ns()), std::string(stored.name())}];
    const bool known = static_cast<bool>(place);
    place = stored;
    if (resource == "pods") Remember(stored);
    for (const auto& open : watches_) {
      if (open->resource != resource) continue;
      Send(open,
           {{known ? client::WatchEventType::kModified : client::WatchEventType::kAdded, stored}});
    }
    return stored;
  }
  void Remember(const api::Object& pod) {
    const api::Value state = pod["status"]["containerStatuses"].at(0)["state"];
    std::string text(pod["status"]["phase"].AsString());
    for (auto [key, value] : state.members())
      text += fmt::format("/{}:{}", key, value["reason"].AsString());
    auto& told = history[std::string(pod.name())];
    if (told.empty() || told.back() != text) told.push_back(text);
  }

  Loop& loop_;
  std::map<std::tuple<std::string, std::string, std::string>, api::Object> objects_;
  std::vector<std::shared_ptr<Open>> watches_;
  int revision_ = 1;
};

// Containers start when they are told to; the test ends them.
class ScriptedRuntime : public Runtime {
 public:
  explicit ScriptedRuntime(Loop& loop) : loop_(loop) {}
  struct Container {
    ContainerSpec spec;
    EventCallback events;
    bool running = false;
    int signal = 0;
    Duration grace{0};
  };

  std::string Level() const override { return "scripted"; }
  std::string Explanation() const override { return ""; }
  Owner FileOwner() const override { return {}; }
  void CreateSandbox(PodSandboxSpec spec, DoneCallback done) override {
    sandboxes.insert(spec.uid);
    loop_.Post([done] { done({}); });
  }
  void RemoveSandbox(std::string uid, DoneCallback done) override {
    sandboxes.erase(uid);
    loop_.Post([done] { done({}); });
  }
  void StartContainer(ContainerSpec spec, EventCallback events) override {
    const std::string name = spec.sandbox_uid + "/" + spec.name;
    started.push_back(spec.name);
    containers[name] = {std::move(spec), std::move(events), true};
    Tell(containers[name], ContainerEvent::Kind::kStarted, 0, "");
  }
  void StopContainer(std::string id, int signal, Duration grace) override {
    for (auto& [name, container] : containers) {
      if (container.spec.id != id || !container.running) continue;
      container.signal = signal;
      container.grace = grace;
      if (ends_when_told) End(name, 143, "Error");
    }
  }
  void RemoveContainer(std::string) override {}
  std::shared_ptr<Session> Exec(ExecSpec spec, SessionCallbacks callbacks) override {
    execs.push_back(spec.argv);
    loop_.Post([callbacks] { callbacks.on_exit(0); });
    return nullptr;
  }
  std::shared_ptr<Session> Attach(AttachSpec, SessionCallbacks) override { return nullptr; }
  void Probe(HttpProbe, ProbeCallback done) override { Answer(std::move(done)); }
  void Probe(TcpProbe, ProbeCallback done) override { Answer(std::move(done)); }
  void Probe(GrpcProbe probe, ProbeCallback done) override {
    grpc_probes.push_back(std::move(probe));
    Answer(std::move(done));
  }
  void Probe(ExecProbe, ProbeCallback done) override { Answer(std::move(done)); }
  void DialPort(std::string, uint16_t, std::function<void(Result<int>)>) override {}
  void Stats(std::string, std::function<void(Result<ContainerStats>)>) override {}

  // `name` is "uid/container".
  void End(const std::string& name, int code, std::string reason) {
    ASSERT_TRUE(containers.contains(name)) << name;
    Container& container = containers[name];
    ASSERT_TRUE(container.running) << name;
    container.running = false;
    Tell(container, ContainerEvent::Kind::kExited, code, std::move(reason));
  }
  bool Runs(const std::string& name) { return containers[name].running; }

  std::set<std::string> sandboxes;
  std::map<std::string, Container> containers;
  std::vector<std::string> started;
  std::vector<std::vector<std::string>> execs;
  std::vector<GrpcProbe> grpc_probes;
  bool ends_when_told = true;
  bool probes_pass = true;

 private:
  void Answer(ProbeCallback done) {
    loop_.Post([done = std::move(done), pass = probes_pass] {
      done({pass, pass ? "" : "HTTP probe failed with statuscode: 500"});
    });
  }
  void Tell(const Container& container, ContainerEvent::Kind kind, int code, std::string reason) {
    ContainerEvent event{.kind = kind, .container_id = container.spec.id};
    event.exit_code = code;
    event.reason = std::move(reason);
    event.started_at = event.finished_at = loop_.clock().Now();
    loop_.Post([events = container.events, event] { events(event); });
  }

  Loop& loop_;
};

// Eight cards, "card-0" to "card-7".
class TestPlugin : public plugin::DevicePlugin {
 public:
  explicit TestPlugin(Loop& loop) : loop_(loop) {
    for (int i = 0; i < 8; ++i) devices.push_back({fmt::format("card-{}", i), true, {}});
  }
  const std::string& resource() const override { return resource_; }
  plugin::PluginOptions options() const override { return {.preferred_allocation = preferred}; }
  std::shared_ptr<void> ListAndWatch(DevicesChanged changed) override {
    changed_ = std::move(changed);
    Tell();
    return std::make_shared<int>(0);
  }
  void Tell() {
    loop_.Post([changed = changed_, told = devices] { changed(told); });
  }
  void Allocate(std::vector<std::vector<std::string>> ids,
                plugin::Reply<std::vector<plugin::ContainerAllocation>> done) override {
    Result<std::vector<plugin::ContainerAllocation>> answer =
        std::vector<plugin::ContainerAllocation>(1);
    (*answer)[0].envs["CARDS"] = fmt::format("{}", fmt::join(ids[0], ","));
    if (!error.empty()) answer = Fail(InternalError(error));
    loop_.Post([done = std::move(done), answer]() mutable { done(std::move(answer)); });
  }
  void GetPreferredAllocation(std::vector<std::string> available, std::vector<std::string> must,
                              int size, plugin::Reply<std::vector<std::string>> done) override {
    std::vector<std::string> chosen = must;  // the last ones first
    for (auto it = available.rbegin(); it != available.rend(); ++it)
      if (chosen.size() < static_cast<size_t>(size)) chosen.push_back(*it);
    loop_.Post([done = std::move(done), chosen]() mutable { done(chosen); });
  }

  std::vector<plugin::Device> devices;
  std::string error;
  bool preferred = false;

 private:
  Loop& loop_;
  const std::string resource_ = "nvidia.com/gpu";
  DevicesChanged changed_;
};

// The plugin as a component: what the DaemonSet's Pod starts.
class TestComponents : public Components {
 public:
  explicit TestComponents(Loop& loop) : loop_(loop) {}
  std::shared_ptr<void> Start(std::string_view command, const std::string&,
                              plugin::Registrar& registrar) override {
    if (command != "sextant-node-agent") return nullptr;
    ++starts;
    registrar.Register(std::make_shared<TestPlugin>(loop_));
    return std::shared_ptr<void>(nullptr, [this, &registrar](void*) {
      ++stops;
      registrar.Unregister("nvidia.com/gpu");
    });
  }
  int starts = 0;
  int stops = 0;

 private:
  Loop& loop_;
};

}  // namespace sextant::kubelet::testing
