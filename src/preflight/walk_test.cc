#include "preflight/walk.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "preflight/checks.h"
#include "preflight/testing.h"

namespace sextant::preflight {
namespace {

using testing::EndsWell;
using testing::FakeCluster;
using testing::Json;
using testing::SmiList;
using testing::Uuid;

class WalkTest : public ::testing::Test {
 protected:
  Report Run(FakeCluster& cluster, bool probe = true) {
    Random random(7);
    WalkOptions options;
    options.probe = probe;
    options.server = "https://192.0.2.7:6443";
    options.sleep = [this](Duration d) {
      clock_.elapsed += d;
      return clock_.elapsed < interrupted_at_;
    };
    return Walk(cluster, clock_, random, options);
  }
  RealClock real_;
  EventLoop loop_{"fake", real_};
  testing::SleepClock clock_;
  Duration interrupted_at_ = Duration::max();
};

const Check& Of(const Report& report, std::string_view id) {
  for (const Check& check : report.checks)
    if (check.id == id) return check;
  ADD_FAILURE() << id;
  return report.checks.front();
}

std::string StopText(const Report& report) {
  const Check* stop = StopOf(report.checks);
  return stop ? fmt::format("{} {} {}", LayerName(stop->layer), stop->id, stop->code) : "";
}

std::string Unscheduled(std::string_view message) {
  return fmt::format(
      R"({{"status":{{"phase":"Pending","conditions":[{{"type":"PodScheduled","status":"False",
      "reason":"Unschedulable","message":"{}"}}]}}}})",
      message);
}
std::string Rejected(std::string_view reason, std::string_view message) {
  return fmt::format(
      R"({{"spec":{{"nodeName":"worker"}},"status":{{"phase":"Failed","reason":"{}",
      "message":"{}","startTime":"2026-01-01T00:00:00Z"}}}})",
      reason, message);
}
std::string Container(std::string_view phase, std::string_view state) {
  return fmt::format(
      R"({{"spec":{{"nodeName":"worker"}},"status":{{"phase":"{}",
      "startTime":"2026-01-01T00:00:00Z","containerStatuses":[{{"name":"cuda-check",
      "allocatedResourcesStatus":[{{"resources":[{{"resourceID":"{}"}}]}}],"state":{}}}]}}}})",
      phase, Uuid(3), state);
}

struct Fault {
  std::string name;
  std::function<void(FakeCluster&)> make;
  std::string stop;     // "layer check CODE": the lowest that fails
  std::string summary;  // a part of what it says
};

std::vector<Fault> BeforeThePodFaults() {
  return {
      {"driver layer missing",
       [](FakeCluster& c) {
         c.Change("worker", R"({"metadata":{"labels":null},"status":{"capacity":null}})");
       },
       "driver node.labels NFD_LABEL_MISSING", "none of 2 nodes"},
      {"plugin not registered",
       [](FakeCluster& c) {
         c.Change("worker", R"({"status":{"capacity":null,"allocatable":null}})");
       },
       "plugin dp.registered NOT_REGISTERED", "worker has no nvidia.com/gpu"},
      {"plugin missing on one node of two",
       [](FakeCluster& c) {
         c.nodes["worker2"] = c.nodes["worker"];
         c.Change("worker2", R"({"metadata":{"name":"worker2"},"status":{"capacity":null}})");
       },
       "plugin dp.registered NOT_REGISTERED", "worker2 has no"},
      {"the node's kubelet is off",
       [](FakeCluster& c) {
         c.Change("worker", R"({"status":{"conditions":[{"type":"Ready","status":"Unknown",
             "message":"Kubelet stopped posting node status."}]}})");
       },
       "plugin dp.registered NODE_NOT_READY", "Kubelet stopped posting node status."},
      {"allocatable 0",
       [](FakeCluster& c) {
         c.Change("worker", R"({"status":{"allocatable":{"nvidia.com/gpu":"0"}}})");
       },
       "plugin node.capacity ALLOCATABLE_ZERO", "none is allocatable"},
      {"a card unhealthy",
       [](FakeCluster& c) {
         c.Change("worker", R"({"status":{"allocatable":{"nvidia.com/gpu":"7"}}})");
       },
       "plugin node.capacity UNHEALTHY_DEVICE", "7 of 8"},
  };
}

