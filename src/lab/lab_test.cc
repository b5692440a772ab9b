// A whole lab in this process, steered through its API as a user steers it.
#include "lab/lab.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "base/file.h"
#include "client/blocking.h"
#include "client/remote_client.h"
#include "lab/kind_config.h"
#include "lab/node_set.h"
#include "lab/pools.h"

namespace sextant::lab {
namespace {

using api::Object;

class LabTest : public ::testing::Test {
 protected:
  // One control plane and `workers` workers, simulated Pods, state in memory.
  void StartLab(int workers, std::vector<PoolConfig> pools = {}, bool ephemeral = true) {
    LabConfig config;
    config.nodes.push_back({.control_plane = true});
    for (int i = 0; i < workers; ++i) config.nodes.push_back({});
    NameNodes(config);
    config.nodes.back().labels[std::string(kPoolLabel)] = FirstPools(config).front().name;
    config.pools = std::move(pools);
    config.runtime = RuntimeMode::kSimulated;
    Run(std::move(config), ephemeral);
  }
  void Run(LabConfig config, bool ephemeral) {
    auto lab = Lab::Start(std::move(config), {directory_.path(), ephemeral});
    ASSERT_TRUE(lab) << lab.error().message;
    lab_ = *std::move(lab);
    Connect();
  }
  // The same lab again, from its state.
  void Restart() {
    const LabConfig config = lab_->config();
    lab_.reset();
    Run(config, false);
  }
  void Connect() {
    client::RemoteOptions options;
    options.server = lab_->access().server;
    options.tls.ca_pem = lab_->access().ca_pem;
    options.tls.cert_pem = lab_->access().admin.cert_pem;
    options.tls.key_pem = lab_->access().admin.key_pem;
    client_ = std::make_unique<client::RemoteClient>(io_, loop_, std::move(options));
    calls_ = std::make_unique<client::Blocking>(*client_);
  }

