// Small things about Pods and where they run: plugin/pkg/admission (podtopologylabels, podresize,
// defaulttolerationseconds, nodetaint).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/amounts.h"
#include "base/quote.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

// A new node gets its not-ready taint before anything can be scheduled on it.
class TaintNodesByCondition : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "TaintNodesByCondition"; }

  Status Admit(const AdmissionRequest& request, Mut node) const override {
    constexpr std::string_view kKey = "node.kubernetes.io/not-ready";
    constexpr std::string_view kEffect = "NoSchedule";
    if (!request.On("", "nodes") || request.verb != "create") return {};
    Mut taints = node["spec"]["taints"];
    for (size_t i = 0; i < taints.size(); ++i) {
      Mut taint = taints.at(i);
      if (taint["key"].AsString() == kKey && taint["effect"].AsString() == kEffect) return {};
    }
    Mut taint = taints.Append();
    taint.Set("key", kKey);
    taint.Set("effect", kEffect);
    return {};
  }
};

class DefaultTolerationSeconds : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!request.On("", "pods")) return {};
    const bool not_ready = Tolerates(pod["spec"]["tolerations"], kNotReady);
    const bool unreachable = Tolerates(pod["spec"]["tolerations"], kUnreachable);
    if (!not_ready) Add(pod["spec"]["tolerations"], kNotReady);
    if (!unreachable) Add(pod["spec"]["tolerations"], kUnreachable);
    return {};
  }

 private:
  static constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
  static constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
  static constexpr int64_t kTolerateFor_s = 300;

  static bool Tolerates(Mut tolerations, std::string_view key) {
    for (size_t i = 0; i < tolerations.size(); ++i) {
      Mut one = tolerations.at(i);
      const bool same_key = one["key"].AsString() == key || one["key"].AsString().empty();
      const bool same_effect =
          one["effect"].AsString() == "NoExecute" || one["effect"].AsString().empty();
      if (same_key && same_effect) return true;
    }
    return false;
  }

  static void Add(Mut tolerations, std::string_view key) {
    Mut added = tolerations.Append();
    added.Set("key", key);
    added.Set("operator", "Exists");
    added.Set("effect", "NoExecute");
    added.Set("tolerationSeconds", kTolerateFor_s);
  }
};

// A Pod knows by its labels in which zone and region it runs.
class PodTopologyLabels : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "PodTopologyLabels"; }

  Status Admit(const AdmissionRequest& request, Mut object) const override {
    if (request.verb != "create") return {};
    std::string node;
    if (request.On("", "pods")) {
      node = object["spec"]["nodeName"].AsString();
    } else if (request.On("", "pods", "binding") &&
               object["target"]["kind"].AsString() == kNodeKind) {
      node = object["target"]["name"].AsString();
    }
    if (node.empty()) return {};
    const Object found = request.view.Get("nodes", "", node);
    for (const char* key : {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}) {
      const Value label = found["metadata"]["labels"][key];
      if (label) object["metadata"]["labels"].Set(key, label.AsString());
    }
    return {};
  }

 private:
  static constexpr std::string_view kNodeKind = "Node";  // a binding's target
};

// A Pod on a node grows no larger than the node.
class PodResizeValidator : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "PodResizeValidator"; }

  Status Validate(const AdmissionRequest& request, Value pod) const override {
    if (!request.On("", "pods", "resize") || request.verb != "update") return {};
    const std::string_view name = pod["spec"]["nodeName"].AsString();
    if (name.empty() || Equal(pod["spec"], request.old["spec"])) return {};
    const Object node = request.view.Get("nodes", "", name);
    if (!node) {
      return Fail(AdmissionForbidden(request, pod, fmt::format("node {} not found", Quote(name))));
    }
    const std::string_view os = node["metadata"]["labels"]["kubernetes.io/os"].AsString("linux");
    if (os != "linux") {
      return Refuse(request, pod, "UnsupportedPlatform",
                    fmt::format("pod resize is only supported on linux nodes, node {} is {}",
                                Quote(name), Quote(os)));
    }
    const std::string lacking = Lacking(pod, node["status"]["allocatable"]);
    if (lacking.empty()) return {};
    return Refuse(request, pod, "NodeCapacity",
                  fmt::format("node didn't have enough allocatable resources: {}", lacking));
  }

 private:
  static Status Refuse(const AdmissionRequest& request, Value pod, std::string reason,
                       std::string_view why) {
    Error error = AdmissionForbidden(request, pod, why);
    error.causes.push_back({std::move(reason), "", ""});
    return Fail(std::move(error));
  }

  static std::string Lacking(Value pod, Value allocatable) {
    const api::Amounts have = api::ReadAmounts(allocatable);
    api::Amounts want = api::PodAmounts(pod, "requests", {.overhead = true, .status = false});
    std::vector<std::string> texts;
    const auto amount = [&](const char* name) {
      const auto at = have.find(name);
      return at == have.end() ? api::Quantity() : at->second;
    };
    const api::Quantity cpu = amount("cpu");
    const api::Quantity memory = amount("memory");
    if (want["cpu"] > cpu) {
      texts.push_back(fmt::format("cpu, requested: {}, allocatable: {}", want["cpu"].MilliValue(),
                                  cpu.MilliValue()));
    }
    if (want["memory"] > memory) {
      texts.push_back(fmt::format("memory, requested: {}, allocatable: {}", want["memory"].Value(),
                                  memory.Value()));
    }
    return fmt::format("{}", fmt::join(texts, "; "));
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeTaintNodesByCondition() {
  return std::make_unique<TaintNodesByCondition>();
}
std::unique_ptr<AdmissionPlugin> MakeDefaultTolerationSeconds() {
  return std::make_unique<DefaultTolerationSeconds>();
}
std::unique_ptr<AdmissionPlugin> MakePodTopologyLabels() {
  return std::make_unique<PodTopologyLabels>();
}
std::unique_ptr<AdmissionPlugin> MakePodResizeValidator() {
  return std::make_unique<PodResizeValidator>();
}

}  // namespace sextant::server
