#include "kubelet/kubelet.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "kubelet/pod_worker.h"
#include "kubelet/runtime_simulated.h"
#include "kubelet/test_api.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;
using std::chrono::seconds;
using testing::ScriptedRuntime;
using testing::TestApi;
using testing::TestComponents;
using testing::TestPlugin;

class KubeletTest : public ::testing::Test {
 protected:
  KubeletTest() : dir_(*TempDir::Make("kubelet")) {
    machine_.SetSpec({.cpu = "8", .memory = "32Gi"});
  }

  KubeletOptions Options() {
    KubeletOptions options;
    options.node = "worker";
    options.state_directory = dir_.path() + "/worker";  // the kubelet makes it
    options.internal_ip = "172.18.0.3";
    options.pod_cidr = "10.244.1.0/24";
    return options;
  }
  void Start(Runtime& runtime) { Start(runtime, Options()); }
  void Start(Runtime& runtime, KubeletOptions options) {
    kubelet_ = std::make_unique<Kubelet>(
        KubeletParts{api_, feed_, runtime, machine_, loop_, components_}, std::move(options));
    kubelet_->Start();
    loop_.RunReady();
  }
  void Start() { Start(runtime_); }
  // `spec` is the Pod's spec without its node.
  void AddPod(const std::string& name, const std::string& spec,
              const std::string& annotations = "") {
    api_.Put("pods", fmt::format(R"({{"kind":"Pod","apiVersion":"v1","metadata":{{
      "name":"{}","namespace":"default","uid":"{}","annotations":{{{}}}}},
      "spec":{{"nodeName":"worker",{}}},"status":{{"phase":"Pending"}}}})",
                                 name, name, annotations, spec));
    loop_.RunReady();
  }
  static std::string Gpu(int count, std::string policy = "Never") {
    return fmt::format(R"("restartPolicy":"{}","containers":[{{"name":"c","image":"cuda",
      "command":["nvidia-smi"],"resources":{{"limits":{{"nvidia.com/gpu":"{}"}},
      "requests":{{"nvidia.com/gpu":"{}"}}}}}}])",
                       policy, count, count);
  }
  static std::string Simple(std::string policy, std::string more = "") {
    return fmt::format(R"("restartPolicy":"{}","containers":[{{"name":"c","image":"busybox",
      "command":["sh"]{}}}])",
                       policy, more);
  }
  Value Container(const std::string& pod) { return Keep(pod)["status"]["containerStatuses"].at(0); }
  std::string Phase(const std::string& pod) {
    return std::string(api_.Pod(pod)["status"]["phase"].AsString());
  }
  std::string Condition(const std::string& pod, std::string_view type) {
    for (Value condition : api_.Pod(pod)["status"]["conditions"].items())
      if (condition["type"].AsString() == type) return std::string(condition["status"].AsString());
    return "";
  }
  std::string Allocatable(const char* kind = "allocatable") {
    return std::string(api_.Node("worker")["status"][kind]["nvidia.com/gpu"].AsString("none"));
  }
  Object Keep(const std::string& pod) {
    kept_ = api_.Pod(pod);
    return kept_;
  }

  ManualLoop loop_;
  TempDir dir_;
  TestApi api_{loop_};
  client::SharedInformers informers_{api_};
  NodeFeed feed_{informers_};
  ScriptedRuntime runtime_{loop_};
  host::SimulatedMachine machine_{loop_};
  TestComponents components_{loop_};
  std::unique_ptr<Kubelet> kubelet_;
  Object kept_;
};

TEST_F(KubeletTest, RegistersItsNode) {
  KubeletOptions options = Options();
  options.control_plane = true;
  options.labels = {{"disk", "ssd"}};
  Start(runtime_, options);
  const Object node = api_.Node("worker");
  ASSERT_TRUE(node);
  EXPECT_EQ(node["metadata"]["labels"]["kubernetes.io/hostname"].AsString(), "worker");
  EXPECT_EQ(node["metadata"]["labels"]["disk"].AsString(), "ssd");
  EXPECT_EQ(node["spec"]["taints"].at(0)["key"].AsString(),
            "node-role.kubernetes.io/control-plane");
  EXPECT_EQ(node["status"]["capacity"]["cpu"].AsString(), "8");
  EXPECT_EQ(node["status"]["allocatable"]["pods"].AsString(), "110");
  EXPECT_EQ(node["status"]["conditions"].at(3)["type"].AsString(), "Ready");
  EXPECT_EQ(node["status"]["conditions"].at(3)["status"].AsString(), "True");
  EXPECT_EQ(node["status"]["addresses"].at(0)["address"].AsString(), "172.18.0.3");
}

