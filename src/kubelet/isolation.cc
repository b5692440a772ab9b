#include "kubelet/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "kubelet/init/launch_spec.h"
#include "kubelet/launch_records.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;

// Words of bwrap's command line, and the files that it reads. Given by --args, so that no other
// user of the machine sees them.
class BwrapArguments {
 public:
  template <typename... Words>
  void Add(Words&&... words) {
    (text_.append(words).push_back('\0'), ...);
  }
  // Parents that bwrap makes by itself are closed to other users.
  void AddParents(const std::string& path) {
    for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      Add("--dir", path.substr(0, at));
  }
  Status AddFile(const std::string& path, std::string_view content, uint32_t mode, bool read_only) {
    ASSIGN_OR_RETURN(Fd file, MemoryFile("file", content));
    const int target = kFirstFileFd + static_cast<int>(files_.size());
    if (read_only) mode |= 0444;  // it stays root's: see OwnedPaths
    Add("--perms", fmt::format("{:04o}", mode & 0777), read_only ? "--ro-bind-data" : "--file",
        std::to_string(target), path);
    files_.emplace_back(std::move(file), target);
    return {};
  }
  Status Into(SpawnRequest& request) {
    for (auto& [file, target] : files_) request.Give(std::move(file), target);
    ASSIGN_OR_RETURN(Fd args, MemoryFile("args", text_));
    request.Give(std::move(args), kArgsFd);
    return {};
  }

 private:
  std::string text_;
  std::vector<std::pair<Fd, int>> files_;
};

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

// Mounts there would undo what the sandbox is built from.
Result<std::string> MountTarget(const std::string& path) {
  std::string clean = CleanPath(path);
  if (clean.empty())
    return Fail(
        BadRequest(fmt::format("mount path \"{}\" must be absolute, without \"..\"", path)));
  if (clean == "/" || clean == "/proc" || clean.starts_with("/proc/") || clean == "/dev" ||
      clean == "/bin")
    return Fail(BadRequest(fmt::format("nothing can be mounted at \"{}\"", clean)));
  return clean;
}

Status AddMount(const Mount& mount, BwrapArguments& args) {
  ASSIGN_OR_RETURN(const std::string target, MountTarget(mount.container_path));
  args.AddParents(target);
  switch (mount.kind) {
    case Mount::Kind::kFile:
      return args.AddFile(target, mount.content, mount.mode, mount.read_only);
    case Mount::Kind::kTmpfs:
      args.Add("--perms", "0777", "--size",
               std::to_string(mount.size_limit ? mount.size_limit : kSmallTmpfsBytes), "--tmpfs",
               target);
      if (mount.read_only) args.Add("--remount-ro", target);
      return {};
    case Mount::Kind::kHostPath: {
      ASSIGN_OR_RETURN(const std::string source, MountSource(mount));
      args.Add(mount.read_only ? "--ro-bind" : "--bind", source, target);
      return {};
    }
  }
  return {};
}

constexpr std::array kRootDirectories = {
    "/etc", "/home",      "/mnt",           "/opt", "/root",    "/run",     "/srv",     "/sys",
    "/usr", "/usr/local", "/usr/local/bin", "/var", "/var/log", "/var/run", "/var/tmp", "/tmp"};

// What container root owns, as it would in an image. Only said where the lab is root: otherwise
// bwrap makes everything as the user that the container has too.
void AddOwnedPaths(const ContainerInput& input, Records& records) {
  if (!input.identity.drop) return;
  const auto mounted = [&](std::string_view path) {
    return std::ranges::any_of(input.spec.mounts, [&](const Mount& mount) {
      return mount.kind != Mount::Kind::kFile && CleanPath(mount.container_path) == path;
    });
  };
  if (!input.spec.read_only_root) {
    records.Add("own", "/");
    for (const char* directory : kRootDirectories)
      if (!mounted(directory)) records.Add("own", directory);
    for (const auto& [path, content] : EtcFiles(input.sandbox, input.spec))
      records.Add("own", path);
  }
  for (const Mount& mount : input.spec.mounts)
    if (mount.kind == Mount::Kind::kFile && !mount.read_only && !input.spec.read_only_root)
      records.Add("own", CleanPath(mount.container_path));
}

