// What the kubelet asks of a container runtime. Two of them: ProcessRuntime
// (kubelet/process_runtime.h, real processes in a sandbox) and SimulatedRuntime
// (kubelet/runtime_simulated.h, timers only). Plain structs: no word of the Kubernetes API.
//
//   runtime.CreateSandbox({.uid = uid, .name = "web-0", ...}, [](Status s) { ... });
//   runtime.StartContainer(spec, [](const ContainerEvent& e) {
//     if (e.kind == ContainerEvent::Kind::kExited) Restart(e.exit_code);
//   });
//   runtime.StopContainer(spec.id, SIGTERM, 30s);
//
// Threads: every method may be called from any thread and never blocks. Callbacks come later, one
// at a time, on the executor that the runtime was made with; events of one container come in
// order: started, then exited, each at most once. Ownership: sessions are shared; dropping the last
// handle of a session ends it. The destructor of a runtime kills everything that it started and
// then calls nobody any more.
// Source: cri-api v1 (RuntimeService) for what a kubelet needs from a runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace sextant::kubelet {

struct Mount {
  enum class Kind {
    kHostPath,  // `host_path` (a file or a directory that exists) as `container_path`
    kTmpfs,     // an empty file system in memory, `size_limit` bytes (0: the runtime's default)
    kFile,      // a file with `content`, mode `mode`
  };
  Kind kind = Kind::kHostPath;
  std::string container_path;  // absolute
  std::string host_path;
  std::string sub_path;  // below host_path; may not leave it, by symlinks neither
  std::string content;
  uint32_t mode = 0644;
  uint64_t size_limit = 0;
  bool read_only = false;
};

struct Device {
  std::string container_path;  // "/dev/nvidia0"
  std::string host_path;       // empty: a simulated device, a node that leads nowhere (/dev/null)
};

struct Limits {
  uint64_t memory_bytes = 0;  // of all processes together; 0: only the runtime's bound per process
  uint32_t pids = 0;          // processes and threads of one container; 0: the runtime's default
};

// A Pod's sandbox: the namespaces that its containers share.
struct PodSandboxSpec {
  std::string uid;  // the key
  std::string ns;   // the Pod's namespace
  std::string name;
  std::string hostname;
  std::vector<std::string> ips;  // IPv4 or IPv6, configured on the sandbox's loopback device
  std::string resolv_conf;       // content of /etc/resolv.conf; empty: no name servers
  std::vector<std::string> host_aliases;  // further lines for /etc/hosts
  std::string log_directory;              // exists; where the kubelet wants the Pod's logs
  bool host_network = false;  // never the host's real network: a network namespace of its own too
};

struct ContainerSpec {
  std::string id;           // the key, unique in the runtime: at most 128 of [A-Za-z0-9._-]
  std::string sandbox_uid;  // an existing sandbox
  std::string name;
  std::string image;
  std::vector<std::string> argv;  // command and args, $(VAR) already expanded
  std::vector<std::string> env;   // "NAME=value"
  std::string working_dir;        // empty: "/"
  std::vector<Mount> mounts;
  std::vector<Device> devices;
  Limits limits;
  uint32_t run_as_user = 0;
  uint32_t run_as_group = 0;
  bool read_only_root = false;
  bool tty = false;
  bool stdin_open = false;  // a standard input that Attach can write to; else /dev/null
  bool stdin_once = false;  // the first Attach that closes its input closes the container's
  std::string log_path;     // file in CRI format; empty: no log
  // The id of a running container of the same sandbox whose processes this one is to see and be
  // among, where containers have processes of their own to see (bubblewrap).
  std::string target;
  // Simulated: starts, is ready, and runs until stopped or for `run_for`, then ends with
  // `simulated_exit_code`. A program that the toolbox lacks is simulated too.
  bool simulated = false;
  std::optional<Duration> run_for;
  int simulated_exit_code = 0;
};

struct ContainerEvent {
  enum class Kind { kStarted, kExited };
  Kind kind = Kind::kStarted;
  std::string container_id;
  std::string sandbox_uid;
  int64_t pid = 0;         // on this machine; 0 where no process stands behind the container
  bool simulated = false;  // kStarted: nothing really runs, and `message` says why
  int exit_code = 0;       // kExited: 128 + signal where a signal ended it, as containerd says it
  int signal = 0;          // kExited: the signal, 0 if none or not known
  std::string reason;      // kExited: "Completed", "Error", "StartError", "OOMKilled"
  std::string message;
  Time started_at{};
  Time finished_at{};
};
using EventCallback = std::function<void(const ContainerEvent&)>;
using DoneCallback = std::function<void(Status)>;