// A Node that is there already gets what its kubelet has to say, and keeps all else.
TEST_F(KubeletTest, ReconcilesANodeThatIsThere) {
  api_.Put("nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"worker",
      "uid":"uid-worker","labels":{"kubernetes.io/hostname":"another","disk":"hdd"}},"spec":{}})");
  KubeletOptions options = Options();
  options.labels = {{"disk", "ssd"}, {"topology.kubernetes.io/zone", "z1"}};
  Start(runtime_, options);
  const Object node = api_.Node("worker");
  const Value labels = node["metadata"]["labels"];
  EXPECT_EQ(labels["kubernetes.io/hostname"].AsString(), "worker");
  EXPECT_EQ(labels["kubernetes.io/os"].AsString(), "linux");
  EXPECT_TRUE(labels.Has("kubernetes.io/arch"));
  EXPECT_EQ(labels["topology.kubernetes.io/zone"].AsString(), "z1");
  EXPECT_EQ(labels["disk"].AsString(), "hdd") << "no label of the kubelet's own";
  EXPECT_EQ(node["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-"
                                            "detach"]
                .AsString(),
            "true");
  EXPECT_EQ(node["status"]["conditions"].at(3)["status"].AsString(), "True");
}

TEST_F(KubeletTest, RenewsItsLeaseAndSaysThatItIsReadyAgain) {
  Start();
  const Object lease = api_.Find("leases", "kube-node-lease", "worker");
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease["metadata"]["ownerReferences"].at(0)["uid"].AsString(), "uid-worker");
  loop_.Advance(seconds(30));
  EXPECT_EQ(api_.updates["leases"], 3);
  api::Editor edit(api_.Node("worker"));
  edit.Root()["status"]["conditions"].at(3).Set("status", "Unknown");
  api_.Put("nodes", api::ToJson(edit.Root().Snapshot()));
  loop_.Advance(seconds(10));
  EXPECT_EQ(api_.Node("worker")["status"]["conditions"].at(3)["status"].AsString(), "True");
  EXPECT_EQ(api_.Events("NodeReady").size(), 1u);
}

TEST_F(KubeletTest, CapacityFollowsTheMachine) {
  Start();
  machine_.SetSpec({.cpu = "16", .memory = "64Gi", .resources = {{"example.com/fpga", "4"}}});
  loop_.RunReady();
  EXPECT_EQ(api_.Node("worker")["status"]["capacity"]["cpu"].AsString(), "16");
  EXPECT_EQ(api_.Node("worker")["status"]["allocatable"]["example.com/fpga"].AsString(), "4");
  machine_.SetSpec({.cpu = "16", .memory = "64Gi"});
  loop_.RunReady();
  EXPECT_FALSE(api_.Node("worker")["status"]["capacity"].Has("example.com/fpga"));
}

TEST_F(KubeletTest, RunsAPodToItsEnd) {
  Start();
  AddPod("job", Simple("Never"));
  EXPECT_EQ(Phase("job"), "Running");
  EXPECT_EQ(Condition("job", "Ready"), "True");
  EXPECT_EQ(Condition("job", "PodReadyToStartContainers"), "True");
  EXPECT_EQ(api_.Pod("job")["status"]["podIP"].AsString(), "10.244.1.2");
  EXPECT_EQ(api_.Pod("job")["status"]["qosClass"].AsString(), "BestEffort");
  runtime_.End("job/c", 0, "Completed");
  loop_.RunReady();
  EXPECT_EQ(Phase("job"), "Succeeded");
  EXPECT_EQ(Condition("job", "Ready"), "False");
  EXPECT_EQ(Container("job")["state"]["terminated"]["reason"].AsString(), "Completed");
  EXPECT_TRUE(Container("job")["containerID"].AsString().starts_with("sextant://"));
  EXPECT_TRUE(runtime_.sandboxes.empty());
  const std::vector<std::string> wanted = {"Pending", "Pending/waiting:ContainerCreating",
                                           "Running/running:", "Succeeded/terminated:Completed"};
  EXPECT_EQ(api_.history["job"], wanted);
  EXPECT_EQ(api_.Events("Started"), std::vector<std::string>{"Container started"});
}

TEST_F(KubeletTest, FailsWithTheExitCode) {
  Start();
  AddPod("job", Simple("Never"));
  runtime_.End("job/c", 3, "Error");
  loop_.RunReady();
  EXPECT_EQ(Phase("job"), "Failed");
  EXPECT_EQ(Container("job")["state"]["terminated"]["exitCode"].AsInt(), 3);
}

TEST_F(KubeletTest, BacksOffBetweenRestarts) {
  Start();
  AddPod("crash", Simple("Always"));
  runtime_.End("crash/c", 1, "Error");
  loop_.RunReady();  // the first restart comes at once
  ASSERT_TRUE(runtime_.Runs("crash/c"));
  EXPECT_EQ(Container("crash")["restartCount"].AsInt(), 1);
  for (const int wait : {10, 20, 40, 80, 160, 300, 300}) {
    runtime_.End("crash/c", 1, "Error");
    loop_.RunReady();
    const Value waiting = Container("crash")["state"]["waiting"];
    EXPECT_EQ(waiting["reason"].AsString(), "CrashLoopBackOff");
    EXPECT_EQ(waiting["message"].AsString(),
              fmt::format("back-off {} restarting failed container=c pod=crash_default(crash)",
                          FormatDuration(seconds(wait))));
    EXPECT_EQ(Phase("crash"), "Running");
    loop_.Advance(seconds(wait - 1));
    EXPECT_FALSE(runtime_.Runs("crash/c")) << wait;
    loop_.Advance(seconds(1));
    EXPECT_TRUE(runtime_.Runs("crash/c")) << wait;
  }
  EXPECT_EQ(Container("crash")["restartCount"].AsInt(), 8);
  EXPECT_EQ(Container("crash")["lastState"]["terminated"]["exitCode"].AsInt(), 1);
}