std::vector<Fault> PlacementFaults() {
  return {
      {"quota",
       [](FakeCluster& c) {
         c.refuse = Forbidden({"", "pods"}, "p", "exceeded quota: gpus, requested: 1");
       },
       "scheduler api.admit QUOTA", "exceeded quota"},
      {"policy",
       [](FakeCluster& c) {
         c.refuse = Forbidden({"", "pods"}, "p", "violates PodSecurity \"restricted:latest\"");
       },
       "scheduler api.admit POLICY", "PodSecurity"},
      {"no answer to the creation",
       [](FakeCluster& c) { c.refuse = ServiceUnavailable("etcd is gone"); },
       "scheduler api.admit ", "etcd is gone"},
      {"unschedulable: the cards are taken",
       [](FakeCluster& c) {
         c.pods["other"] = Json(R"({"metadata":{"name":"other"},"spec":{"nodeName":"worker",
             "containers":[{"resources":{"limits":{"nvidia.com/gpu":"8"}}}]},
             "status":{"phase":"Running"}})");
         c.outcomes = {{Unscheduled("0/2 nodes are available: 1 node(s) had untolerated taint(s), "
                                    "1 Insufficient nvidia.com/gpu."),
                        ""}};
       },
       "scheduler sched.place INSUFFICIENT", "worker has no free card: Pods ask for 8 of 8"},
      {"unschedulable: sidecars hold cards beside the containers, an init container none any more",
       [](FakeCluster& c) {
         c.pods["other"] = Json(R"({"metadata":{"name":"other"},"spec":{"nodeName":"worker",
             "initContainers":[
               {"name":"s","restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":"2"}}},
               {"name":"i","resources":{"limits":{"nvidia.com/gpu":"3"}}}],
             "containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"6"}}}]},
             "status":{"phase":"Running"}})");
         c.outcomes = {
             {Unscheduled("0/2 nodes are available: 2 Insufficient nvidia.com/gpu."), ""}};
       },
       "scheduler sched.place INSUFFICIENT", "worker has no free card: Pods ask for 8 of 8"},
      {"unschedulable: the GPU node has a taint, another node has no card",
       [](FakeCluster& c) {
         c.Change("worker",
                  R"({"spec":{"taints":[{"key":"team","value":"a","effect":"NoSchedule"}]}})");
         c.outcomes = {{Unscheduled("0/2 nodes are available: 1 Insufficient nvidia.com/gpu, "
                                    "1 node(s) had untolerated taint(s)."),
                        ""}};
       },
       "scheduler sched.place TAINT", "worker has the taint team=a:NoSchedule"},
      {"unschedulable: cordoned",
       [](FakeCluster& c) {
         c.Change("worker", R"({"spec":{"unschedulable":true,"taints":[{
             "key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}]}})");
         c.outcomes = {{Unscheduled("0/2 nodes are available: 1 Insufficient nvidia.com/gpu, "
                                    "1 node(s) were unschedulable."),
                        ""}};
       },
       "scheduler sched.place CORDONED", "worker is cordoned"},
      {"unschedulable: affinity",
       [](FakeCluster& c) {
         c.outcomes = {{Unscheduled("0/2 nodes are available: 2 node(s) didn't match Pod's node "
                                    "affinity/selector."),
                        ""}};
       },
       "scheduler sched.place AFFINITY", "affinity/selector"},
      {"unschedulable: a taint on nodes that look well by now",
       [](FakeCluster& c) {
         c.outcomes = {
             {Unscheduled("0/2 nodes are available: 2 node(s) had untolerated taint(s)."), ""}};
       },
       "scheduler sched.place TAINT", "untolerated"},
      {"unschedulable: no known word",
       [](FakeCluster& c) { c.outcomes = {{Unscheduled("the scheduler is on strike"), ""}}; },
       "scheduler sched.place UNSCHEDULABLE", "on strike"},
      {"no scheduler",
       [](FakeCluster& c) { c.outcomes = {{R"({"status":{"phase":"Pending"}})", ""}}; },
       "scheduler sched.place NOT_SCHEDULED", "within 1m0s"},
  };
}

