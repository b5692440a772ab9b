// A cluster for this room's tests: an API played in memory on a ManualLoop, and a scheduler on it.
//
//   Cluster cluster;
//   cluster.AddNode({.name = "a", .gpus = 8});
//   cluster.AddPod({.name = "train", .gpus = 1});
//   EXPECT_EQ(cluster.NodeOf("train"), "a");
//
// What is added is seen at once (Settle). Time stands still unless Advance moves it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "client/client.h"
#include "scheduler/scheduler.h"

namespace sextant::scheduler::testing {

// Keeps objects and tells watches of them; Pods are bound, deleted and given a status as by the
// API server.
class FakeApi : public client::Client {
 public:
  explicit FakeApi(ManualLoop& loop) : loop_(loop) {}
  Loop& executor() override { return loop_; }

  std::unique_ptr<client::WatchHandle> Watch(client::Gvr gvr, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override;
  void Create(client::Gvr gvr, client::ObjectName name, api::Object object,
              client::WriteOptions options, client::Callback<api::Object> done) override;
  void Patch(client::Gvr gvr, client::ObjectName name, client::PatchType type, api::Object patch,
             client::WriteOptions options, client::Callback<api::Object> done) override;
  void Delete(client::Gvr gvr, client::ObjectName name, client::DeleteOptions options,
              client::Callback<api::Object> done) override;
  void Get(client::Gvr, client::ObjectName, client::Callback<api::Object>) override;
  void List(client::Gvr, client::ListOptions, client::Callback<struct client::List>) override;
  void Update(client::Gvr, client::ObjectName, api::Object, client::WriteOptions,
              client::Callback<api::Object>) override;
  void DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                        client::Callback<api::Object>) override;
  void PodLog(client::ObjectName, std::string, int64_t, client::Callback<std::string>) override;
  void GetRaw(std::string, client::Callback<std::string>) override;

  void Put(std::string_view resource, api::Object object);
  void Remove(std::string_view resource, const client::ObjectName& name);
  api::Object Find(std::string_view resource, const client::ObjectName& name) const;
  // Lists of these resources do not come until Release.
  void Hold(std::string resource) { held_.insert(std::move(resource)); }
  void Release(const std::string& resource);

  std::vector<std::string> events;  // "Warning FailedScheduling web: message", each once
  std::map<std::string, int> told;  // how often; the same text
  std::string binding_error;        // what the next bindings fail with
  std::string update_error;         // what the next update fails with
  bool victims_linger = false;      // deleted Pods get a deletionTimestamp and stay

 private:
  struct Stream {
    std::string resource;
    client::WatchCallbacks callbacks;
    bool open = true;
  };
  void Send(const std::shared_ptr<Stream>& stream, std::vector<client::WatchEvent> sent);
  void Tell(std::string_view resource, client::WatchEventType type, const api::Object& object);
  void SendAll(const std::shared_ptr<Stream>& stream);

  ManualLoop& loop_;
  std::map<std::string, std::map<client::ObjectName, api::Object>, std::less<>> objects_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::set<std::string> held_;
  std::map<std::string, std::string> event_names_;
  uint64_t revision_ = 0;
};

struct NodeSpec {
  std::string name;
  int gpus = 0;
  std::string cpu = "8";
  std::string memory = "32Gi";
  int pods = 110;
  std::string labels = "{}";  // beside kubernetes.io/hostname
  std::string spec = "{}";
};

struct PodSpec {
  std::string name;
  int gpus = 0;
  std::string cpu = "";
  int priority = 0;
  std::string labels = "{}";
  std::string spec = "{}";  // members beside containers and priority
  std::string ns = "default";
  std::string owner = "{}";  // an ownerReference
  std::string node = "";     // bound already
};

class Cluster {
 public:
  explicit Cluster(bool started = true);
  ~Cluster();
  void Start();

  void Settle() { loop.RunReady(); }
  void Advance(Duration d) { loop.Advance(d); }

  void AddNode(const NodeSpec& node);  // or changes it
  void RemoveNode(const std::string& name);
  void AddPod(const PodSpec& pod);
  void ChangePod(const std::string& name, std::string_view merge);  // "default" namespace
  void RemovePod(const std::string& name);
  void Add(std::string_view resource, std::string_view json);

  std::string NodeOf(const std::string& name, const std::string& ns = "default") const;
  api::Object Pod(const std::string& name, const std::string& ns = "default") const;
  // The message of the PodScheduled condition, "" if there is none.
  std::string Why(const std::string& name) const;
  // How often events with this reason were told of the Pod.
  int Told(std::string_view reason, std::string_view pod) const;
  // How often it was tried in vain.
  int Tries(const std::string& pod) const;
  std::vector<std::string> NodesOf(const std::vector<std::string>& pods) const;

  ManualLoop loop;
  FakeApi api{loop};

 private:
  std::unique_ptr<client::SharedInformers> informers_;
  std::unique_ptr<Scheduler> scheduler_;
  int next_uid_ = 1;
};

}  // namespace sextant::scheduler::testing