// The root: a small file system in memory, writable as an image's is, with the toolbox in it.
Status AddRoot(const ContainerInput& input, BwrapArguments& args) {
  args.Add("--size", std::to_string(kRootTmpfsBytes), "--tmpfs", "/");
  for (const char* directory : kRootDirectories) args.Add("--dir", directory);
  args.Add("--dir", "/bin", "--ro-bind", input.toolbox.bin(), "/bin");
  for (const char* link : {"/usr/bin", "/sbin", "/usr/sbin"}) args.Add("--symlink", "/bin", link);
  args.Add("--chmod", "1777", "/tmp", "--chmod", "1777", "/var/tmp");
  args.Add("--proc", "/proc", "--dev", "/dev");
  args.Add("--perms", "1777", "--size", std::to_string(kSmallTmpfsBytes), "--tmpfs", "/dev/shm");
  for (const auto& [path, content] : EtcFiles(input.sandbox, input.spec))
    RETURN_IF_ERROR(args.AddFile(path, content, 0644, false));
  return {};
}

Status AddMountsAndDevices(const ContainerSpec& spec, BwrapArguments& args) {
  // Outer mounts first, whatever the order in the spec.
  std::multimap<std::string, const Mount*> mounts;
  for (const Mount& mount : spec.mounts) mounts.emplace(CleanPath(mount.container_path), &mount);
  for (const auto& [path, mount] : mounts) RETURN_IF_ERROR(AddMount(*mount, args));
  for (const Device& device : spec.devices) {
    ASSIGN_OR_RETURN(const std::string target, MountTarget(device.container_path));
    args.AddParents(target);
    args.Add("--dev-bind", device.host_path.empty() ? "/dev/null" : device.host_path, target);
  }
  return {};
}

void GiveNamespaces(const SandboxNamespaces& namespaces, SpawnRequest& request) {
  if (namespaces.user.ok()) request.Give(Duplicate(namespaces.user), kUserNsFd);
  request.Give(Duplicate(namespaces.net), kNetNsFd);
  request.Give(Duplicate(namespaces.ipc), kIpcNsFd);
  request.Give(Duplicate(namespaces.uts), kUtsNsFd);
}

Result<Fd> OpenFile(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return Fail(FileError("open", path, errno));
  return fd;
}

}  // namespace

Status CheckWords(const std::vector<std::string>& words, std::string_view what) {
  for (const std::string& word : words)
    if (HasNul(word)) return Fail(BadRequest(fmt::format("{}: contains a NUL byte", what)));
  return {};
}

Status CheckSpec(const ContainerSpec& spec) {
  RETURN_IF_ERROR(CheckWords(spec.argv, "command"));
  RETURN_IF_ERROR(CheckWords(spec.env, "environment"));
  if (HasNul(spec.working_dir)) return Fail(BadRequest("workingDir: contains a NUL byte"));
  size_t files = 0, bytes = 0;
  for (const Mount& mount : spec.mounts) {
    if (mount.kind != Mount::Kind::kFile) continue;
    ++files;
    bytes += mount.content.size();
  }
  if (files > kMaxPlacedFiles || bytes > kMaxPlacedBytes)
    return Fail(BadRequest(fmt::format("more than {} files or {} bytes to place in the container",
                                       kMaxPlacedFiles, kMaxPlacedBytes)));
  return {};
}

Result<std::string> MountSource(const Mount& mount) {
  std::error_code error;
  const fs::path base = fs::canonical(mount.host_path, error);
  if (error)
    return Fail(BadRequest(fmt::format("host path \"{}\": {}", mount.host_path, error.message())));
  if (mount.sub_path.empty()) return base.string();
  const fs::path full = fs::canonical(base / mount.sub_path, error);
  if (error)
    return Fail(BadRequest(fmt::format("sub path \"{}\": {}", mount.sub_path, error.message())));
  const std::string prefix = base == "/" ? "/" : base.string() + "/";
  if (full != base && !full.string().starts_with(prefix))
    return Fail(BadRequest(fmt::format("sub path \"{}\" leads out of its volume", mount.sub_path)));
  return full.string();
}

