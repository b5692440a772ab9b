// The level without namespaces. The container's own directory stands in for its root: programs
// run by their path in the toolbox, HOME, TMPDIR and the working directory lie in that directory.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/file.h"
#include "kubelet/init/launch_spec.h"
#include "kubelet/isolation.h"
#include "kubelet/launch_records.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;

// Processes and threads that a user has now: the limit counts them all.
uint64_t ThreadsOf(uint32_t uid) {
  uint64_t count = 0;
  std::error_code error;
  // By hand: the range-for of these iterators throws when a process ends while it is looked at.
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    struct stat info{};
    if (stat(entry->path().c_str(), &info) != 0 || info.st_uid != uid) continue;
    std::error_code gone;
    for (fs::directory_iterator task(entry->path() / "task", gone); !gone && task != end;
         task.increment(gone))
      ++count;
  }
  return count;
}

Status MakeBelow(const fs::path& root, const std::string& container_path, fs::path* where) {
  const std::string clean = CleanPath(container_path);
  if (clean.empty())
    return Fail(
        BadRequest(fmt::format("path \"{}\" must be absolute, without \"..\"", container_path)));
  *where = root / clean.substr(1);
  std::error_code error;
  fs::create_directories(where->parent_path(), error);
  if (error)
    return Fail(InternalError(fmt::format("make {}: {}", where->string(), error.message())));
  return {};
}

