// What one request costs in this room: api_bench --benchmark_filter=...
#include <benchmark/benchmark.h>

#include "api/json.h"
#include "api/managed_fields.h"
#include "api/patch.h"
#include "api/protobuf.h"
#include "api/registry.h"
#include "api/selector.h"

namespace sextant::api {
namespace {

const Message& Pod() { return *Registry::Builtin().FindKindMessage({"", "v1"}, "Pod"); }

// A Pod of about 3 KB, as a running GPU Pod is.
const std::string& PodText() {
  static const std::string text = [] {
    std::string containers;
    for (int i = 0; i < 2; ++i) {
      containers +=
          (i ? "," : "") + std::string(R"({"name":"c)") + std::to_string(i) +
          R"(",)"
          R"("image":"registry.example.com/team/trainer:1.2.3","args":["--steps","1000","--out","/o"],)"
          R"("ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],)"
          R"("env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"POD","valueFrom":)"
          R"({"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],)"
          R"("resources":{"limits":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"},)"
          R"("requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}},)"
          R"("volumeMounts":[{"name":"data","mountPath":"/data"},)"
          R"({"name":"kube-api-access-x","readOnly":true,"mountPath":"/var/run/secrets/s"}],)"
          R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",)"
          R"("imagePullPolicy":"IfNotPresent"})";
    }
    return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"train-0","namespace":"team",)"
           R"("uid":"0d9b8f5e-7a52-4e6d-9d07-1f4b0e3c9d11","resourceVersion":"123456",)"
           R"("creationTimestamp":"2026-11-30T09:47:59Z","labels":{"app":"train","run":"7"},)"
           R"("annotations":{"example.com/a":"some text that is longer than a few words"},)"
           R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train",)"
           R"("uid":"1d9b8f5e-7a52-4e6d-9d07-1f4b0e3c9d11","controller":true}]},)"
           R"("spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"kube-api-access-x",)"
           R"("projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,)"
           R"("path":"token"}}],"defaultMode":420}}],"containers":[)" +
           containers +
           R"(],"restartPolicy":"Never","terminationGracePeriodSeconds":30,)"
           R"("dnsPolicy":"ClusterFirst","serviceAccountName":"default","nodeName":"worker-1",)"
           R"("securityContext":{},"schedulerName":"default-scheduler","tolerations":[)"
           R"({"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",)"
           R"("tolerationSeconds":300}],"priority":0,"enableServiceLinks":true},)"
           R"("status":{"phase":"Running","conditions":[{"type":"Ready","status":"True",)"
           R"("lastProbeTime":null,"lastTransitionTime":"2026-11-30T09:48:00Z"}],)"
           R"("hostIP":"10.0.0.1","podIP":"10.244.1.2","startTime":"2026-11-30T09:47:59Z"}})";
  }();
  return text;
}

Object PodObject() { return *DecodeJson(PodText(), Pod()); }

void PerByte(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void BM_DecodeJson(benchmark::State& state) {
  for (auto _ : state) {
    StrictReport strict;
    benchmark::DoNotOptimize(DecodeJson(PodText(), Pod(), {.strict = &strict}));
  }
  PerByte(state, PodText().size());
  state.counters["document_bytes"] = static_cast<double>(PodObject().bytes());
}
BENCHMARK(BM_DecodeJson);

void BM_ParseJson(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(PodText()));
  PerByte(state, PodText().size());
}
BENCHMARK(BM_ParseJson);

void BM_PeekTypeMeta(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(PeekTypeMeta(PodText()));
  PerByte(state, PodText().size());
}
BENCHMARK(BM_PeekTypeMeta);

void BM_WriteJson(benchmark::State& state) {
  Object pod = PodObject();
  std::string out;
  for (auto _ : state) {
    out.clear();
    WriteJson(pod.root(), out);
    benchmark::DoNotOptimize(out.data());
  }
  PerByte(state, PodText().size());
}
BENCHMARK(BM_WriteJson);

void BM_EncodeProtobuf(benchmark::State& state) {
  Object pod = PodObject();
  std::string out;
  for (auto _ : state) {
    out.clear();
    EncodeProtobuf(pod.root(), Pod(), out);
    benchmark::DoNotOptimize(out.data());
  }
  PerByte(state, out.size());
}
BENCHMARK(BM_EncodeProtobuf);

void BM_DecodeProtobuf(benchmark::State& state) {
  std::string raw;
  EncodeProtobufRaw(PodObject().root(), Pod(), raw);
  for (auto _ : state) benchmark::DoNotOptimize(DecodeProtobuf(raw, Pod(), {"v1", "Pod"}));
  PerByte(state, raw.size());
}
BENCHMARK(BM_DecodeProtobuf);

void BM_CopyOf(benchmark::State& state) {
  Object pod = PodObject();
  for (auto _ : state) benchmark::DoNotOptimize(CopyOf(pod.root()));
}
BENCHMARK(BM_CopyOf);

void BM_EditAndFinish(benchmark::State& state) {
  Object pod = PodObject();
  for (auto _ : state) {
    Editor edit(pod);
    edit["status"].Set("phase", "Succeeded");
    edit["metadata"].Set("resourceVersion", "123457");
    benchmark::DoNotOptimize(std::move(edit).Finish(&Pod()));
  }
}
BENCHMARK(BM_EditAndFinish);

void BM_Equal(benchmark::State& state) {
  Object a = PodObject(), b = PodObject();
  for (auto _ : state) benchmark::DoNotOptimize(Equal(a.root(), b.root()));
}
BENCHMARK(BM_Equal);

void BM_StrategicPatch(benchmark::State& state) {
  Object pod = PodObject();
  for (auto _ : state) {
    benchmark::DoNotOptimize(ApplyPatch(
        pod, Pod(), {PatchType::kStrategic, R"({"status":{"phase":"Failed"}})", ""}, nullptr));
  }
}
BENCHMARK(BM_StrategicPatch);

void BM_TrackUpdate(benchmark::State& state) {
  ManagerInfo who{.manager = "kubelet", .subresource = "status", .api_version = "v1"};
  Object live = TrackUpdate({.manager = "m", .api_version = "v1"}, Pod(), Object(), PodObject());
  Editor edit(live);
  edit["status"].Set("phase", "Succeeded");
  Object next = std::move(edit).Finish(&Pod());
  for (auto _ : state) benchmark::DoNotOptimize(TrackUpdate(who, Pod(), live, next));
}
BENCHMARK(BM_TrackUpdate);

void BM_LabelSelector(benchmark::State& state) {
  Object pod = PodObject();
  LabelSelector selector = *LabelSelector::Parse("app=train,run in (6,7)");
  for (auto _ : state) benchmark::DoNotOptimize(selector.Matches(pod["metadata"]["labels"]));
}
BENCHMARK(BM_LabelSelector);

}  // namespace
}  // namespace sextant::api