std::vector<Fault> AdmissionFaults() {
  return {
      {"the kubelet says nothing",
       [](FakeCluster& c) {
         c.outcomes = {{R"({"spec":{"nodeName":"worker"},"status":{"phase":"Pending","conditions":[
             {"type":"PodScheduled","status":"True"}]}})",
                        ""}};
       },
       "pod kubelet.admit NOT_ACKNOWLEDGED", "the kubelet of worker"},
      {"admission rejected",
       [](FakeCluster& c) {
         c.outcomes = {{Rejected("UnexpectedAdmissionError",
                                 "Pod was rejected: Allocate failed due to requested number of "
                                 "devices unavailable for nvidia.com/gpu"),
                        ""}};
       },
       "pod kubelet.admit UNEXPECTED_ADMISSION", "Allocate failed"},
      {"admission rejected: topology",
       [](FakeCluster& c) {
         c.outcomes = {{Rejected("TopologyAffinityError", "Resources cannot be allocated"), ""}};
       },
       "pod kubelet.admit TOPOLOGY_AFFINITY", "Resources cannot"},
      {"admission rejected: no card",
       [](FakeCluster& c) {
         c.outcomes = {{Rejected("OutOfnvidia.com/gpu", "Node didn't have enough resource"), ""}};
       },
       "pod kubelet.admit OUT_OF_GPU", "enough resource"},
      {"admission rejected: another reason",
       [](FakeCluster& c) { c.outcomes = {{Rejected("NodeAffinity", "no match"), ""}}; },
       "pod kubelet.admit REJECTED", "NodeAffinity: no match"},
  };
}

std::vector<Fault> StartFaults() {
  return {
      {"no runtime handler",
       [](FakeCluster& c) {
         c.outcomes = {{Container("Pending", R"({"waiting":{"reason":"ContainerCreating"}})"), ""}};
         c.events = {R"({"type":"Warning","reason":"FailedCreatePodSandBox",
             "message":"no runtime for \"nvidia\" is configured"})"};
       },
       "toolkit rt.probe HANDLER_MISSING", "FailedCreatePodSandBox"},
      {"CDI names nothing",
       [](FakeCluster& c) {
         c.outcomes = {{Container("Pending", R"({"waiting":{"reason":"CreateContainerError",
             "message":"unresolvable CDI devices nvidia.com/gpu=3"}})"),
                        ""}};
       },
       "toolkit rt.probe CDI_UNRESOLVABLE", "unresolvable"},
      {"hook fails",
       [](FakeCluster& c) {
         c.outcomes = {{Container("Failed", R"({"terminated":{"reason":"StartError","exitCode":128,
             "message":"nvidia-container-cli: initialization error"}})"),
                        ""}};
       },
       "toolkit rt.probe HOOK_ERROR", "initialization error"},
      {"no driver in the container",
       [](FakeCluster& c) {
         c.outcomes = {{Container("Failed", R"({"terminated":{"reason":"Error","exitCode":127}})"),
                        "bash: line 1: nvidia-smi: command not found\n"}};
       },
       "toolkit rt.probe LIB_NOT_FOUND", "command not found"},
      {"the image is not there",
       [](FakeCluster& c) {
         c.outcomes = {{Container("Pending", R"({"waiting":{"reason":"ImagePullBackOff",
             "message":"Back-off pulling image"}})"),
                        ""}};
       },
       "pod ctr.start START_ERROR", "ImagePullBackOff"},
      {"nvidia-smi fails",
       [](FakeCluster& c) {
         c.outcomes = {{Container("Failed", R"({"terminated":{"reason":"Error","exitCode":9}})"),
                        "NVIDIA-SMI has failed because it couldn't communicate\n"}};
       },
       "pod ctr.identity GPU_NONE", "ended with 9: NVIDIA-SMI has failed"},
      {"nvidia-smi hangs",
       [](FakeCluster& c) { c.outcomes = {{Container("Running", R"({"running":{}})"), ""}}; },
       "pod ctr.identity GPU_NONE", "did not end within 1m0s"},
  };
}