TEST_F(KubeletTest, OnFailureRestartsFailuresOnly) {
  Start();
  AddPod("job", Simple("OnFailure"));
  runtime_.End("job/c", 1, "Error");
  loop_.RunReady();
  ASSERT_TRUE(runtime_.Runs("job/c"));
  runtime_.End("job/c", 0, "Completed");
  loop_.RunReady();
  EXPECT_EQ(Phase("job"), "Succeeded");
  EXPECT_EQ(Container("job")["restartCount"].AsInt(), 1);
}

TEST_F(KubeletTest, DeletesGracefully) {
  Start();
  runtime_.ends_when_told = false;
  AddPod("web", Simple("Always"));
  api_.MarkDeleted("web", 30);
  loop_.RunReady();
  EXPECT_EQ(runtime_.containers["web/c"].signal, SIGTERM);
  EXPECT_EQ(runtime_.containers["web/c"].grace, seconds(30));
  EXPECT_EQ(api_.Events("Killing"), std::vector<std::string>{"Stopping container c"});
  EXPECT_TRUE(api_.Pod("web"));
  runtime_.End("web/c", 143, "Error");
  loop_.RunReady();
  EXPECT_FALSE(api_.Pod("web"));
  EXPECT_EQ(api_.history["web"].back(), "Failed/terminated:Error");
  EXPECT_TRUE(kubelet_->Pods().empty());
}

TEST_F(KubeletTest, DeletesWhatHasEndedAndWhatNeverBegan) {
  Start();
  AddPod("done", Simple("Never"));
  runtime_.End("done/c", 0, "Completed");
  loop_.RunReady();
  api_.MarkDeleted("done", 0);
  AddPod("waits", R"("containers":[{"name":"c","image":"x"}],"volumes":[{"name":"v",
    "nfs":{"server":"s","path":"/"}}])");
  EXPECT_EQ(api_.Events("FailedMount").size(), 1u);
  api_.MarkDeleted("waits", 30);
  loop_.RunReady();
  EXPECT_FALSE(api_.Pod("done"));
  EXPECT_FALSE(api_.Pod("waits"));
}

constexpr std::string_view kWithClaim =
    R"("containers":[{"name":"c","image":"x","volumeMounts":[{"name":"v","mountPath":"/data"}]}],
    "volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])";

TEST_F(KubeletTest, AClaimIsWaitedForAndToldOfAfterTwoMinutes) {
  Start();
  AddPod("db", std::string(kWithClaim));
  loop_.Advance(seconds(120));
  EXPECT_TRUE(api_.Events("FailedMount").empty());
  loop_.Advance(seconds(5));
  ASSERT_EQ(api_.Events("FailedMount").size(), 1u);
  EXPECT_TRUE(api_.Events("FailedMount")[0].starts_with(
      "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to "
      "process volumes=[v]: error processing PVC default/data: failed to fetch PVC from API "
      "server:"))
      << api_.Events("FailedMount")[0];
  EXPECT_EQ(Phase("db"), "Pending");
}

TEST_F(KubeletTest, ABoundClaimIsADirectoryOfTheNode) {
  Start();
  AddPod("db", std::string(kWithClaim));
  api_.Put("persistentvolumeclaims", R"({"metadata":{"name":"data","namespace":"default","uid":"u"},
    "spec":{"volumeName":"pv"},"status":{"phase":"Bound"}})");
  loop_.Advance(seconds(1));
  EXPECT_EQ(Phase("db"), "Pending");  // its volume is not there
  api_.Put("persistentvolumes", R"({"metadata":{"name":"pv"},"spec":{"claimRef":{"uid":"u"},
    "hostPath":{"path":"/var/x/pv"}}})");
  loop_.Advance(seconds(1));
  EXPECT_EQ(Phase("db"), "Running");
  const std::vector<Mount>& mounts = runtime_.containers["db/c"].spec.mounts;
  const auto mount = std::find_if(mounts.begin(), mounts.end(),
                                  [](const Mount& m) { return m.container_path == "/data"; });
  ASSERT_NE(mount, mounts.end());
  EXPECT_TRUE(mount->host_path.ends_with("/disk/var/x/pv")) << mount->host_path;
  EXPECT_FALSE(mount->read_only);
}

TEST_F(KubeletTest, AVolumeOfAnotherNodeIsNotMounted) {
  Start();
  api_.Put("persistentvolumeclaims", R"({"metadata":{"name":"data","namespace":"default","uid":"u"},
    "spec":{"volumeName":"pv"},"status":{"phase":"Bound"}})");
  api_.Put("persistentvolumes", R"({"metadata":{"name":"pv"},"spec":{"claimRef":{"uid":"u"},
    "hostPath":{"path":"/x"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
      {"key":"kubernetes.io/hostname","operator":"In","values":["elsewhere"]}]}]}}}})");
  AddPod("db", std::string(kWithClaim));
  EXPECT_EQ(api_.Events("FailedMount"),
            std::vector<std::string>{"MountVolume.NodeAffinity check failed for volume \"pv\" : no "
                                     "matching NodeSelectorTerms"});
}