Status PlaceFile(const fs::path& where, std::string_view content, uint32_t mode) {
  // Placed before anything of the container runs, so no link of its making can be in the way.
  Fd file(open(where.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.ok()) return Fail(FileError("open", where.string(), errno));
  while (!content.empty()) {
    const ssize_t n = write(file.get(), content.data(), content.size());
    if (n < 0) return Fail(FileError("write", where.string(), errno));
    content.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status PlaceMount(const Mount& mount, const fs::path& root) {
  fs::path where;
  RETURN_IF_ERROR(MakeBelow(root, mount.container_path, &where));
  std::error_code error;
  switch (mount.kind) {
    case Mount::Kind::kFile:
      return PlaceFile(where, mount.content, mount.mode);
    case Mount::Kind::kTmpfs:
      fs::create_directories(where, error);
      return {};
    case Mount::Kind::kHostPath: {
      const std::string source =
          mount.sub_path.empty() ? mount.host_path : mount.host_path + "/" + mount.sub_path;
      fs::create_symlink(source, where, error);
      return {};
    }
  }
  return {};
}

}  // namespace

Status MakeContainerRoot(const ContainerSpec& spec, const PodSandboxSpec& sandbox,
                         const Identity& identity, const std::string& root) {
  std::error_code error;
  for (const char* directory : {"root", "tmp", "run", "etc", "var"})
    fs::create_directories(fs::path(root) / directory, error);
  if (error) return Fail(InternalError(fmt::format("make {}: {}", root, error.message())));
  for (const auto& [path, content] : EtcFiles(sandbox, spec))
    RETURN_IF_ERROR(PlaceFile(root + path, content, 0644));
  for (const Mount& mount : spec.mounts) RETURN_IF_ERROR(PlaceMount(mount, root));
  if (!identity.drop) return {};
  for (const auto& entry : fs::recursive_directory_iterator(root, error))
    if (lchown(entry.path().c_str(), identity.drop->uid, identity.drop->gid) != 0)
      return Fail(FileError("chown", entry.path().string(), errno));
  if (lchown(root.c_str(), identity.drop->uid, identity.drop->gid) != 0)
    return Fail(FileError("chown", root, errno));
  return {};
}

Result<SpawnRequest> LandlockContainer(const ContainerInput& input, const std::string& root,
                                       Stdio stdio) {
  const ContainerSpec& spec = input.spec;
  RETURN_IF_ERROR(CheckSpec(spec));
  std::vector<std::string> argv = spec.argv;
  const Toolbox::Program program = input.toolbox.Resolve(spec);
  if (!input.hold) {
    const std::string name = fs::path(program.path).filename();
    const bool in_toolbox = program.path == "/bin/" + name || program.path == "/usr/bin/" + name ||
                            program.path == "/sbin/" + name || program.path == "/usr/sbin/" + name;
    argv[0] = in_toolbox ? input.toolbox.bin() + "/" + name : root + program.path;
    // The machine's own start files are out of reach and would only be complained about.
    if (in_toolbox && name == "bash") argv.insert(argv.begin() + 1, {"--noprofile", "--norc"});
  }
  ContainerSpec inside = spec;
  inside.env = {"HOME=" + root + "/root", "TMPDIR=" + root + "/tmp"};
  for (const std::string& entry : spec.env)
    if (!entry.starts_with("PATH=")) inside.env.push_back(entry);
  inside.env.push_back("SEXTANT_ROOT=" + root);
  inside.env.push_back("PATH=" + input.toolbox.bin());
  const ContainerInput changed{input.toolbox, input.identity, input.sandbox, inside, input.hold};

  SpawnRequest request{.program = input.toolbox.init(),
                       .argv = {"sextant-init", "restrict"},
                       .env = InitEnvironment()};
  Records records = CommonRecords(changed, argv, input.toolbox.bin());
  records.Add("cwd", spec.working_dir.empty() ? root : root + CleanPath(spec.working_dir));
  records.Add("nonet", 1);
  const uint32_t user = input.identity.drop ? input.identity.drop->uid : geteuid();
  records.Add("nproc", PidLimit(spec) + ThreadsOf(user));
  AddTerminal(stdio, records);
  if (input.hold) records.Add("hold", 1);
  records.Add("read", input.toolbox.bin());
  records.Add("write", root);
  for (const Mount& mount : spec.mounts) {
    if (mount.kind != Mount::Kind::kHostPath) continue;
    ASSIGN_OR_RETURN(const std::string source, MountSource(mount));
    records.Add(mount.read_only ? "read" : "write", source);
  }
  RETURN_IF_ERROR(GiveRecords(records, std::move(stdio), request));
  return request;
}

Result<SpawnRequest> LandlockExec(const ContainerInput& input, const std::string& root,
                                  const std::vector<std::string>& argv, Stdio stdio) {
  RETURN_IF_ERROR(CheckWords(argv, "command"));
  ContainerSpec spec = input.spec;
  spec.argv = argv;
  spec.simulated = false;
  if (const Toolbox::Program program = input.toolbox.Resolve(spec); !program.runs)
    return Fail(InternalError(program.why));
  const ContainerInput changed{input.toolbox, input.identity, input.sandbox, spec, false};
  return LandlockContainer(changed, root, std::move(stdio));
}

Status ProbeLandlock(const Toolbox& toolbox, const Identity& identity, const std::string& scratch) {
  const PodSandboxSpec sandbox{.uid = "probe", .hostname = "probe"};
  const ContainerSpec spec{.id = "probe", .argv = {"busybox", "echo", "works"}};
  RETURN_IF_ERROR(MakeContainerRoot(spec, sandbox, identity, scratch));
  const ContainerInput input{toolbox, identity, sandbox, spec};
  ASSIGN_OR_RETURN(SpawnRequest request, LandlockContainer(input, scratch, {}));
  ASSIGN_OR_RETURN(Pipe status, MakePipe());
  ASSIGN_OR_RETURN(Pipe info, MakePipe());
  request.Give(std::move(status.write), kStatusFd);
  request.Give(std::move(info.write), kInfoFd);
  int code = 0;
  ASSIGN_OR_RETURN(const std::string output, Capture(std::move(request), 4096, &code));
  std::error_code error;
  fs::remove_all(scratch, error);
  if (output == "works\n" && code == 0) return {};
  std::array<char, 512> text{};
  const ssize_t n = read(status.read.get(), text.data(), text.size());
  return Fail(InternalError(n > 0 ? std::string(text.data(), static_cast<size_t>(n))
                                  : fmt::format("sextant-init ended with code {}", code)));
}

}  // namespace sextant::kubelet