std::vector<Fault> IdentityAndReleaseFaults() {
  return {
      {"no card in the container", [](FakeCluster& c) { c.outcomes[0].log = "nothing\n"; },
       "pod ctr.identity GPU_NONE", "sees 0 GPUs"},
      {"a card too many", [](FakeCluster& c) { c.outcomes[0].log = SmiList({3, 4}); },
       "pod ctr.identity GPU_EXTRA", "sees 2 GPUs"},
      {"identity mismatch", [](FakeCluster& c) { c.outcomes[0].log = SmiList({4}); },
       "pod ctr.identity GPU_WRONG", Uuid(4) + ", the kubelet gave " + Uuid(3)},
      {"the Pod stays", [](FakeCluster& c) { c.keeps_pods = true; },
       "pod free.after TERMINATING_LONG", "still there 20s after"},
      {"device not released: the kubelet refuses it",
       [](FakeCluster& c) {
         c.outcomes[1] = {Rejected("UnexpectedAdmissionError", "Requested: 8, Available: 7"), ""};
       },
       "pod free.after DEVICE_HELD", "8 of worker are free, Requested: 8, Available: 7"},
      {"device not released: the node offers one less",
       [](FakeCluster& c) {
         c.on_delete = [](FakeCluster& now) {
           now.Change("worker", R"({"status":{"allocatable":{"nvidia.com/gpu":"7"}}})");
         };
         c.outcomes[1] = EndsWell({0, 1, 2, 4, 5, 6, 7});
       },
       "pod free.after DEVICE_HELD", Uuid(3) + " did not come back"},
  };
}

std::vector<Fault> Faults() {
  std::vector<Fault> all;
  for (auto* some : {BeforeThePodFaults, PlacementFaults, AdmissionFaults, StartFaults,
                     IdentityAndReleaseFaults}) {
    for (Fault& fault : some()) all.push_back(std::move(fault));
  }
  return all;
}

TEST_F(WalkTest, NamesTheLowestBrokenLayer) {
  for (const Fault& fault : Faults()) {
    SCOPED_TRACE(fault.name);
    FakeCluster cluster(loop_);
    fault.make(cluster);
    const Report report = Run(cluster);
    EXPECT_EQ(StopText(report), fault.stop);
    const Check* stop = StopOf(report.checks);
    ASSERT_NE(stop, nullptr);
    EXPECT_NE(stop->summary.find(fault.summary), std::string::npos) << stop->summary;
    if (!stop->code.empty()) {
      const std::string codes = fmt::format(" {} ", FindCheckKind(stop->id)->codes);
      EXPECT_NE(codes.find(" " + stop->code + " "), std::string::npos) << stop->code;
    }
    // What was not judged says why.
    EXPECT_NE(VerdictOf(report.checks), Verdict::kPassed);
    EXPECT_EQ(LayerStatus(report.checks, stop->layer), stop->status);
    for (const Check& check : report.checks) {
      if (check.status == CheckStatus::kSkipped) EXPECT_NE(check.reason, "") << check.id;
    }
    if (!cluster.keeps_pods) {
      for (const auto& [name, pod] : cluster.pods) EXPECT_EQ(name, "other") << "it was left behind";
    }
  }
}

TEST_F(WalkTest, AHealthyClusterPassesAndTheCardIsSeenAgain) {
  FakeCluster cluster(loop_);
  const Report report = Run(cluster);
  EXPECT_EQ(VerdictOf(report.checks), Verdict::kPassed) << ReportText(report);
  EXPECT_EQ(report.mode, Mode::kReal);
  ASSERT_EQ(cluster.asked.size(), 2u);
  EXPECT_EQ(cluster.asked[0]["spec"]["nodeSelector"].IsAbsent(), true) << "the scheduler's choice";
  EXPECT_EQ(cluster.asked[1]["spec"]["containers"]
                .at(0)["resources"]["limits"]["nvidia.com/gpu"]
                .AsString(),
            "8");
  EXPECT_TRUE(cluster.pods.empty());
  EXPECT_EQ(LayerStatus(report.checks, Layer::kServing), CheckStatus::kUnsupported);
}

