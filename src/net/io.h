// An I/O thread: one thread, one epoll set, a Loop with timers. Every socket of `net` belongs to
// one IoThread, and its callbacks run there; they must hand work on at once and never block.
//
//   IoThread io("api", clock);
//   auto server = Server::Start(io, options, handler);
//
// Threads: Post, After, Cancel, Stop and Resolve from any thread; Watch, Change and Unwatch on the
// I/O thread only. Everything that lives on an IoThread must be gone, or the IoThread stopped,
// before it is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/status.h"

namespace sextant::net {

// A numeric address to connect to or listen on. With `path` set it is a unix socket; a leading
// '@' in `path` means the abstract namespace.
struct Endpoint {
  std::string address;  // "127.0.0.1", "::1"; no brackets
  uint16_t port = 0;
  std::string path;

  bool is_unix() const { return !path.empty(); }
  std::string ToString() const;  // "127.0.0.1:6443", "[::1]:6443", "unix:/run/x.sock"
  bool operator==(const Endpoint&) const = default;
};

// Numeric, of either family.
bool IsIpAddress(const std::string& text);

// Told when a watched descriptor can be read or written. Both flags are set on an error or a
// hang-up, so that the next call on the descriptor shows it.
class FdHandler {
 public:
  virtual ~FdHandler() = default;
  virtual void OnReady(bool readable, bool writable) = 0;
  // The thread is stopping: last call, on the I/O thread. Close the descriptor now.
  virtual void OnStop() = 0;
};

class IoThread final : public Loop {
 public:
  IoThread(const std::string& name, const Clock& clock);
  ~IoThread() override;
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void Post(Task task) override;
  TimerId After(Duration delay, Task task) override;
  bool Cancel(TimerId id) override;
  const Clock& clock() const override;
  bool OnLoop() const override;
  // Tells every FdHandler still there (OnStop) and joins the thread; what was posted but has not
  // begun is dropped. Idempotent; not from itself.
  void Stop();

  // Level-triggered; with neither flag nothing is reported, not even a hang-up. `handler` must stay
  // alive until Unwatch(fd), which may be called inside OnReady and after which `handler` is not
  // called again, even for events already fetched.
  void Watch(int fd, bool read, bool write, FdHandler* handler);
  void Change(int fd, bool read, bool write);
  void Unwatch(int fd);

  // Looks `host` up (at once if it is numeric) and calls `done` on this thread.
  using ResolveDone = std::move_only_function<void(Result<std::vector<Endpoint>>)>;
  void Resolve(std::string host, uint16_t port, ResolveDone done);

  // Posts to this thread and may outlive it: then what is posted is dropped.
  std::shared_ptr<Executor> poster() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sextant::net