TEST_F(KubeletTest, KillsWhatTheApiHasForgotten) {
  Start();
  AddPod("web", Simple("Always"));
  api_.Erase("pods", {"default", "web"});
  loop_.RunReady();
  EXPECT_FALSE(runtime_.Runs("web/c"));
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_TRUE(kubelet_->Pods().empty());
}

TEST_F(KubeletTest, PreStopRunsWithinTheGrace) {
  Start();
  AddPod("web", Simple("Always", R"(,"lifecycle":{"preStop":{"exec":{"command":["bye"]}}})"));
  api_.MarkDeleted("web", 30);
  loop_.RunReady();
  ASSERT_EQ(runtime_.execs.size(), 1u);
  EXPECT_EQ(runtime_.execs[0], std::vector<std::string>{"bye"});
  EXPECT_FALSE(api_.Pod("web"));
}

TEST_F(KubeletTest, EvictsAPodThatFillsItsVolume) {
  Start();
  AddPod("full", Simple("Always", R"(,"volumeMounts":[{"name":"data","mountPath":"/data"}])") +
                     R"(,"volumes":[{"name":"data","emptyDir":{"sizeLimit":"1Mi"}}])");
  const std::string volume = dir_.path() + "/worker/pods/full/volumes/data";
  loop_.Advance(seconds(3));
  EXPECT_EQ(Phase("full"), "Running");
  ASSERT_TRUE(WriteFileAtomic(volume + "/file", std::string(2 << 20, 'x'), 0644));
  loop_.Advance(seconds(5));
  EXPECT_EQ(Phase("full"), "Failed");
  const Object pod = api_.Pod("full");
  EXPECT_EQ(pod["status"]["reason"].AsString(), "Evicted");
  EXPECT_EQ(pod["status"]["message"].AsString(),
            "Usage of EmptyDir volume \"data\" exceeds the limit \"1Mi\". ");
  EXPECT_EQ(Condition("full", "DisruptionTarget"), "True");
  EXPECT_EQ(api_.Events("Evicted").size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(volume)) << "its files go with it";
}

TEST_F(KubeletTest, EvictsWhoKeepsMostWhereTheDiskIsFull) {
  KubeletOptions options = Options();
  options.least_free_bytes = int64_t{1} << 60;  // no disk has as much
  Start(runtime_, options);
  for (const std::string name : {"large", "small"}) {
    AddPod(name, Simple("Always") + R"(,"volumes":[{"name":"data","emptyDir":{}}])");
    const size_t size = name == "large" ? 20 << 20 : 1 << 20;
    ASSERT_TRUE(
        WriteFileAtomic(fmt::format("{}/worker/pods/{}/volumes/data/file", dir_.path(), name),
                        std::string(size, 'x'), 0644));
  }
  loop_.Advance(seconds(10));
  EXPECT_EQ(Phase("large"), "Failed");
  EXPECT_EQ(Phase("small"), "Running") << "what it keeps is not worth it";
  const Object pod = api_.Pod("large");
  EXPECT_TRUE(pod["status"]["message"].AsString().starts_with(
      "The node was low on resource: ephemeral-storage. Threshold quantity: 1Ei, available: "));
}

TEST_F(KubeletTest, EndsPodsAtTheirDeadline) {
  Start();
  AddPod("slow", Simple("Never") + R"(,"activeDeadlineSeconds":60)");
  loop_.Advance(seconds(60));
  EXPECT_EQ(Phase("slow"), "Failed");
  EXPECT_EQ(api_.Pod("slow")["status"]["reason"].AsString(), "DeadlineExceeded");
}

TEST_F(KubeletTest, InitContainersAndSidecarsInOrder) {
  Start();
  AddPod("app", R"("restartPolicy":"Never","initContainers":[
      {"name":"first","image":"x","command":["sh"]},
      {"name":"side","image":"x","command":["sh"],"restartPolicy":"Always"},
      {"name":"second","image":"x","command":["sh"]}],
    "containers":[{"name":"c","image":"x","command":["sh"]}])");
  EXPECT_EQ(runtime_.started, std::vector<std::string>{"first"});
  EXPECT_EQ(Phase("app"), "Pending");
  EXPECT_EQ(Container("app")["state"]["waiting"]["reason"].AsString(), "PodInitializing");
  runtime_.End("app/first", 0, "Completed");
  loop_.RunReady();
  EXPECT_EQ(runtime_.started, (std::vector<std::string>{"first", "side", "second"}));
  EXPECT_EQ(Condition("app", "Initialized"), "False");
  runtime_.End("app/second", 0, "Completed");
  loop_.RunReady();
  EXPECT_EQ(Phase("app"), "Running");
  EXPECT_EQ(Condition("app", "Initialized"), "True");
  runtime_.End("app/side", 1, "Error");  // a sidecar is started again, whatever the policy
  loop_.RunReady();
  EXPECT_TRUE(runtime_.Runs("app/side"));
  runtime_.End("app/c", 0, "Completed");
  loop_.RunReady();
  EXPECT_FALSE(runtime_.Runs("app/side"));
  EXPECT_EQ(Phase("app"), "Succeeded");
}

