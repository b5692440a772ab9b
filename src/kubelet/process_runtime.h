// The runtime that really runs commands, in the strongest isolation that this machine allows
// (README.runtimes.md), with the programs of the toolbox. What the toolbox lacks is simulated.
//
//   ProcessRuntime runtime({.toolbox = {.directory = state + "/runtime"}}, clock, core_loop);
//   log::Info("lab", "Pods run under {}", runtime.Level());
//
// Threads: has one of its own for all its processes. Level and Explanation wait for the first
// start-up (tens of milliseconds); all else returns at once.
#pragma once

#include <memory>
#include <optional>

#include "base/executor.h"
#include "kubelet/builtin_script.h"
#include "kubelet/isolation.h"
#include "kubelet/log_writer.h"
#include "kubelet/runtime.h"
#include "kubelet/toolbox.h"

namespace sextant::kubelet {

class ProcessCore;

struct ProcessRuntimeOptions {
  ToolboxOptions toolbox;
  std::optional<Level> force;  // this level or none; unset: the first that works
  LogLimits log_limits;
  // For the level "built-in": further programs that run inside this process; nvidia-smi is there
  // without being given.
  BuiltinPrograms builtin_programs;
};

class ProcessRuntime : public Runtime {
 public:
  // `callbacks` and `clock` outlive the runtime.
  ProcessRuntime(ProcessRuntimeOptions options, const Clock& clock, Executor& callbacks);
  ~ProcessRuntime() override;

  std::string Level() const override;
  std::string Explanation() const override;
  Owner FileOwner() const override;
  void CreateSandbox(PodSandboxSpec spec, DoneCallback done) override;
  void RemoveSandbox(std::string uid, DoneCallback done) override;
  void StartContainer(ContainerSpec spec, EventCallback events) override;
  void StopContainer(std::string id, int signal, Duration grace) override;
  void RemoveContainer(std::string id) override;
  std::shared_ptr<Session> Exec(ExecSpec spec, SessionCallbacks callbacks) override;
  std::shared_ptr<Session> Attach(AttachSpec spec, SessionCallbacks callbacks) override;
  void Probe(HttpProbe probe, ProbeCallback done) override;
  void Probe(TcpProbe probe, ProbeCallback done) override;
  void Probe(GrpcProbe probe, ProbeCallback done) override;
  void Probe(ExecProbe probe, ProbeCallback done) override;
  void DialPort(std::string sandbox_uid, uint16_t port,
                std::function<void(Result<int>)> done) override;
  void Stats(std::string container_id, std::function<void(Result<ContainerStats>)> done) override;

 private:
  std::unique_ptr<ProcessCore> core_;
};

}  // namespace sextant::kubelet