// Output of a session. on_exit comes last and once: the exit code, or why there is none.
struct SessionCallbacks {
  std::function<void(std::string_view)> on_stdout;
  std::function<void(std::string_view)> on_stderr;  // never with a tty
  std::function<void(Result<int>)> on_exit;
  std::function<void()> on_writable;  // after a refused Write: there is room again
};

// A running exec or attach. The output side is bounded: while more than kSessionWindow bytes were
// handed out and not yet confirmed by Consumed, the program waits.
class Session {
 public:
  virtual ~Session() = default;
  // False if more than kSessionInputMax bytes would wait for the program: try again after
  // on_writable. A write that fits an empty queue is never refused.
  virtual bool Write(std::string_view data) = 0;
  virtual void CloseStdin() = 0;
  virtual void Resize(uint16_t columns, uint16_t rows) = 0;
  virtual void Consumed(size_t bytes) = 0;
  virtual void Cancel() = 0;  // kills an exec'd program, detaches an attach; on_exit still comes
};
inline constexpr size_t kSessionWindow = 1 << 20;
inline constexpr size_t kSessionInputMax = 1 << 20;

struct ExecSpec {
  std::string container_id;
  std::vector<std::string> argv;
  bool tty = false;
  bool use_stdin = false;
  bool use_stdout = true;
  bool use_stderr = true;
  Duration timeout{0};  // 0: none; afterwards killed, on_exit says DeadlineExceeded
};
struct AttachSpec {
  std::string container_id;
  bool use_stdin = false;
  bool use_stdout = true;
  bool use_stderr = true;
};

struct ProbeResult {
  bool success = false;
  std::string output;  // for the event: "HTTP probe failed with statuscode: 500"
};
using ProbeCallback = std::function<void(ProbeResult)>;

// A probe of a simulated container succeeds. `host`: empty is the Pod itself, nothing else can be
// reached from a sandbox.
struct HttpProbe {
  std::string container_id;
  std::string host;
  uint16_t port = 0;
  std::string scheme = "HTTP";
  std::string path = "/";
  std::vector<std::pair<std::string, std::string>> headers;
  Duration timeout{1'000'000'000};
};
struct TcpProbe {
  std::string container_id;
  std::string host;
  uint16_t port = 0;
  Duration timeout{1'000'000'000};
};
struct GrpcProbe {
  std::string container_id;
  uint16_t port = 0;
  std::string service;
  Duration timeout{1'000'000'000};
};
struct ExecProbe {
  std::string container_id;
  std::vector<std::string> argv;
  Duration timeout{1'000'000'000};
};

struct ContainerStats {
  Duration cpu{0};            // used since the start
  uint64_t memory_bytes = 0;  // resident
  uint32_t pids = 0;
};

struct Owner {
  uint32_t uid = 0;
  uint32_t gid = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // The isolation in force: "bubblewrap", "landlock", "built-in" or "simulated"; Explanation says
  // in one sentence why it is not a higher one (empty for the highest).
  virtual std::string Level() const = 0;
  virtual std::string Explanation() const = 0;
  // Who must own files and directories that a container is to read or write (mounts of host
  // paths): container root is not the user root when the lab runs as root.
  virtual Owner FileOwner() const = 0;

  virtual void CreateSandbox(PodSandboxSpec spec, DoneCallback done) = 0;
  // Kills what still runs in it. Unknown sandboxes are a success.
  virtual void RemoveSandbox(std::string uid, DoneCallback done) = 0;

  // A start that fails is an exit with reason "StartError" and code 128, without a start.
  virtual void StartContainer(ContainerSpec spec, EventCallback events) = 0;
  // Sends `signal`, after `grace` SIGKILL. Nothing for a container that has ended or is unknown.
  virtual void StopContainer(std::string id, int signal, Duration grace) = 0;
  // Forgets an ended container; kills one that runs.
  virtual void RemoveContainer(std::string id) = 0;

  virtual std::shared_ptr<Session> Exec(ExecSpec spec, SessionCallbacks callbacks) = 0;
  virtual std::shared_ptr<Session> Attach(AttachSpec spec, SessionCallbacks callbacks) = 0;

  virtual void Probe(HttpProbe probe, ProbeCallback done) = 0;
  virtual void Probe(TcpProbe probe, ProbeCallback done) = 0;
  virtual void Probe(GrpcProbe probe, ProbeCallback done) = 0;
  virtual void Probe(ExecProbe probe, ProbeCallback done) = 0;

  // A connected, non-blocking stream socket to a port in the sandbox; the caller owns and closes
  // it. For port-forward and Services.
  virtual void DialPort(std::string sandbox_uid, uint16_t port,
                        std::function<void(Result<int>)> done) = 0;

  virtual void Stats(std::string container_id,
                     std::function<void(Result<ContainerStats>)> done) = 0;
};

}  // namespace sextant::kubelet