Records CommonRecords(const ContainerInput& input, const std::vector<std::string>& argv,
                      std::string_view path) {
  const ContainerSpec& spec = input.spec;
  Records records;
  for (const std::string& word : argv) records.Add("argv", word);
  for (const std::string& entry : FullEnvironment(input.sandbox, spec, path))
    records.Add("env", entry);
  records.Add("uid", spec.run_as_user);
  records.Add("gid", spec.run_as_group);
  if (input.identity.drop) {
    records.Add("drop_uid", input.identity.drop->uid);
    records.Add("drop_gid", input.identity.drop->gid);
  }
  records.Add("data", DataLimit(spec));
  records.Add("nofile", kMaxOpenFiles);
  records.Add("fsize", kMaxFileBytes);
  return records;
}

void AddTerminal(const Stdio& stdio, Records& records) {
  if (stdio.tty) records.Add(stdio.console.ok() ? "console" : "tty", 1);
}

Status GiveRecords(const Records& records, Stdio stdio, SpawnRequest& request) {
  ASSIGN_OR_RETURN(Fd file, MemoryFile("spec", records.text()));
  request.Give(std::move(file), kSpecFd);
  if (stdio.in.ok()) request.Give(std::move(stdio.in), STDIN_FILENO);
  if (stdio.out.ok()) request.Give(std::move(stdio.out), STDOUT_FILENO);
  if (stdio.err.ok()) request.Give(std::move(stdio.err), STDERR_FILENO);
  if (stdio.console.ok()) request.Give(std::move(stdio.console), kConsoleFd);
  return {};
}

std::vector<std::string> InitEnvironment() {
  return {fmt::format("{}={}", kParentVariable, getpid())};
}

// Room above the limit, so that who exceeds it is seen and killed for it (process_container.cc).
uint64_t DataLimit(const ContainerSpec& spec) {
  const uint64_t limit = spec.limits.memory_bytes;
  return limit == 0 ? kDefaultMemory : limit * 2 + kMemoryHeadroom;
}

uint32_t PidLimit(const ContainerSpec& spec) {
  return spec.limits.pids ? spec.limits.pids : kDefaultPids;
}

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kBubblewrap:
      return "bubblewrap";
    case Level::kLandlock:
      return "landlock";
    case Level::kBuiltIn:
      return "built-in";
  }
  return "";
}

Identity CurrentIdentity() {
  Identity identity;
  if (geteuid() == 0) identity.drop = Owner{kUnprivilegedId, kUnprivilegedId};
  return identity;
}

std::vector<std::pair<std::string, std::string>> EtcFiles(const PodSandboxSpec& sandbox,
                                                          const ContainerSpec& spec) {
  std::string hosts =
      "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost "
      "ip6-loopback\n";
  for (const std::string& ip : sandbox.ips) hosts += fmt::format("{}\t{}\n", ip, sandbox.hostname);
  for (const std::string& alias : sandbox.host_aliases) hosts += alias + "\n";
  std::string passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
  if (spec.run_as_user != 0 && spec.run_as_user != kUnprivilegedId)
    passwd += fmt::format("user:x:{}:{}::/:/bin/sh\n", spec.run_as_user, spec.run_as_group);
  std::vector<std::pair<std::string, std::string>> files = {
      {"/etc/hostname", sandbox.hostname + "\n"},
      {"/etc/hosts", hosts},
      {"/etc/resolv.conf", sandbox.resolv_conf},
      {"/etc/passwd", passwd},
      {"/etc/group", "root:x:0:\nnogroup:x:65534:\n"},
      {"/etc/os-release",
       "NAME=\"Sextant toolbox\"\nID=sextant\nPRETTY_NAME=\"Sextant toolbox (busybox)\"\n"},
      {"/etc/nsswitch.conf", "hosts: files dns\n"},
  };
  // A mount at one of these paths takes its place.
  std::erase_if(files, [&](const auto& file) {
    return std::ranges::any_of(spec.mounts, [&](const Mount& mount) {
      return CleanPath(mount.container_path) == file.first;
    });
  });
  return files;
}

std::vector<std::string> FullEnvironment(const PodSandboxSpec& sandbox, const ContainerSpec& spec,
                                         std::string_view path) {
  const auto has = [&](std::string_view name) { return !EnvValue(spec.env, name, "").empty(); };
  std::vector<std::string> env;
  if (!has("PATH")) env.push_back(fmt::format("PATH={}", path));
  if (!has("HOSTNAME")) env.push_back("HOSTNAME=" + sandbox.hostname);
  if (!has("HOME")) env.push_back(spec.run_as_user == 0 ? "HOME=/root" : "HOME=/");
  if (spec.tty && !has("TERM")) env.push_back("TERM=xterm");
  env.insert(env.end(), spec.env.begin(), spec.env.end());
  return env;
}