TEST_F(WalkTest, WithoutTheProbeNothingIsRunAndNothingOfItPasses) {
  FakeCluster cluster(loop_);
  const Report report = Run(cluster, false);
  EXPECT_TRUE(cluster.asked.empty());
  EXPECT_EQ(VerdictOf(report.checks), Verdict::kIncomplete);
  for (const CheckKind& kind : CheckKinds()) {
    if (!kind.by_probe) continue;
    EXPECT_EQ(Of(report, kind.id).status, CheckStatus::kSkipped) << kind.id;
    EXPECT_NE(Of(report, kind.id).reason.find("--probe"), std::string::npos) << kind.id;
  }
}

// What is not shown is not claimed.
TEST_F(WalkTest, WhatTheApiDoesNotShowIsUnsupported) {
  {
    FakeCluster cluster(loop_);
    cluster.outcomes[0] = EndsWell({3}, false);
    const Report report = Run(cluster);
    EXPECT_EQ(Of(report, "ctr.identity").status, CheckStatus::kUnsupported);
    EXPECT_NE(Of(report, "ctr.identity").reason.find("allocatedResourcesStatus"),
              std::string::npos);
    EXPECT_EQ(Of(report, "free.after").status, CheckStatus::kPassed);
    EXPECT_EQ(VerdictOf(report.checks), Verdict::kIncomplete);
  }
  {
    FakeCluster cluster(loop_);
    cluster.Change("worker", R"({"metadata":{"labels":null}})");
    const Report report = Run(cluster);
    EXPECT_EQ(Of(report, "node.labels").status, CheckStatus::kUnsupported);
    EXPECT_EQ(LayerStatus(report.checks, Layer::kDriver), CheckStatus::kUnsupported);
    EXPECT_EQ(VerdictOf(report.checks), Verdict::kIncomplete);
  }
  {
    FakeCluster cluster(loop_);  // somebody takes the other cards meanwhile
    cluster.on_delete = [](FakeCluster& now) {
      now.pods["other"] = Json(R"({"metadata":{"name":"other"},"spec":{"nodeName":"worker",
          "containers":[{"resources":{"limits":{"nvidia.com/gpu":"8"}}}]}})");
    };
    const Report report = Run(cluster);
    EXPECT_EQ(Of(report, "free.after").status, CheckStatus::kUnsupported);
    EXPECT_EQ(VerdictOf(report.checks), Verdict::kIncomplete);
  }
  {
    FakeCluster cluster(loop_);  // no right to see what others ask for
    cluster.hides_pods = true;
    const Report report = Run(cluster);
    EXPECT_EQ(cluster.asked.size(), 1u);
    EXPECT_EQ(Of(report, "free.after").status, CheckStatus::kUnsupported);
    EXPECT_EQ(StopOf(report.checks), nullptr);
  }
  {
    FakeCluster cluster(loop_);  // no right to run Pods is no broken layer
    cluster.refuse = Forbidden({"", "pods"}, "p",
                               "User \"jane\" cannot create resource \"pods\" in API group \"\"");
    const Report report = Run(cluster);
    EXPECT_EQ(Of(report, "api.admit").status, CheckStatus::kUnsupported);
    EXPECT_EQ(Of(report, "free.after").blocked_by, std::vector<std::string>{"api.admit"});
    EXPECT_EQ(ExitCode(VerdictOf(report.checks)), 4);
  }
}