  bool Has(client::Gvr gvr, const std::string& ns, const std::string& name) {
    return calls_->Get(gvr, {ns, name}).has_value();
  }
  void Delete(client::Gvr gvr, const std::string& ns, const std::string& name) {
    auto gone = calls_->Delete(gvr, {ns, name});
    ASSERT_TRUE(gone) << gone.error().message;
  }
  static Object Json(std::string_view text) {
    auto parsed = api::ParseJson(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : Object();
  }
  Object Node(const std::string& name) {
    auto node = calls_->Get(client::kNodes, {"", name});
    return node ? *node : Object();
  }
  std::string Gpus(const std::string& node) {
    return std::string(Node(node)["status"]["allocatable"]["nvidia.com/gpu"].AsString());
  }
  void Eventually(std::string_view what, const std::function<bool()>& holds) {
    const Duration end = clock_.Monotonic() + std::chrono::seconds(20);
    while (!holds()) {
      ASSERT_LT(clock_.Monotonic(), end) << what;
      ::usleep(10'000);
    }
  }
  void Merge(client::Gvr gvr, client::ObjectName name, std::string_view patch) {
    auto done = calls_->Patch(gvr, name, client::PatchType::kMerge, Json(patch));
    ASSERT_TRUE(done) << done.error().message;
  }
  void CreateTopology(std::string_view yaml) {
    api::Editor edit;
    edit.Root()["metadata"].Set("name", kTopologyName);
    edit.Root()["data"].Set("topology.yml", yaml);
    auto made = calls_->Create(client::kConfigMaps, {"default", ""}, std::move(edit).Finish());
    ASSERT_TRUE(made) << made.error().message;
  }
  void DeleteTopology() { Delete(client::kConfigMaps, "default", std::string(kTopologyName)); }

  TempDir directory_ = *TempDir::Make("lab");
  RealClock clock_;
  net::IoThread io_{"test-io", clock_};
  EventLoop loop_{"test", clock_};
  std::unique_ptr<Lab> lab_;
  std::unique_ptr<client::RemoteClient> client_;
  std::unique_ptr<client::Blocking> calls_;
};

// ConfigMap over flag; what the ConfigMap gives up has the flag's form again, or goes.
TEST_F(LabTest, APoolComesBackWhenItsConfigMapGoes) {
  StartLab(1, {{.name = "default", .model = "h100-sxm5-80gb", .count = 4}});
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  EXPECT_EQ(Gpus("gpu-lab-worker"), "4");
  CreateTopology(
      "nodePools: {default: {gpuProduct: Tesla-T4, gpuCount: 3, gpuMemory: 15360}, "
      "extra: {gpuProduct: Tesla-T4, gpuCount: 1, gpuMemory: 15360}}");
  Eventually("the ConfigMap's 3", [&] { return Gpus("gpu-lab-worker") == "3"; });
  Eventually("its second pool",
             [&] { return calls_->Get(client::kGpuPools, {"", "extra"}).has_value(); });
  Merge(client::kConfigMaps, {"default", std::string(kTopologyName)},
        R"({"data":{"topology.yml":"nodePools: {extra: {gpuProduct: Tesla-T4, gpuCount: 2}}"}})");
  Eventually("the flag's 4, the ConfigMap names it no longer",
             [&] { return Gpus("gpu-lab-worker") == "4"; });
  DeleteTopology();
  Eventually("extra is gone", [&] {
    auto extra = calls_->Get(client::kGpuPools, {"", "extra"});
    return !extra && extra.error().code == 404;
  });
  auto pool = calls_->Get(client::kGpuPools, {"", "default"});
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)["spec"]["model"].AsString(), "h100-sxm5-80gb");
  EXPECT_TRUE((*pool)["metadata"]["annotations"].empty());
}

// Readiness and the pools agree on which label names a pool, and the usual one is back afterwards.
TEST_F(LabTest, ATopologyMayNameAnotherLabel) {
  StartLab(1);
  ASSERT_TRUE(
      calls_->Create(client::kNodes, {"", ""}, Json(R"({"metadata":{"name":"other","labels":{
                                 "sextant.dev/simulated":"true","my/pool":"few"}}})")));
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  CreateTopology(
      "nodePoolLabelKey: my/pool\nnodePools: {few: {gpuProduct: Tesla-T4, gpuCount: 2}}");
  Eventually("my/pool", [&] { return Gpus("other") == "2"; });
  Eventually("the usual label names nothing", [&] { return Gpus("gpu-lab-worker") == "0"; });
  EXPECT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  DeleteTopology();
  Eventually("the usual label again", [&] { return Gpus("gpu-lab-worker") == "8"; });
  Eventually("and not the other", [&] { return Gpus("other") == "0"; });
}

// What a user deletes stays deleted; what Kubernetes itself puts back at a start is put back.
TEST_F(LabTest, ARestartBringsNothingBackThatWasDeleted) {
  constexpr client::Gvr kDaemonSets{"apps", "v1", "daemonsets"};
  constexpr client::Gvr kStorageClasses{"storage.k8s.io", "v1", "storageclasses"};
  constexpr client::Gvr kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles"};
  const std::string plugin = "nvidia-device-plugin-daemonset";
  StartLab(1, {{.name = "default", .model = "t4", .count = 2}, {.name = "spare"}}, false);
  ASSERT_TRUE(Has(kDaemonSets, "kube-system", plugin));
  Delete(kDaemonSets, "kube-system", plugin);
  Delete(kStorageClasses, "", "standard");
  Delete(client::kGpuPools, "", "spare");
  Delete(kClusterRoles, "", "view");
  Restart();
  EXPECT_FALSE(Has(kDaemonSets, "kube-system", plugin));
  EXPECT_FALSE(Has(kStorageClasses, "", "standard"));
  EXPECT_FALSE(Has(client::kGpuPools, "", "spare"));
  EXPECT_TRUE(Has(client::kGpuPools, "", "default"));
  EXPECT_TRUE(Has(kClusterRoles, "", "view"));
}

// Nothing becomes another model in silence: the pool says so, once, and names what was meant.
TEST_F(LabTest, WhatIsWrongWithPoolsIsToldOnce) {
  StartLab(1);
  const std::string worker = "gpu-lab-worker";
  const auto pool = [&] {
    auto found = calls_->Get(client::kGpuPools, {"", "default"});
    return found ? *found : Object();
  };
  const auto reason = [&] {
    return std::string(pool()["status"]["conditions"].at(0)["reason"].AsString());
  };
  const auto warnings = [&](std::string_view about) {
    std::vector<std::string> texts;
    auto events = calls_->List(client::kCoreEvents, {.field_selector = "type=Warning"});
    for (const Object& event : events ? events->items : std::vector<Object>()) {
      if (event["involvedObject"]["kind"].AsString() != about) continue;
      texts.push_back(fmt::format("{} x{}: {}", event["reason"].AsString(), event["count"].AsInt(1),
                                  event["message"].AsString()));
    }
    return texts;
  };
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  EXPECT_EQ(reason(), "PoolReady");
  CreateTopology("nodePools: {default: {gpuProduct: NVIDIA-L40X, gpuCount: 3}}");
  Eventually("its cards", [&] { return Gpus(worker) == "3"; });
  Eventually("the reason", [&] { return reason() == "UnknownModel"; });
  EXPECT_EQ(pool()["status"]["conditions"].at(0)["status"].AsString(), "True");
  EXPECT_NE(pool()["status"]["conditions"].at(0)["message"].AsString().find("did you mean l40s"),
            std::string::npos);
  Eventually("the event", [&] { return warnings("GPUPool").size() == 1; });
  EXPECT_EQ(warnings("GPUPool").front().find("UnknownModel x1: unknown GPU model \"NVIDIA-L40X\""),
            0u)
      << warnings("GPUPool").front();
  // A node's change is no news of its pool.
  Merge(client::kNodes, {"", worker}, R"({"metadata":{"labels":{"a":"b"}}})");
  Merge(client::kNodes, {"", worker},
        R"({"metadata":{"labels":{"run.ai/simulated-gpu-node-pool":"defualt"}}})");
  Eventually("no cards of a pool that there is not", [&] { return Gpus(worker) == "0"; });
  Eventually("the node's event", [&] { return warnings("Node").size() == 1; });
  EXPECT_EQ(warnings("Node").front(),
            "GPUPoolNotFound x1: the node's label run.ai/simulated-gpu-node-pool names the GPUPool "
            "\"defualt\", which is not there (did you mean \"default\"?)");
  Merge(client::kNodes, {"", worker}, R"({"metadata":{"labels":{"a":"c"}}})");
  Merge(client::kConfigMaps, {"default", std::string(kTopologyName)},
        R"({"data":{"topology.yml":"nodePools: {default: {gpuCount: many}}"}})");
  Eventually("the ConfigMap's event", [&] { return warnings("ConfigMap").size() == 1; });
  Merge(client::kConfigMaps, {"default", std::string(kTopologyName)},
        R"({"data":{"topology.yml":"nodePools: {A_b: {gpuCount: 1}, good: {gpuCount: 1}}"}})");
  Eventually("the ConfigMap's next event", [&] { return warnings("ConfigMap").size() == 2; });
  EXPECT_TRUE(Has(client::kGpuPools, "", "good")) << "what is right is made all the same";
  Merge(client::kConfigMaps, {"default", std::string(kTopologyName)},
        R"({"data":{"topology.yml":"nodePools: {default: {gpuProduct: NVIDIA-L40S}}"}})");
  Eventually("all is well", [&] { return reason() == "PoolReady"; });
  Merge(client::kGpuPools, {"", "default"}, R"({"spec":{"model":"l40x"}})");
  Eventually("not ready", [&] { return reason() == "InvalidPool"; });
  EXPECT_EQ(warnings("Node").size(), 1u);
  EXPECT_EQ(warnings("Node").front().find("GPUPoolNotFound x1"), 0u);
}

// Labels are feature discovery's, not the device plugin's.
TEST_F(LabTest, LabelsFollowTheCardsWithoutADevicePlugin) {
  StartLab(1);
  const std::string worker = "gpu-lab-worker";
  const auto label = [&](std::string_view key) {
    return std::string(Node(worker)["metadata"]["labels"][key].AsString());
  };
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  EXPECT_EQ(label("nvidia.com/gpu.product"), "NVIDIA-A100-SXM4-40GB");
  Delete({"apps", "v1", "daemonsets"}, "kube-system", "nvidia-device-plugin-daemonset");
  Eventually("nothing is on offer", [&] { return Gpus(worker) == "0"; });
  Merge(client::kGpuPools, {"", "default"}, R"({"spec":{"model":"t4","count":2}})");
  Eventually("the new cards' labels",
             [&] { return label("nvidia.com/gpu.product") == "Tesla-T4"; });
  EXPECT_EQ(label("nvidia.com/gpu.count"), "2");
  Merge(client::kNodes, {"", worker},
        R"({"metadata":{"labels":{"run.ai/simulated-gpu-node-pool":null}}})");
  Eventually("no label is left", [&] { return label("nvidia.com/gpu.product").empty(); });
  EXPECT_EQ(label("nvidia.com/gpu.present"), "");
}

TEST_F(LabTest, DiscoverySaysWhereTheLabListens) {
  StartLab(0);
  auto text = calls_->GetRaw("/api");
  ASSERT_TRUE(text) << text.error().message;
  const Object versions = Json(*text);
  const api::Value says = versions["serverAddressByClientCIDRs"].at(0)["serverAddress"];
  EXPECT_EQ(fmt::format("https://{}", says.AsString()), lab_->access().server);
}

TEST_F(LabTest, DraPoolsWaitForSlicesAndForNoPluginResource) {
  StartLab(1, {{.name = "default", .allocation = "dra"}});
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  EXPECT_FALSE(Node("gpu-lab-worker")["status"]["capacity"].Has("nvidia.com/gpu"));
  const auto slices = calls_->List({"resource.k8s.io", "v1", "resourceslices"});
  ASSERT_TRUE(slices) << slices.error().message;
  size_t cards = 0;
  for (const Object& slice : slices->items)
    if (slice["spec"]["driver"].AsString() == "gpu.nvidia.com")
      cards += slice["spec"]["devices"].size();
  EXPECT_EQ(cards, 8u);
}

TEST_F(LabTest, WaitingEndsWhenItIsTold) {
  StartLab(1);
  const Duration before = clock_.Monotonic();
  Eventually("its cards", [&] { return Gpus("gpu-lab-worker") == "8"; });
  Merge(client::kGpuPools, {"", "default"}, R"({"spec":{"model":"no-such"}})");
  Eventually("no card of a model that there is not", [&] { return Gpus("gpu-lab-worker") == "0"; });
  EXPECT_FALSE(lab_->WaitReady(std::chrono::hours(1), [] { return true; }));
  EXPECT_LT(clock_.Monotonic() - before, std::chrono::minutes(1));
}

TEST_F(LabTest, ALabOfOneNodeRunsPodsOnIt) {
  StartLab(0);
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  Eventually("no taint is left",
             [&] { return Node("gpu-lab-control-plane")["spec"]["taints"].empty(); });
  Eventually("its role", [&] {
    return Node("gpu-lab-control-plane")["metadata"]["labels"].Has(
        "node-role.kubernetes.io/control-plane");
  });
}

TEST_F(LabTest, ANodeThatCouldNotRegisterIsToldSo) {
  StartLab(0);
  const std::string name(64, 'n');
  auto made =
      calls_->Create(client::kNodes, {"", ""},
                     Json(fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"{}":"true"}}}}}})",
                                      name, kSimulatedLabel)));
  ASSERT_TRUE(made) << made.error().message;
  Eventually("its event", [&] {
    auto events = calls_->List(client::kCoreEvents, {.field_selector = "reason=InvalidNodeName"});
    return events && events->items.size() == 1 &&
           events->items[0]["involvedObject"]["name"].AsString() == name;
  });
}