SpawnRequest PauseProcess(const Toolbox& toolbox, const Identity& identity,
                          const PodSandboxSpec& spec, Fd control) {
  SpawnRequest request{.program = toolbox.init(),
                       .argv = {"sextant-init", "pause",
                                spec.hostname.empty() ? "pod" : spec.hostname.substr(0, 63)},
                       .env = InitEnvironment()};
  request.argv.push_back(identity.drop ? std::to_string(identity.drop->uid) : "-1");
  request.argv.push_back(identity.drop ? std::to_string(identity.drop->gid) : "-1");
  for (const std::string& ip : spec.ips) request.argv.push_back(ip);
  request.Give(std::move(control), kControlFd);
  return request;
}

Result<SpawnRequest> BubblewrapContainer(const ContainerInput& input,
                                         const SandboxNamespaces& namespaces, Stdio stdio) {
  const ContainerSpec& spec = input.spec;
  RETURN_IF_ERROR(CheckSpec(spec));
  BwrapArguments args;
  // bwrap runs as root of the Pod's namespaces. What launch needs is to give the container its
  // files and its user.
  if (input.beside == 0) {
    args.Add("--unshare-pid", "--as-pid-1");
  } else {
    args.Add("--pidns", std::to_string(kPidNsFd));
  }
  args.Add("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SETUID",
           "--cap-add", "CAP_SETGID", "--cap-add", "CAP_CHOWN");
  if (!input.identity.drop) args.Add("--cap-add", "CAP_SETFCAP");  // to map the Pod's root again
  args.Add("--info-fd", std::to_string(kInfoFd));
  RETURN_IF_ERROR(AddRoot(input, args));
  RETURN_IF_ERROR(AddMountsAndDevices(spec, args));
  if (spec.read_only_root) args.Add("--remount-ro", "/");

  SpawnRequest request{
      .program = input.toolbox.init(),
      .argv = {"sextant-init", "enter", input.toolbox.bwrap(), "--args", std::to_string(kArgsFd),
               "--", fmt::format("/proc/self/fd/{}", kSelfFd), "launch"},
      .env = InitEnvironment()};
  RETURN_IF_ERROR(args.Into(request));
  GiveNamespaces(namespaces, request);
  if (input.beside != 0) {
    ASSIGN_OR_RETURN(Fd processes, OpenFile(fmt::format("/proc/{}/ns/pid", input.beside)));
    request.Give(std::move(processes), kPidNsFd);
  }
  ASSIGN_OR_RETURN(Fd self, OpenFile(input.toolbox.init()));
  request.Give(std::move(self), kSelfFd);
  Records records = CommonRecords(input, spec.argv, kDefaultPath);
  records.Add("cwd", spec.working_dir.empty() ? "/" : spec.working_dir);
  AddOwnedPaths(input, records);
  records.Add("nproc", PidLimit(spec));
  AddTerminal(stdio, records);
  if (input.hold) records.Add("hold", 1);
  RETURN_IF_ERROR(GiveRecords(records, std::move(stdio), request));
  return request;
}

Result<SpawnRequest> ExecInContainer(const ContainerInput& input,
                                     const SandboxNamespaces& namespaces, pid_t target,
                                     const std::vector<std::string>& argv, Stdio stdio) {
  RETURN_IF_ERROR(CheckWords(argv, "command"));
  SpawnRequest request{
      .program = input.toolbox.init(), .argv = {"sextant-init", "exec"}, .env = InitEnvironment()};
  GiveNamespaces(namespaces, request);
  const std::array<std::pair<const char*, int>, 3> own = {
      {{"mnt", kMountNsFd}, {"pid", kPidNsFd}, {"user", kInnerUserNsFd}}};
  for (const auto& [name, fd] : own) {
    ASSIGN_OR_RETURN(Fd ns, OpenFile(fmt::format("/proc/{}/ns/{}", target, name)));
    request.Give(std::move(ns), fd);
  }
  Records records = CommonRecords(input, argv, kDefaultPath);
  records.Add("cwd", input.spec.working_dir.empty() ? "/" : input.spec.working_dir);
  records.Add("nproc", PidLimit(input.spec));
  AddTerminal(stdio, records);
  RETURN_IF_ERROR(GiveRecords(records, std::move(stdio), request));
  return request;
}

