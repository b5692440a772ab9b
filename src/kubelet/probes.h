// The probes of one running container: startup, then liveness and readiness, each on its own beat.
//
//   Prober prober(loop, runtime, pod, container, container_id, {.on_ready = ...});
//   prober.Start();     // when the container has started
//   // destroyed: when it has ended
//
// Threads: the loop. Source: pkg/kubelet/prober/worker.go (thresholds, delays, order).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/document.h"
#include "base/executor.h"
#include "kubelet/runtime.h"

namespace sextant::kubelet {

// A port by number or by the name of one of the container's ports; 0: there is none such.
uint16_t ResolvePort(api::Value port, api::Value container);
HttpProbe HttpProbeOf(api::Value http_get, api::Value container, const std::string& id,
                      Duration timeout);

class Prober {
 public:
  enum class Kind { kStartup, kLiveness, kReadiness };
  struct Callbacks {
    std::function<void()> on_started;          // the startup probe has passed
    std::function<void(bool ready)> on_ready;  // the readiness probe has a new verdict
    std::function<void(Kind)> on_failed;       // startup or liveness: to be restarted
    std::function<void(Kind, const std::string&)> on_unhealthy;  // one probe failed: for the event
  };

  Prober(Loop& loop, Runtime& runtime, api::Object pod, api::Value container,
         std::string container_id, Callbacks callbacks);
  ~Prober();

  bool has_startup() const { return static_cast<bool>(container_["startupProbe"]); }
  bool has_readiness() const { return static_cast<bool>(container_["readinessProbe"]); }
  void Start();

 private:
  struct Beat;

  void Begin(Kind kind);
  void Probe(const std::shared_ptr<Beat>& beat);
  void OnResult(const std::shared_ptr<Beat>& beat, ProbeResult result);
  void Decide(const std::shared_ptr<Beat>& beat, bool success);

  Loop& loop_;
  Runtime& runtime_;
  const api::Object pod_;
  const api::Value container_;
  const std::string id_;
  const Callbacks callbacks_;
  std::vector<std::shared_ptr<Beat>> beats_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

std::string_view Name(Prober::Kind kind);  // "Startup", "Liveness", "Readiness"

}  // namespace sextant::kubelet
