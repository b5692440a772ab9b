// A cluster for this room's tests: a control plane and a worker with eight cards, as the API shows
// them. The test says what becomes of the capability Pods, and what is broken.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/patch.h"
#include "client/client.h"

namespace sextant::preflight::testing {

inline api::Object Json(std::string_view text) {
  auto parsed = api::ParseJson(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : api::Object();
}

inline std::string Uuid(int card) {
  return fmt::format("GPU-00000000-0000-4000-8000-{:012}", card);
}
// nvidia-smi -L in a container with these cards.
inline std::string SmiList(const std::vector<int>& cards) {
  std::string out;
  for (size_t i = 0; i < cards.size(); ++i) {
    out += fmt::format("GPU {}: NVIDIA A100-SXM4-40GB (UUID: {})\n", i, Uuid(cards[i]));
  }
  return out;
}

// Time that moves when somebody sleeps.
class SleepClock : public Clock {
 public:
  Time Now() const override { return Time{std::chrono::seconds{1'767'225'600}} + elapsed; }
  Duration Monotonic() const override { return elapsed; }
  Duration elapsed{0};
};

// What becomes of one Pod.
struct Outcome {
  std::string changes;  // merged into the Pod
  std::string log;
};
// It is placed, admitted and ends well, with these cards.
inline Outcome EndsWell(const std::vector<int>& cards, bool shows_allocated = true) {
  std::string ids;
  for (int card : cards) {
    ids += fmt::format(R"({}{{"resourceID":"{}"}})", ids.empty() ? "" : ",", Uuid(card));
  }
  return {
      fmt::format(
          R"({{"spec":{{"nodeName":"worker"}},"status":{{"phase":"Succeeded",
              "startTime":"2026-01-01T00:00:00Z","conditions":[{{"type":"PodScheduled",
              "status":"True"}}],"containerStatuses":[{{"name":"cuda-check","state":{{
              "terminated":{{"exitCode":0,"reason":"Completed"}}}}{}}}]}}}})",
          shows_allocated
              ? fmt::format(
                    R"(,"allocatedResourcesStatus":[{{"name":"nvidia.com/gpu","resources":[{}]}}])",
                    ids)
              : ""),
      SmiList(cards)};
}

class FakeCluster : public client::Client {
 public:
  explicit FakeCluster(Loop& loop) : loop_(loop) {
    nodes["control-plane"] = Json(
        R"({"metadata":{"name":"control-plane"},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
    nodes["worker"] = Json(R"({"metadata":{"name":"worker","labels":{
        "feature.node.kubernetes.io/pci-10de.present":"true","nvidia.com/gpu.count":"8",
        "nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB",
        "nvidia.com/cuda.driver-version.full":"580.95.05"}},
        "status":{"conditions":[{"type":"Ready","status":"True"}],
        "capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"}}})");
    outcomes = {EndsWell({3}), EndsWell({0, 1, 2, 3, 4, 5, 6, 7})};
  }

  void Change(const std::string& node, std::string_view merge) {
    nodes[node] = api::ApplyMergePatch(nodes[node].root(), Json(merge).root());
  }

  Loop& executor() override { return loop_; }
  void GetRaw(std::string, client::Callback<std::string> done) override {
    Answer<std::string>(std::move(done), unreachable
                                             ? Result<std::string>(Fail(Timeout("no route", 0)))
                                             : fmt::format(R"({{"gitVersion":"{}"}})", version));
  }
  void Get(client::Gvr gvr, client::ObjectName name, client::Callback<api::Object> done) override {
    const auto& objects = gvr == client::kNodes ? nodes : pods;
    const auto found = objects.find(name.name);
    Result<api::Object> object = Fail(NotFound({.resource = std::string(gvr.resource)}, name.name));
    if (found != objects.end()) object = found->second;
    Answer(std::move(done), std::move(object));
  }
  void List(client::Gvr gvr, client::ListOptions,
            client::Callback<struct client::List> done) override {
    struct client::List list;
    if (gvr == client::kPods && hides_pods) {
      return Answer<struct client::List>(
          std::move(done), Fail(Forbidden({.resource = "pods"}, "", "cannot list resource")));
    }
    if (gvr == client::kNodes) {
      if (hides_nodes) {
        return Answer<struct client::List>(
            std::move(done), Fail(Forbidden({.resource = "nodes"}, "", "cannot list resource")));
      }
      for (const auto& [name, node] : nodes) list.items.push_back(node);
    } else if (gvr == client::kPods) {
      for (const auto& [name, pod] : pods) list.items.push_back(pod);
    } else if (gvr == client::kCoreEvents) {
      for (const std::string& event : events) list.items.push_back(Json(event));
    }
    Answer<struct client::List>(std::move(done), std::move(list));
  }
  void Create(client::Gvr, client::ObjectName, api::Object object, client::WriteOptions,
              client::Callback<api::Object> done) override {
    if (refuse) return Answer<api::Object>(std::move(done), Fail(*refuse));
    const std::string name(object.name());
    asked.push_back(object);
    const Outcome& outcome = outcomes.at(std::min(asked.size(), outcomes.size()) - 1);
    pods[name] = api::ApplyMergePatch(object.root(), Json(outcome.changes).root());
    logs[name] = outcome.log;
    Answer<api::Object>(std::move(done), object);
  }
  void Delete(client::Gvr, client::ObjectName name, client::DeleteOptions,
              client::Callback<api::Object> done) override {
    api::Object pod = pods[name.name];
    if (!keeps_pods) pods.erase(name.name);
    if (on_delete) on_delete(*this);
    Answer<api::Object>(std::move(done), std::move(pod));
  }
  void PodLog(client::ObjectName pod, std::string, int64_t,
              client::Callback<std::string> done) override {
    Answer<std::string>(std::move(done), logs[pod.name]);
  }
  std::unique_ptr<client::WatchHandle> Watch(client::Gvr, client::WatchOptions,
                                             client::WatchCallbacks) override {
    return nullptr;
  }
  void Update(client::Gvr, client::ObjectName, api::Object, client::WriteOptions,
              client::Callback<api::Object>) override {
    ADD_FAILURE() << "update";
  }
  void Patch(client::Gvr, client::ObjectName, client::PatchType, api::Object, client::WriteOptions,
             client::Callback<api::Object>) override {
    ADD_FAILURE() << "patch";
  }
  void DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                        client::Callback<api::Object>) override {
    ADD_FAILURE() << "delete collection";
  }

  std::string version = "v1.36.3";
  bool unreachable = false;
  std::map<std::string, api::Object> nodes;
  std::map<std::string, api::Object> pods;  // what stands in the API, others' Pods too
  std::map<std::string, std::string> logs;
  std::vector<std::string> events;
  std::vector<api::Object> asked;  // the preflight's own Pods, as they were sent
  std::vector<Outcome> outcomes;   // of the first, the second, ...; the last one goes on
  std::optional<Error> refuse;     // every creation
  bool hides_pods = false;         // they may not be listed
  bool hides_nodes = false;
  bool keeps_pods = false;  // deleted Pods stay
  std::function<void(FakeCluster&)> on_delete;

 private:
  template <typename T>
  void Answer(client::Callback<T> done, Result<T> result) {
    auto shared = std::make_shared<std::pair<client::Callback<T>, Result<T>>>(std::move(done),
                                                                              std::move(result));
    loop_.Post([shared] { shared->first(std::move(shared->second)); });
  }
  Loop& loop_;
};

}  // namespace sextant::preflight::testing
