// Commits per second: one at a time (latency of a durable write) and with many in flight.
// On tmpfs the numbers say nothing: the file is made in the current folder.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "api/json.h"
#include "api/schema.h"
#include "store/stamp.h"
#include "store/testing.h"
#include "store/tree.h"

namespace sextant::store {
namespace {

using testing::FileLab;
using testing::MakeObject;
using testing::MakeWrite;

constexpr const char* kPod = R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{}",
"namespace":"default","uid":"0d1b9c5e-95a4-4f0a-8f61-7e0d9d1f3a11","labels":{{"app":"web",
"pod-template-hash":"5d4f8c7b9"}},"creationTimestamp":"2026-01-01T00:00:00Z","ownerReferences":[
{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d4f8c7b9","uid":"e1","controller":true,
"blockOwnerDeletion":true}}]}},"spec":{{"volumes":[{{"name":"token","projected":{{"sources":[
{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}],"defaultMode":420}}}}],
"containers":[{{"name":"main","image":"registry.example/web:1","command":["sh","-c","sleep 1000"],
"resources":{{"limits":{{"cpu":"1","memory":"1Gi","nvidia.com/gpu":"1"}},"requests":{{"cpu":"1",
"memory":"1Gi","nvidia.com/gpu":"1"}}}},"volumeMounts":[{{"name":"token","readOnly":true,
"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
"imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,
"dnsPolicy":"ClusterFirst","serviceAccountName":"default","nodeName":"worker-17",
"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready",
"operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},"status":{{"phase":"Running",
"conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,
"lastTransitionTime":"2026-01-01T00:00:00Z"}}],"hostIP":"10.0.0.1","podIP":"10.244.0.7"}}}})";

// Updates of `objects` objects of about 2 KB, `in_flight` at a time.
void Commits(benchmark::State& state, const std::string& path) {
  const auto in_flight = static_cast<int>(state.range(0));
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) unlink((path + suffix).c_str());
  FileLab lab(FileLab::WithPath(path));
  const std::string data(2000, 'x');
  constexpr int kObjects = 10'000;
  int next = 0;
  for (auto _ : state) {
    std::promise<void> round;
    std::atomic<int> left = in_flight;
    lab.core.Post([&] {
      for (int i = 0; i < in_flight; ++i) {
        const auto op = next < kObjects ? Write::Op::kCreate : Write::Op::kUpdate;
        lab.store->Commit(MakeWrite(op, "ns", std::to_string(next++ % kObjects), data),
                          [&](Committed) {
                            if (--left == 0) round.set_value();
                          });
      }
    });
    round.get_future().get();
  }
  state.SetItemsProcessed(state.iterations() * in_flight);
  lab.Close();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) unlink((path + suffix).c_str());
}

void BM_CommitFile(benchmark::State& state) { Commits(state, "store_bench.db"); }
void BM_CommitMemory(benchmark::State& state) { Commits(state, ""); }
BENCHMARK(BM_CommitFile)->Arg(1)->Arg(64)->Arg(1000)->Arg(5000)->UseRealTime();
BENCHMARK(BM_CommitMemory)->Arg(1)->Arg(1000)->UseRealTime();

// Reading 20,000 Pods of the size that a lab has, by their schema.
void BM_Open(benchmark::State& state) {
  const std::string path = "store_bench.db";
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) unlink((path + suffix).c_str());
  constexpr int kPods = 20'000;
  {
    FileLab lab(FileLab::WithPath(path));
    std::promise<void> all;
    std::atomic<int> left = kPods;
    lab.core.Post([&] {
      for (int i = 0; i < kPods; ++i) {
        Write write = MakeWrite(Write::Op::kCreate, "ns", std::to_string(i), "");
        write.key.resource = "pods";
        write.object = *api::ParseJson(fmt::format(kPod, i));
        lab.store->Commit(std::move(write), [&](Committed) {
          if (--left == 0) all.set_value();
        });
      }
    });
    all.get_future().get();
  }
  Options options = FileLab::WithPath(path);
  options.registry = &api::Registry::Builtin();
  for (auto _ : state) {
    FileLab lab(options);
    if (lab.error) state.SkipWithError(lab.error->message.c_str());
  }
  state.SetItemsProcessed(state.iterations() * kPods);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) unlink((path + suffix).c_str());
}
BENCHMARK(BM_Open)->Unit(benchmark::kMillisecond);

void BM_Stamp(benchmark::State& state) {
  const api::Object object = MakeObject("ns", "name", std::string(2000, 'x'));
  Revision revision = 1;
  for (auto _ : state) benchmark::DoNotOptimize(Stamp(object, ++revision));
}
BENCHMARK(BM_Stamp);

void BM_TreePut(benchmark::State& state) {
  Tree tree;
  std::vector<Tree::Item> items;
  for (int i = 0; i < state.range(0); ++i) {
    auto entry = std::make_shared<Entry>();
    entry->key = {"pods", "default", fmt::format("workload-{:07}", i)};
    items.push_back(entry);
    tree = tree.Put(std::move(entry));
  }
  size_t i = 0;
  for (auto _ : state) {
    tree = tree.Put(items[i]);
    i = (i + 7919) % items.size();
  }
}
BENCHMARK(BM_TreePut)->Arg(1000)->Arg(50'000);

void BM_TreeRange(benchmark::State& state) {
  Tree tree;
  for (int i = 0; i < 50'000; ++i) {
    auto entry = std::make_shared<Entry>();
    entry->key = {"pods", "default", fmt::format("workload-{:07}", i)};
    tree = tree.Put(std::move(entry));
  }
  for (auto _ : state) {
    const size_t first = tree.Rank("default", "workload-0025000", Tree::Side::kAfter);
    benchmark::DoNotOptimize(tree.Slice(first, first + 500));
  }
}
BENCHMARK(BM_TreeRange);

}  // namespace
}  // namespace sextant::store