TEST_F(KubeletTest, AFailedInitContainerFailsThePod) {
  Start();
  AddPod("app",
         R"("restartPolicy":"Never","initContainers":[{"name":"i","image":"x","command":["sh"]}],
    "containers":[{"name":"c","image":"x","command":["sh"]}])");
  runtime_.End("app/i", 2, "Error");
  loop_.RunReady();
  EXPECT_EQ(Phase("app"), "Failed");
  EXPECT_EQ(runtime_.started, std::vector<std::string>{"i"});
}

TEST_F(KubeletTest, ReadinessAndLiveness) {
  Start();
  runtime_.probes_pass = false;
  AddPod("web", Simple("Always", R"(,"readinessProbe":{"httpGet":{"port":80},"periodSeconds":5,
      "failureThreshold":3},"livenessProbe":{"httpGet":{"port":80},"periodSeconds":10,
      "initialDelaySeconds":10,"failureThreshold":2})"));
  EXPECT_EQ(Condition("web", "Ready"), "False");
  EXPECT_EQ(Phase("web"), "Running");
  runtime_.probes_pass = true;
  loop_.Advance(seconds(5));
  EXPECT_EQ(Condition("web", "Ready"), "True");
  runtime_.probes_pass = false;
  loop_.Advance(seconds(5));  // liveness fails once, readiness once
  EXPECT_EQ(Condition("web", "Ready"), "True");
  loop_.Advance(seconds(10));  // liveness for the second time
  EXPECT_EQ(api_.Events("Killing"),
            std::vector<std::string>{"Container c failed liveness probe, will be restarted"});
  EXPECT_EQ(Container("web")["restartCount"].AsInt(), 1);
  EXPECT_FALSE(api_.Events("Unhealthy").empty());
}

TEST_F(KubeletTest, StartupProbeComesFirst) {
  Start();
  runtime_.probes_pass = false;
  AddPod("web", Simple("Always", R"(,"startupProbe":{"tcpSocket":{"port":80},"periodSeconds":1,
      "failureThreshold":30},"livenessProbe":{"tcpSocket":{"port":80},"periodSeconds":1,
      "failureThreshold":1})"));
  loop_.Advance(seconds(20));
  EXPECT_FALSE(Container("web")["started"].AsBool());
  EXPECT_EQ(Container("web")["restartCount"].AsInt(), 0);
  runtime_.probes_pass = true;
  loop_.Advance(seconds(1));
  EXPECT_TRUE(Container("web")["started"].AsBool());
  EXPECT_TRUE(Container("web")["ready"].AsBool());
}

TEST_F(KubeletTest, WaitsForAMissingConfigMap) {
  Start();
  AddPod("web", Simple("Always", R"j(,"env":[{"name":"MODE","valueFrom":{"configMapKeyRef":
      {"name":"settings","key":"mode"}}},{"name":"LINE","value":"is $(MODE) of $(NOBODY)"}])j"));
  const Value waiting = Container("web")["state"]["waiting"];
  EXPECT_EQ(waiting["reason"].AsString(), "CreateContainerConfigError");
  EXPECT_EQ(waiting["message"].AsString(), "configmaps \"settings\" not found");
  api_.Put("configmaps", R"({"metadata":{"name":"settings","namespace":"default"},"data":{}})");
  loop_.Advance(seconds(10));
  EXPECT_EQ(Container("web")["state"]["waiting"]["message"].AsString(),
            "couldn't find key mode in ConfigMap default/settings");
  api_.Put("configmaps",
           R"({"metadata":{"name":"settings","namespace":"default"},"data":{"mode":"fast"}})");
  loop_.Advance(seconds(10));
  EXPECT_EQ(Phase("web"), "Running");
  const std::vector<std::string>& env = runtime_.containers["web/c"].spec.env;
  EXPECT_NE(std::find(env.begin(), env.end(), "LINE=is fast of $(NOBODY)"), env.end());
}

TEST_F(KubeletTest, FillsVolumes) {
  Start();
  api_.Put(
      "configmaps",
      R"({"metadata":{"name":"kube-root-ca.crt","namespace":"default"},"data":{"ca.crt":"CA"}})");
  AddPod("web", R"("serviceAccountName":"default","containers":[{"name":"c","image":"x",
    "command":["sh"],"volumeMounts":[{"name":"api","mountPath":"/token"},
    {"name":"tmp","mountPath":"/tmp/x","subPath":"a/b"}]}],
    "volumes":[{"name":"tmp","emptyDir":{}},{"name":"api","projected":{"sources":[
      {"serviceAccountToken":{"path":"token"}},
      {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
      {"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"fieldPath":"metadata.namespace"}},
        {"path":"cpus","resourceFieldRef":{"containerName":"c","resource":"limits.cpu"}}]}}]}}])");
  ASSERT_EQ(Phase("web"), "Running");
  const std::string at = dir_.path() + "/worker/pods/web/volumes";
  EXPECT_EQ(*ReadFile(at + "/api/token", 1000), "token-of-default");
  EXPECT_EQ(*ReadFile(at + "/api/ca.crt", 1000), "CA");
  EXPECT_EQ(*ReadFile(at + "/api/namespace", 1000), "default");
  EXPECT_EQ(*ReadFile(at + "/api/cpus", 1000), "8");  // no limit: what the node can give
  EXPECT_EQ(access((at + "/tmp/a/b").c_str(), F_OK), 0);
  const std::vector<Mount>& mounts = runtime_.containers["web/c"].spec.mounts;
  ASSERT_GE(mounts.size(), 2u);
  EXPECT_TRUE(mounts[0].read_only);
  EXPECT_FALSE(mounts[1].read_only);
}

