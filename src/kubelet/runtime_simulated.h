// The runtime without processes: containers start, are ready, and run until stopped or for
// `run_for`. All time from the loop, so it also works in virtual time (DESIGN, law 4).
//
//   SimulatedRuntime runtime(core_loop);
//
// Threads: methods from any; state and callbacks on `loop`, which outlives the runtime. The
// destructor must run on the loop's thread or after the loop has stopped.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/executor.h"
#include "kubelet/runtime.h"

namespace sextant::kubelet {

class SimulatedRuntime : public Runtime {
 public:
  explicit SimulatedRuntime(Loop& loop);
  ~SimulatedRuntime() override;

  std::string Level() const override { return "simulated"; }
  std::string Explanation() const override { return ""; }
  Owner FileOwner() const override;
  void CreateSandbox(PodSandboxSpec spec, DoneCallback done) override;
  void RemoveSandbox(std::string uid, DoneCallback done) override;
  void StartContainer(ContainerSpec spec, EventCallback events) override;
  void StopContainer(std::string id, int signal, Duration grace) override;
  void RemoveContainer(std::string id) override;
  // Nothing is there to run a command: on_exit says so.
  std::shared_ptr<Session> Exec(ExecSpec spec, SessionCallbacks callbacks) override;
  // Silent until the container ends.
  std::shared_ptr<Session> Attach(AttachSpec spec, SessionCallbacks callbacks) override;
  // Probes succeed while the container runs.
  void Probe(HttpProbe probe, ProbeCallback done) override;
  void Probe(TcpProbe probe, ProbeCallback done) override;
  void Probe(GrpcProbe probe, ProbeCallback done) override;
  void Probe(ExecProbe probe, ProbeCallback done) override;
  void DialPort(std::string sandbox_uid, uint16_t port,
                std::function<void(Result<int>)> done) override;
  void Stats(std::string container_id, std::function<void(Result<ContainerStats>)> done) override;

 private:
  class State;
  void Post(std::function<void(State&)> task);

  Loop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace sextant::kubelet