TEST_F(WalkTest, AClusterThatDoesNotAnswerIsAnErrorOfModeNone) {
  FakeCluster cluster(loop_);
  cluster.unreachable = true;
  const Report report = Run(cluster);
  EXPECT_EQ(report.mode, Mode::kNone);
  EXPECT_EQ(VerdictOf(report), Verdict::kError);
  EXPECT_EQ(ExitCode(VerdictOf(report)), 1);
  EXPECT_EQ(StopOf(report.checks), nullptr) << "no layer is blamed for it";
  EXPECT_EQ(report.checks.size(), CheckKinds().size());
  const std::string text = ReportText(report);
  EXPECT_NE(text.find("at https://192.0.2.7:6443 cannot be asked: "), std::string::npos) << text;
  EXPECT_NE(text.find("no route"), std::string::npos) << text;
  EXPECT_NE(text.find("--context"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  for (const Check& check : report.checks) EXPECT_NE(check.reason, "") << check.id;
}

TEST_F(WalkTest, AUserWhoMayNotSeeNodesIsToldSo) {
  FakeCluster cluster(loop_);
  cluster.hides_nodes = true;
  const Report report = Run(cluster);
  EXPECT_EQ(ExitCode(VerdictOf(report)), 1);
  EXPECT_NE(report.error.find("cannot list resource"), std::string::npos) << report.error;
  EXPECT_NE(report.remedy.find("list on nodes"), std::string::npos) << report.remedy;
}

// What a command would have shown is not seen where no command ran, whoever says so; the placement
// and the devices are real all the same.
TEST_F(WalkTest, APodThatOnlyPretendsToRunPassesNothingOfItsCommand) {
  const std::vector<std::function<void(FakeCluster&)>> sayings = {
      [](FakeCluster& c) {
        c.events = {R"({"type":"Normal","reason":"Simulated",
            "message":"Nothing really runs in this container: bash is not in the toolbox"})"};
      },
      [](FakeCluster& c) {
        c.Change("worker", R"({"status":{"nodeInfo":{
            "containerRuntimeVersion":"sextant-simulated://1.0.0"}}})");
      },
      [](FakeCluster& c) {
        c.Change("worker", R"({"metadata":{"annotations":{"kwok.x-k8s.io/node":"fake"}}})");
      }};
  for (const bool ended : {false, true}) {
    for (const auto& say : sayings) {
      FakeCluster cluster(loop_);
      say(cluster);
      for (testing::Outcome& outcome : cluster.outcomes) {
        outcome.log.clear();
        if (ended) continue;
        const std::string end = R"("terminated":{"exitCode":0,"reason":"Completed"})";
        const std::string phase = R"("phase":"Succeeded")";
        ASSERT_NE(outcome.changes.find(end), std::string::npos) << outcome.changes;
        outcome.changes.replace(outcome.changes.find(end), end.size(), R"("running":{})");
        outcome.changes.replace(outcome.changes.find(phase), phase.size(), R"("phase":"Running")");
      }
      const Duration before = clock_.elapsed;
      const Report report = Run(cluster);
      EXPECT_LT(clock_.elapsed - before, std::chrono::seconds(10)) << "it is not waited for";
      EXPECT_EQ(report.mode, Mode::kSimulated);
      for (const char* id : {"rt.probe", "ctr.start", "ctr.identity"}) {
        EXPECT_EQ(Of(report, id).status, CheckStatus::kUnsupported) << id;
        EXPECT_NE(Of(report, id).reason.find("simulated"), std::string::npos) << id;
        EXPECT_FALSE(Of(report, id).observations.empty()) << id;
      }
      for (const char* id : {"sched.place", "kubelet.admit", "free.after"}) {
        EXPECT_EQ(Of(report, id).status, CheckStatus::kPassed) << id << ReportText(report);
      }
      EXPECT_NE(Of(report, "free.after").summary.find("as the kubelet says"), std::string::npos);
      EXPECT_EQ(ExitCode(VerdictOf(report)), 4);
      EXPECT_EQ(FirstUnproven(report.checks)->id, "rt.probe");
      EXPECT_TRUE(cluster.pods.empty());
    }
  }
}