TEST_F(KubeletTest, HostPathsAreTheNodesOwnDisk) {
  Start();
  AddPod("web", R"("containers":[{"name":"c","image":"x","command":["sh"],
    "volumeMounts":[{"name":"etc","mountPath":"/host"}]}],
    "volumes":[{"name":"etc","hostPath":{"path":"/etc"}}])");
  ASSERT_EQ(Phase("web"), "Running");
  EXPECT_EQ(runtime_.containers["web/c"].spec.mounts[0].host_path,
            dir_.path() + "/worker/disk/etc");
  AddPod("up", R"("containers":[{"name":"c","image":"x","command":["sh"]}],
    "volumes":[{"name":"etc","hostPath":{"path":"/a/../../../etc"}}])");
  EXPECT_EQ(Phase("up"), "Pending");
}

TEST_F(KubeletTest, RefusesWhatDoesNotFit) {
  Start();
  AddPod("big", Simple("Never", R"(,"resources":{"requests":{"cpu":"9"}})"));
  EXPECT_EQ(Phase("big"), "Failed");
  EXPECT_EQ(api_.Pod("big")["status"]["reason"].AsString(), "OutOfcpu");
  EXPECT_EQ(api_.Pod("big")["status"]["message"].AsString(),
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 9000, used: 0, "
            "capacity: 8000");
  AddPod("else", Simple("Never") + R"(,"nodeSelector":{"disk":"ssd"})");
  EXPECT_EQ(api_.Pod("else")["status"]["reason"].AsString(), "NodeAffinity");
}

TEST_F(KubeletTest, ConfigMapsOfRunningPodsFollow) {
  Start();
  const auto put = [this](const char* value) {
    api_.Put("configmaps", fmt::format(R"({{"metadata":{{"name":"cm","namespace":"default"}},
      "data":{{"key":"{}"}}}})",
                                       value));
  };
  put("old");
  AddPod("web", R"("containers":[{"name":"c","image":"x","command":["sh"]}],
    "volumes":[{"name":"v","configMap":{"name":"cm"}}])");
  const std::string file = dir_.path() + "/worker/pods/web/volumes/v/key";
  EXPECT_EQ(*ReadFile(file, 100), "old");
  put("new");
  loop_.Advance(kVolumeRefresh);
  EXPECT_EQ(*ReadFile(file, 100), "new");
}

TEST_F(KubeletTest, SimulatedPodsRunForTheirTime) {
  SimulatedRuntime runtime(loop_);
  KubeletOptions options = Options();
  options.materialise = false;
  Start(runtime, options);
  AddPod("train", R"("restartPolicy":"Never","containers":[{"name":"c","image":"trainer"}])",
         R"("sextant.dev/run-for":"30s")");
  EXPECT_EQ(Phase("train"), "Running");
  loop_.Advance(seconds(30));
  EXPECT_EQ(Phase("train"), "Succeeded");
  kubelet_.reset();
}

// ---- devices

TEST_F(KubeletTest, NineCardsWantedEightThere) {
  Start();
  auto plugin = std::make_shared<TestPlugin>(loop_);
  kubelet_->Register(plugin);
  loop_.RunReady();
  EXPECT_EQ(Allocatable(), "8");
  for (int i = 0; i < 9; ++i) AddPod(fmt::format("p{}", i), Gpu(1));
  EXPECT_EQ(kubelet_->DevicesInUse()["nvidia.com/gpu"].size(), 8u);
  EXPECT_EQ(Phase("p8"), "Failed");
  EXPECT_EQ(api_.Pod("p8")["status"]["reason"].AsString(), "UnexpectedAdmissionError");
  EXPECT_EQ(api_.Pod("p8")["status"]["message"].AsString(),
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            "nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected");
  runtime_.End("p3/c", 0, "Completed");
  loop_.RunReady();
  AddPod("late", Gpu(1));
  EXPECT_EQ(Phase("late"), "Running");
  const std::vector<std::string>& env = runtime_.containers["late/c"].spec.env;
  EXPECT_NE(std::find(env.begin(), env.end(), "CARDS=card-3"), env.end());
  EXPECT_EQ(Container("late")["allocatedResourcesStatus"]
                .at(0)["resources"]
                .at(0)["resourceID"]
                .AsString(),
            "card-3");
}

TEST_F(KubeletTest, AsksForThePreferredCards) {
  Start();
  auto plugin = std::make_shared<TestPlugin>(loop_);
  plugin->preferred = true;
  kubelet_->Register(plugin);
  loop_.RunReady();
  AddPod("p", Gpu(2));
  const auto in_use = kubelet_->DevicesInUse()["nvidia.com/gpu"];
  EXPECT_TRUE(in_use.contains("card-7") && in_use.contains("card-6"));
}

