// Exec and attach sessions of ProcessRuntime.
#pragma once

#include <atomic>
#include <memory>

#include "kubelet/process_container.h"

namespace sextant::kubelet {

// On the runtime's loop, but for the atomics. The user's handle is a SessionHandle.
class ProcessSession : public std::enable_shared_from_this<ProcessSession> {
 public:
  ProcessSession(ProcessCore& core, SessionCallbacks callbacks)
      : core_(core), callbacks_(std::move(callbacks)) {}
  virtual ~ProcessSession() = default;

  virtual void Begin() = 0;
  virtual void Write(std::string data) = 0;
  virtual void CloseStdin() = 0;
  virtual void Resize(uint16_t columns, uint16_t rows) = 0;
  virtual void Cancel() = 0;
  // The consumer has caught up, or not.
  virtual void Pause(bool paused) = 0;
  virtual void OnContainerEnded(const std::string& id) = 0;
  // Lets go of all that belongs to the runtime: the handle may outlive it.
  virtual void Release() = 0;

  void Finish(Result<int> result);  // once; later calls are ignored

  // So much of the input has been taken, or dropped.
  void Taken(size_t bytes);

  std::atomic<size_t> queued_input = 0;
  std::atomic<bool> refused = false;  // a Write since on_writable
  std::atomic<size_t> outstanding = 0;
  std::atomic<bool> dropped = false;  // the user let go of the handle: no callbacks

 protected:
  void Emit(LogStream stream, std::string_view data);
  bool finished() const { return finished_; }

  ProcessCore& core_;

 private:
  const SessionCallbacks callbacks_;
  bool finished_ = false;
};

// The user's side; posts to the loop.
std::shared_ptr<Session> MakeHandle(std::shared_ptr<FdLoop> loop,
                                    std::shared_ptr<ProcessSession> session);
std::shared_ptr<ProcessSession> MakeExec(ProcessCore& core, ExecSpec spec,
                                         SessionCallbacks callbacks);
std::shared_ptr<ProcessSession> MakeAttach(ProcessCore& core, AttachSpec spec,
                                           SessionCallbacks callbacks);

class AttachSession : public ProcessSession {
 public:
  AttachSession(ProcessCore& core, AttachSpec spec, SessionCallbacks callbacks)
      : ProcessSession(core, std::move(callbacks)), spec_(std::move(spec)) {}
  void Begin() override;
  void Write(std::string data) override;
  void CloseStdin() override;
  void Resize(uint16_t columns, uint16_t rows) override;
  void Cancel() override;
  void Pause(bool) override {}
  void OnContainerEnded(const std::string&) override {}  // OnEnd has come
  void Release() override { container_.reset(); }
  // From the container.
  void OnOutput(LogStream stream, std::string_view data);
  void OnEnd(int exit_code);

 private:
  void Detach();

  const AttachSpec spec_;
  std::shared_ptr<ProcessContainer> container_;
};

}  // namespace sextant::kubelet
