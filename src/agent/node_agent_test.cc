#include "agent/node_agent.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "plugin/device_plugin.h"

namespace sextant::agent {
namespace {

// No node is there, so nothing is labelled.
class NoCluster : public client::Client {
 public:
  explicit NoCluster(Loop& loop) : loop_(loop) {}
  Loop& executor() override { return loop_; }
  void Get(client::Gvr, client::ObjectName name, client::Callback<api::Object> done) override {
    loop_.Post([name, done = std::move(done)]() mutable {
      done(Fail(NotFound({"", "nodes"}, name.name)));
    });
  }
  void List(client::Gvr, client::ListOptions, client::Callback<struct client::List>) override {}
  std::unique_ptr<client::WatchHandle> Watch(client::Gvr, client::WatchOptions,
                                             client::WatchCallbacks) override {
    return nullptr;
  }
  void Create(client::Gvr, client::ObjectName, api::Object, client::WriteOptions,
              client::Callback<api::Object>) override {}
  void Update(client::Gvr, client::ObjectName, api::Object, client::WriteOptions,
              client::Callback<api::Object>) override {}
  void Patch(client::Gvr, client::ObjectName, client::PatchType, api::Object, client::WriteOptions,
             client::Callback<api::Object>) override {}
  void Delete(client::Gvr, client::ObjectName, client::DeleteOptions,
              client::Callback<api::Object>) override {}
  void DeleteCollection(client::Gvr, client::ListOptions, client::DeleteOptions,
                        client::Callback<api::Object>) override {}
  void PodLog(client::ObjectName, std::string, int64_t, client::Callback<std::string>) override {}
  void GetRaw(std::string, client::Callback<std::string>) override {}

 private:
  Loop& loop_;
};

class Kubelet : public plugin::Registrar {
 public:
  void Register(std::shared_ptr<plugin::DevicePlugin> plugin) override {
    log.push_back("+" + plugin->resource());
    watch = plugin->ListAndWatch([this](const auto& devices) {
      const std::string count = std::to_string(devices.size());
      if (log.back() != count) log.push_back(count);
    });
  }
  void Unregister(const std::string& resource) override { log.push_back("-" + resource); }

  std::vector<std::string> log;
  std::shared_ptr<void> watch;
};

using Log = std::vector<std::string>;

TEST(NodeAgent, RegistersWhenThereAreCards) {
  ManualLoop loop;
  const TempDir dir = *TempDir::Make("agent");
  NoCluster cluster(loop);
  host::SimulatedMachine machine(loop);
  Kubelet kubelet;
  {
    NodeAgent agent({cluster, machine, loop}, {.node = "worker", .state_directory = dir.path()});
    agent.Start(kubelet);
    loop.RunReady();
    EXPECT_EQ(kubelet.log, Log{}) << "no cards yet: a kubelet that came back must not hear of none";
    machine.SetCards(*gpu::BuildInventory({.model = "l40s", .count = 4}, "lab", "worker"));
    loop.RunReady();
    EXPECT_EQ(kubelet.log, (Log{"+nvidia.com/gpu", "4"}));
    machine.SetCards({});
    loop.RunReady();
    EXPECT_EQ(kubelet.log, (Log{"+nvidia.com/gpu", "4", "0"}))
        << "registered once, told of changes";
  }
  EXPECT_EQ(kubelet.log.back(), "-nvidia.com/gpu");
}

TEST(NodeAgent, WithdrawsOnlyWhatItRegistered) {
  ManualLoop loop;
  const TempDir dir = *TempDir::Make("agent");
  NoCluster cluster(loop);
  host::SimulatedMachine machine(loop);
  Kubelet kubelet;
  {
    NodeAgent agent({cluster, machine, loop}, {.node = "worker", .state_directory = dir.path()});
    agent.Start(kubelet);
    loop.RunReady();
  }
  EXPECT_EQ(kubelet.log, Log{});
}

}  // namespace
}  // namespace sextant::agent