TEST_F(KubeletTest, APluginThatRefusesFailsThePod) {
  Start();
  auto plugin = std::make_shared<TestPlugin>(loop_);
  plugin->error = "the card is on fire";
  kubelet_->Register(plugin);
  loop_.RunReady();
  AddPod("p", Gpu(1));
  EXPECT_EQ(api_.Pod("p")["status"]["message"].AsString(),
            "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = the card is "
            "on fire, which is unexpected");
  EXPECT_TRUE(kubelet_->DevicesInUse().empty());
}

TEST_F(KubeletTest, UnhealthyCardsCountAsCapacityOnly) {
  Start();
  auto plugin = std::make_shared<TestPlugin>(loop_);
  kubelet_->Register(plugin);
  loop_.RunReady();
  AddPod("p", Gpu(1));
  plugin->devices[0].healthy = false;
  plugin->Tell();
  loop_.RunReady();
  EXPECT_EQ(Allocatable(), "7");
  EXPECT_EQ(Allocatable("capacity"), "8");
  EXPECT_EQ(
      Container("p")["allocatedResourcesStatus"].at(0)["resources"].at(0)["health"].AsString(),
      "Unhealthy");
}

TEST_F(KubeletTest, DeletingThePluginsPodRestartsThePlugin) {
  Start();
  const std::string agent =
      R"("containers":[{"name":"ctr","image":"sextant.dev/node-agent","command":["sextant-node-agent"]}])";
  AddPod("plugin-a", agent);
  EXPECT_EQ(Phase("plugin-a"), "Running");
  EXPECT_EQ(components_.starts, 1);
  EXPECT_EQ(Allocatable(), "8");
  api_.MarkDeleted("plugin-a", 30);
  loop_.RunReady();
  EXPECT_FALSE(api_.Pod("plugin-a"));
  EXPECT_EQ(components_.stops, 1);
  EXPECT_EQ(Allocatable(), "0");
  EXPECT_EQ(Allocatable("capacity"), "8");
  AddPod("plugin-b", agent);
  EXPECT_EQ(Allocatable(), "8");
  api_.MarkDeleted("plugin-b", 30);
  loop_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(Allocatable("capacity"), "0");
}

TEST_F(KubeletTest, CardsAndRestartCountsSurviveARestart) {
  Start();
  kubelet_->Register(std::make_shared<TestPlugin>(loop_));
  loop_.RunReady();
  AddPod("other", Gpu(3));
  AddPod("train", Gpu(2, "Always"));
  AddPod("once", Gpu(1));
  runtime_.End("other/c", 0, "Completed");
  loop_.RunReady();
  const auto before = kubelet_->DevicesInUse()["nvidia.com/gpu"];
  kubelet_.reset();
  loop_.RunReady();

  Start();  // the plugin has not come back yet
  EXPECT_EQ(Allocatable(), "0");
  ASSERT_EQ(Phase("train"), "Running");
  EXPECT_EQ(Container("train")["restartCount"].AsInt(), 1);
  EXPECT_EQ(Container("train")["lastState"]["terminated"]["exitCode"].AsInt(), 255);
  EXPECT_EQ(Phase("once"), "Failed");  // Never: it is not run again
  const std::vector<std::string>& env = runtime_.containers["train/c"].spec.env;
  EXPECT_NE(std::find(env.begin(), env.end(), "CARDS=card-3,card-4"), env.end());
  const auto after = kubelet_->DevicesInUse()["nvidia.com/gpu"];
  EXPECT_EQ(after.size(), 2u);
  for (const auto& [id, holder] : after) EXPECT_EQ(before.at(id), holder);
  const auto log = kubelet_->FindLog("default", "train", "c", true);
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->path.ends_with("/0.log")) << log->path;
}

TEST_F(KubeletTest, AfterARestartNoPodStartsWithoutItsCards) {
  Start();
  kubelet_->Register(std::make_shared<TestPlugin>(loop_));
  loop_.RunReady();
  kubelet_.reset();  // before any card was given away
  AddPod("train", Gpu(1));
  AddPod("plain", R"("containers":[{"name":"c","image":"x"}])");
  Start();
  EXPECT_EQ(Phase("plain"), "Running");
  EXPECT_EQ(Phase("train"), "Failed");
  EXPECT_EQ(api_.Pod("train")["status"]["message"].AsString(),
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate "
            "unhealthy devices nvidia.com/gpu, which is unexpected");
}

// A plugin may come before the file is read: what the file holds is kept.
TEST_F(KubeletTest, APluginThatIsEarlyCostsNoCards) {
  Start();
  kubelet_->Register(std::make_shared<TestPlugin>(loop_));
  loop_.RunReady();
  AddPod("train", Gpu(2, "Always"));
  const auto before = kubelet_->DevicesInUse();
  kubelet_.reset();
  loop_.RunReady();
  kubelet_ = std::make_unique<Kubelet>(
      KubeletParts{api_, feed_, runtime_, machine_, loop_, components_}, Options());
  kubelet_->Start();
  kubelet_->Register(std::make_shared<TestPlugin>(loop_));
  loop_.RunReady();
  kubelet_.reset();
  Start();
  EXPECT_EQ(kubelet_->DevicesInUse(), before);
}