// A second Pod that the kubelet gave other cards is no proof, simulated or not.
TEST_F(WalkTest, OfASimulatedPodTheKubeletsWordIsLookedAt) {
  FakeCluster cluster(loop_);
  cluster.events = {R"({"type":"Normal","reason":"Simulated","message":"m"})"};
  cluster.on_delete = [](FakeCluster& now) {
    now.Change("worker", R"({"status":{"allocatable":{"nvidia.com/gpu":"7"}}})");
  };
  cluster.outcomes[1] = EndsWell({0, 1, 2, 4, 5, 6, 7});
  const Report report = Run(cluster);
  EXPECT_EQ(StopText(report), "pod free.after DEVICE_HELD");
}

TEST_F(WalkTest, ALabThatAnswersTheCommandItselfIsNamed) {
  FakeCluster cluster(loop_);
  cluster.Change("worker", R"({"metadata":{"labels":{"sextant.dev/simulated":"true"}},
      "status":{"nodeInfo":{"containerRuntimeVersion":"sextant-built-in://1.0.0"}}})");
  const Report report = Run(cluster);
  EXPECT_EQ(Of(report, "ctr.start").summary,
            "its command ended with 0, as the lab itself answers it");
  EXPECT_EQ(Of(report, "ctr.start").observations.back().excerpt, "sextant-built-in://1.0.0");
}

TEST_F(WalkTest, AnInterruptedWalkLeavesNoPodBehind) {
  FakeCluster cluster(loop_);
  cluster.outcomes = {{Container("Running", R"({"running":{}})"), ""}};
  interrupted_at_ = std::chrono::seconds(1);
  const Report report = Run(cluster);
  EXPECT_EQ(cluster.asked.size(), 1u);
  EXPECT_TRUE(cluster.pods.empty());
  EXPECT_EQ(VerdictOf(report), Verdict::kError);
  EXPECT_NE(Of(report, "ctr.identity").summary.find("interrupted"), std::string::npos)
      << ReportText(report);
  EXPECT_TRUE(
      ReportText(report).ends_with("verdict: error (real), ended at layer: 5 pod [ctr.identity]\n"))
      << ReportText(report);
}

TEST_F(WalkTest, SimulatedNeverPassesForReal) {
  const std::vector<std::string> marks = {
      R"({"metadata":{"labels":{"run.ai/fake.gpu":"true"}}})",
      R"({"metadata":{"labels":{"sextant.dev/simulated":"true"}}})",
      R"({"metadata":{"labels":{"nvidia.com/cuda.driver-version.full":"470.129.06"}}})",
      R"({"metadata":{"annotations":{"kwok.x-k8s.io/node":"fake"}}})"};
  for (const std::string& mark : marks) {
    FakeCluster cluster(loop_);
    cluster.Change("worker", mark);
    EXPECT_EQ(Run(cluster).mode, Mode::kSimulated) << mark;
  }
  FakeCluster cluster(loop_);
  cluster.version = "v1.36.3+sextant.1";
  const Report report = Run(cluster);
  EXPECT_EQ(report.mode, Mode::kSimulated);
  EXPECT_EQ(Of(report, "host.nvml").status, CheckStatus::kUnsupported);
  EXPECT_EQ(Of(report, "ctr.cuda").status, CheckStatus::kUnsupported);
}

TEST_F(WalkTest, MigDevicesAndReplicasAreTheirOwnIdentity) {
  FakeCluster cluster(loop_);
  const std::string mig = "MIG-00000000-0000-4000-8000-000000000001";
  cluster.outcomes[0].changes =
      Container("Succeeded", R"({"terminated":{"exitCode":0,"reason":"Completed"}})");
  cluster.outcomes[0].changes.replace(cluster.outcomes[0].changes.find(Uuid(3)), Uuid(3).size(),
                                      mig + "::2");
  cluster.outcomes[0].log = SmiList({3}) + "  MIG 1g.5gb Device 0: (UUID: " + mig + ")\n";
  cluster.outcomes[1].log = cluster.outcomes[0].log;
  const Report report = Run(cluster);
  EXPECT_EQ(Of(report, "ctr.identity").status, CheckStatus::kPassed) << ReportText(report);
}

}  // namespace
}  // namespace sextant::preflight
