// How a container's program is kept apart: the command lines and records for sextant-init and
// bubblewrap. Stateless; process_runtime.h holds the processes.
//
// Threads: any; Probe blocks for some tens of milliseconds.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/fd.h"
#include "kubelet/runtime.h"
#include "kubelet/spawn.h"
#include "kubelet/toolbox.h"

namespace sextant::kubelet {

enum class Level { kBubblewrap, kLandlock, kBuiltIn };
std::string_view LevelName(Level level);

// The user whose rights container processes have outside. nullopt: the lab's own user; set where
// the lab is root, since no limit on processes holds for root.
struct Identity {
  std::optional<Owner> drop;
};
inline constexpr uint32_t kUnprivilegedId = 65534;
Identity CurrentIdentity();

// Defaults and ceilings; units are bytes and counts.
inline constexpr uint64_t kDefaultMemory = 2ull << 30;
inline constexpr uint64_t kMemoryHeadroom = 256ull << 20;
inline constexpr uint64_t kRootTmpfsBytes = 128ull
                                            << 20;  // what a container writes outside volumes
inline constexpr uint64_t kSmallTmpfsBytes = 64ull << 20;  // /dev/shm, tmpfs volumes
inline constexpr uint64_t kMaxFileBytes = 4ull << 30;      // RLIMIT_FSIZE
inline constexpr uint32_t kDefaultPids = 1024;
inline constexpr uint32_t kMaxOpenFiles = 4096;
inline constexpr size_t kMaxPlacedFiles = 128;
inline constexpr size_t kMaxPlacedBytes = 4u << 20;

// Namespaces of a Pod as descriptors; `user` is closed where the lab is root.
struct SandboxNamespaces {
  Fd net, ipc, uts, user;
};

struct Stdio {
  Fd in, out, err;  // the child's ends; with a terminal all three are the same
  bool tty = false;
  // Instead of a terminal (bubblewrap): the program opens one of its own and sends the master here.
  Fd console;
};

// What the parts below are made from.
struct ContainerInput {
  const Toolbox& toolbox;
  const Identity& identity;
  const PodSandboxSpec& sandbox;
  const ContainerSpec& spec;
  bool hold = false;  // no program: the body of a simulated container that someone wants to enter
  pid_t beside = 0;   // bubblewrap: a process in whose process namespace the program is to be
};

// The child's status pipe (kStatusFd) and info pipe (kInfoFd) are given by the caller.
Result<SpawnRequest> BubblewrapContainer(const ContainerInput& input,
                                         const SandboxNamespaces& namespaces, Stdio stdio);
// `root` is the container's own directory, which exists; see README.runtimes.md for what differs.
Result<SpawnRequest> LandlockContainer(const ContainerInput& input, const std::string& root,
                                       Stdio stdio);
Result<SpawnRequest> LandlockExec(const ContainerInput& input, const std::string& root,
                                  const std::vector<std::string>& argv, Stdio stdio);
SpawnRequest PauseProcess(const Toolbox& toolbox, const Identity& identity,
                          const PodSandboxSpec& spec, Fd control);

// A program in a running container (bubblewrap): enters what the process `target` has.
Result<SpawnRequest> ExecInContainer(const ContainerInput& input,
                                     const SandboxNamespaces& namespaces, pid_t target,
                                     const std::vector<std::string>& argv, Stdio stdio);

// Lays out the files of a container without a mount namespace below `root`.
Status MakeContainerRoot(const ContainerSpec& spec, const PodSandboxSpec& sandbox,
                         const Identity& identity, const std::string& root);

// Whether a level works on this machine; the error says why not.
Status ProbeBubblewrap(const Toolbox& toolbox, const Identity& identity);
Status ProbeLandlock(const Toolbox& toolbox, const Identity& identity, const std::string& scratch);

// The ready message of a pause process: its namespaces. Blocks until it has come.
Result<SandboxNamespaces> ReceiveNamespaces(const Fd& control);
// One more answer, if it has come: the socket, or at a Stdio's console the terminal's master.
// nullopt: not yet.
Result<std::optional<Fd>> ReceiveSocket(const Fd& control);

// The files of /etc that every container has, by path.
std::vector<std::pair<std::string, std::string>> EtcFiles(const PodSandboxSpec& sandbox,
                                                          const ContainerSpec& spec);
// A complete environment: the defaults of an image under the container's own.
std::vector<std::string> FullEnvironment(const PodSandboxSpec& sandbox, const ContainerSpec& spec,
                                         std::string_view path);

}  // namespace sextant::kubelet