// Addresses are never two nodes', and the API server reaches a node that came later.
TEST_F(LabTest, AddedNodesAreNodesOfTheirOwn) {
  StartLab(1);
  ASSERT_TRUE(lab_->WaitReady(std::chrono::seconds(20)));
  const auto add = [&](const std::string& name) {
    auto made =
        calls_->Create(client::kNodes, {"", ""},
                       Json(fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"{}":"true",
                         "node-role.kubernetes.io/gpu":""}}}}}})",
                                        name, kSimulatedLabel)));
    ASSERT_TRUE(made) << made.error().message;
    Eventually(name, [&] { return !Node(name)["spec"]["podCIDR"].AsString().empty(); });
    Eventually("its kubelet's labels", [&] {
      const Object node = Node(name);
      const api::Value labels = node["metadata"]["labels"];
      return labels["kubernetes.io/hostname"].AsString() == name &&
             labels["kubernetes.io/os"].AsString() == "linux" && labels.Has("kubernetes.io/arch");
    });
  };
  add("x");
  ASSERT_TRUE(calls_->Delete(client::kNodes, {"", "gpu-lab-worker"}));
  add("y");
  ASSERT_TRUE(calls_->Delete(client::kNodes, {"", "x"}));
  add("z");
  std::set<std::string> cidrs;
  std::set<std::string> ips;
  auto nodes = calls_->List(client::kNodes);
  ASSERT_TRUE(nodes);
  EXPECT_EQ(nodes->items.size(), 3u);
  for (const Object& node : nodes->items) {
    EXPECT_TRUE(cidrs.emplace(node["spec"]["podCIDR"].AsString()).second) << node.name();
    Eventually(node.name(),
               [&] { return !Node(std::string(node.name()))["status"]["addresses"].empty(); });
    EXPECT_TRUE(
        ips.emplace(
               Node(std::string(node.name()))["status"]["addresses"].at(0)["address"].AsString())
            .second)
        << node.name();
  }
  ASSERT_TRUE(calls_->Create(
      client::kPods, {"default", ""},
      Json(
          R"({"metadata":{"name":"p"},"spec":{"nodeName":"z","containers":[{"name":"c","image":"i"}]}})")));
  Eventually("the Pod runs", [&] {
    auto pod = calls_->Get(client::kPods, {"default", "p"});
    return pod && (*pod)["status"]["phase"].AsString() == "Running";
  });
  auto log = calls_->PodLog({"default", "p"}, "c", 1000);
  EXPECT_TRUE(log) << log.error().message;
}

}  // namespace
}  // namespace sextant::lab