namespace {

Result<std::optional<Fd>> ReceiveDescriptors(const Fd& control, int flags,
                                             std::vector<Fd>* descriptors) {
  std::array<char, 512> text{};
  SocketAnswer answer{};
  iovec parts[2] = {{&answer, sizeof answer}, {text.data(), text.size() - 1}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 4)> space{};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  ssize_t n;
  do {
    n = recvmsg(control.get(), &message, flags | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return std::nullopt;
  if (n < static_cast<ssize_t>(sizeof answer))
    return Fail(InternalError("the Pod's pause process has ended"));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      descriptors->emplace_back(fd);
    }
  }
  if (answer.error != 0) {
    errno = answer.error;
    if (text[0] != '\0') return Fail(InternalError(text.data()));
    return Fail(ErrnoError("socket in the Pod"));
  }
  return Fd();
}

}  // namespace

Result<SandboxNamespaces> ReceiveNamespaces(const Fd& control) {
  std::vector<Fd> fds;
  ASSIGN_OR_RETURN(const std::optional<Fd> came, ReceiveDescriptors(control, 0, &fds));
  if (!came || fds.size() < 3) return Fail(InternalError("no namespaces from the pause process"));
  SandboxNamespaces namespaces{std::move(fds[0]), std::move(fds[1]), std::move(fds[2]), Fd()};
  if (fds.size() > 3) namespaces.user = std::move(fds[3]);
  return namespaces;
}

Result<std::optional<Fd>> ReceiveSocket(const Fd& control) {
  std::vector<Fd> fds;
  ASSIGN_OR_RETURN(std::optional<Fd> came, ReceiveDescriptors(control, MSG_DONTWAIT, &fds));
  if (!came) return std::nullopt;
  if (fds.size() != 1) return Fail(InternalError("no socket from the pause process"));
  return std::move(fds[0]);
}

Status ProbeBubblewrap(const Toolbox& toolbox, const Identity& identity) {
  if (toolbox.bwrap().empty())
    return Fail(UsageError("bwrap was not found; install the package bubblewrap"));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return Fail(ErrnoError("socketpair"));
  Fd ours(pair[0]), theirs(pair[1]);
  const PodSandboxSpec sandbox{.uid = "probe", .hostname = "probe"};
  ASSIGN_OR_RETURN(const Process pause,
                   Spawn(PauseProcess(toolbox, identity, sandbox, std::move(theirs))));
  const Result<SandboxNamespaces> namespaces = ReceiveNamespaces(ours);
  const auto end = [&] {
    ours.Reset();
    Signal(pause.pidfd, SIGKILL);
    Reap(pause);
  };
  if (!namespaces) {
    end();
    return Fail(namespaces.error());
  }
  ContainerSpec spec{.id = "probe", .argv = {"/bin/busybox", "echo", "works"}};
  const ContainerInput input{toolbox, identity, sandbox, spec};
  Result<Pipe> status = MakePipe();
  Result<Pipe> info = MakePipe();  // nobody reads it, but bwrap must be able to write
  Result<SpawnRequest> request = BubblewrapContainer(input, *namespaces, {});
  Status result = Fail(InternalError("no pipe"));
  if (status && info && request) {
    request->Give(std::move(status->write), kStatusFd);
    request->Give(std::move(info->write), kInfoFd);
    int code = 0;
    const Result<std::string> output = Capture(*std::move(request), 4096, &code);
    std::array<char, 512> text{};
    const ssize_t n = read(status->read.get(), text.data(), text.size() - 1);
    result = {};
    if (!output)
      result = Fail(output.error());
    else if (*output != "works\n" || code != 0)
      result = Fail(InternalError(
          n > 0
              ? std::string(text.data(), static_cast<size_t>(n))
              : fmt::format("bwrap ended with code {} (user namespaces may be forbidden)", code)));
  } else if (!request) {
    result = Fail(request.error());
  }
  end();
  return result;
}

}  // namespace sextant::kubelet