// What somebody else says that the node has is not a plugin's.
TEST_F(KubeletTest, AResourceWithoutAPluginIsNotWaitedFor) {
  Start();
  kubelet_.reset();
  api::Editor edit(api_.Node("worker"));
  edit["status"]["capacity"].Set("x.io/thing", "2");
  edit["status"]["allocatable"].Set("x.io/thing", "2");
  api_.Put("nodes", api::ToJson(edit.Root().Snapshot()));
  AddPod("p", R"("containers":[{"name":"c","image":"x","resources":{
      "limits":{"x.io/thing":"1"},"requests":{"x.io/thing":"1"}}}])");
  Start();
  EXPECT_EQ(Phase("p"), "Running") << api_.Pod("p")["status"]["message"].AsString();
}

// ---- what `kubectl logs` is told

TEST_F(KubeletTest, LogsOfContainersThatDoNotRun) {
  Start();
  AddPod("waits", R"("containers":[{"name":"c","image":"x"}],"volumes":[{"name":"v",
    "persistentVolumeClaim":{"claimName":"data"}}])");
  auto log = kubelet_->FindLog("default", "waits", "c", false);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message,
            "container \"c\" in pod \"waits\" is waiting to start: ContainerCreating");
  EXPECT_EQ(log.error().code, 400);
  log = kubelet_->FindLog("default", "waits", "c", true);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "previous terminated container \"c\" in pod \"waits\" not found");
}

// kubectl debug: what the subresource adds is started beside the others, once.
TEST_F(KubeletTest, EphemeralContainersAreStartedOnce) {
  Start();
  AddPod("web", Simple("Always"));
  ASSERT_EQ(Condition("web", "Ready"), "True");
  const auto add = [&](std::string_view name, std::string_view target) {
    api::Editor edit(api_.Pod("web"));
    const api::Mut added = edit.Root()["spec"]["ephemeralContainers"].Append();
    added.Set("name", name);
    added.Set("image", "busybox");
    added["command"].Append().SetString("sh");
    added.Set("stdin", true);
    added.Set("targetContainerName", target);
    api_.Put("pods", api::ToJson(edit.Root().Snapshot()));
    loop_.RunReady();
  };
  const auto status = [&](size_t i) {
    return Keep("web")["status"]["ephemeralContainerStatuses"].at(i);
  };
  add("debugger", "c");
  ASSERT_TRUE(runtime_.Runs("web/debugger"));
  EXPECT_TRUE(runtime_.containers["web/debugger"].spec.stdin_open);
  EXPECT_EQ(runtime_.containers["web/debugger"].spec.target, runtime_.containers["web/c"].spec.id);
  EXPECT_TRUE(status(0)["state"]["running"]);
  EXPECT_FALSE(status(0)["ready"].AsBool());
  EXPECT_FALSE(status(0).Has("started"));
  EXPECT_EQ(Condition("web", "Ready"), "True");
  EXPECT_TRUE(kubelet_->FindRunning("default", "web", "debugger"));

  add("second", "nobody");
  EXPECT_EQ(status(1)["state"]["waiting"]["reason"].AsString(), "CreateContainerConfigError");
  EXPECT_EQ(status(1)["state"]["waiting"]["message"].AsString(),
            "unable to find target container nobody");

  runtime_.End("web/debugger", 1, "Error");
  loop_.Advance(seconds(400));
  EXPECT_EQ(status(0)["state"]["terminated"]["exitCode"].AsInt(), 1);
  EXPECT_EQ(status(0)["restartCount"].AsInt(), 0);
  EXPECT_EQ(std::count(runtime_.started.begin(), runtime_.started.end(), "debugger"), 1);
  EXPECT_EQ(Phase("web"), "Running");
  EXPECT_EQ(Condition("web", "Ready"), "True");
}

TEST_F(KubeletTest, AnEphemeralContainerHelpsWhereAnInitContainerHangs) {
  Start();
  AddPod("stuck", Simple("Always") +
                      R"(,"initContainers":[{"name":"i","image":"busybox","command":["sh"]}])");
  api::Editor edit(api_.Pod("stuck"));
  const api::Mut added = edit.Root()["spec"]["ephemeralContainers"].Append();
  added.Set("name", "debugger");
  added.Set("image", "busybox");
  api_.Put("pods", api::ToJson(edit.Root().Snapshot()));
  loop_.RunReady();
  EXPECT_TRUE(runtime_.Runs("stuck/debugger"));
  EXPECT_FALSE(runtime_.containers.contains("stuck/c"));
  EXPECT_EQ(Phase("stuck"), "Pending");
  EXPECT_EQ(Condition("stuck", "Initialized"), "False");
  // It does not keep a Pod alive either.
  runtime_.End("stuck/i", 0, "Completed");
  loop_.RunReady();
  EXPECT_TRUE(runtime_.Runs("stuck/c"));
  api_.MarkDeleted("stuck", 5);
  loop_.RunReady();
  EXPECT_FALSE(runtime_.Runs("stuck/debugger"));
  EXPECT_FALSE(api_.Pod("stuck"));
}

}  // namespace
}  // namespace sextant::kubelet
