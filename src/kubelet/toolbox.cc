#include "kubelet/toolbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "kubelet/embedded.h"
#include "kubelet/spawn.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kAppletListMax = 64 * 1024;
// Where a container finds the toolbox's programs; the first is the directory, the others links.
constexpr std::array<std::string_view, 4> kBinDirectories = {"/bin", "/usr/bin", "/sbin",
                                                             "/usr/sbin"};

bool IsProgram(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string FirstProgram(const std::string& given, std::initializer_list<const char*> places) {
  if (!given.empty()) return IsProgram(given) ? given : "";
  for (const char* place : places)
    if (IsProgram(place)) return place;
  return "";
}

// Size and time of change: enough to see that a source was replaced.
std::string Stamp(const std::string& path) {
  struct stat info{};
  if (path.empty() || stat(path.c_str(), &info) != 0) return "-\n";
  return fmt::format("{} {} {}.{}\n", path, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

std::string StampOfBytes(std::string_view bytes) {
  return fmt::format("{} {}\n", bytes.size(), std::hash<std::string_view>{}(bytes));
}

Status CopyProgram(const std::string& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(to, fs::perms{0755}, error);
  if (error) return Fail(InternalError(fmt::format("copy {}: {}", from, error.message())));
  return {};
}

Result<std::vector<std::string>> Applets(const std::string& busybox) {
  int code = 0;
  ASSIGN_OR_RETURN(const std::string list,
                   Capture({.program = busybox, .argv = {"busybox", "--list"}, .env = {}},
                           kAppletListMax, &code));
  std::vector<std::string> names;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find('\n', at), list.size());
    const std::string name = list.substr(at, end - at);
    if (!name.empty() && name.find('/') == std::string::npos) names.push_back(name);
    at = end + 1;
  }
  if (code != 0 || names.empty())
    return Fail(InternalError(fmt::format("{} --list failed with code {}", busybox, code)));
  return names;
}

Status WriteFile(const fs::path& path, std::string_view content, fs::perms mode) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  std::error_code error;
  fs::permissions(path, mode, error);
  if (!file || error) return Fail(InternalError(fmt::format("write {} failed", path.string())));
  return {};
}

Status Fill(const fs::path& bin, const std::string& busybox, const std::string& bash,
            const std::string& nvidia_smi) {
  std::error_code error;
  fs::create_directories(bin, error);
  if (error) return Fail(InternalError(fmt::format("make {}: {}", bin.string(), error.message())));
  RETURN_IF_ERROR(CopyProgram(busybox, bin / "busybox"));
  RETURN_IF_ERROR(CopyProgram(bash, bin / "bash"));
  RETURN_IF_ERROR(nvidia_smi.empty()
                      ? WriteFile(bin / "nvidia-smi", EmbeddedNvidiaSmi(), fs::perms{0755})
                      : CopyProgram(nvidia_smi, bin / "nvidia-smi"));
  ASSIGN_OR_RETURN(const std::vector<std::string> applets, Applets(busybox));
  for (const std::string& applet : applets)
    if (!fs::exists(fs::symlink_status(bin / applet, error)))
      fs::create_symlink("busybox", bin / applet, error);
  return {};
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string CleanPath(std::string_view path) {
  if (!path.starts_with('/')) return "";
  std::string out;
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == ".." || part.find('\0') != part.npos) return "";
    if (!part.empty() && part != ".") out.append("/").append(part);
    at = end + 1;
  }
  return out.empty() ? "/" : out;
}

std::string_view EnvValue(const std::vector<std::string>& env, std::string_view name,
                          std::string_view fallback) {
  for (auto it = env.rbegin(); it != env.rend(); ++it)
    if (it->size() > name.size() && (*it)[name.size()] == '=' && it->starts_with(name))
      return std::string_view(*it).substr(name.size() + 1);
  return fallback;
}

Result<Toolbox> Toolbox::Build(const ToolboxOptions& options) {
  const std::string busybox =
      FirstProgram(options.busybox,
                   {"/usr/bin/busybox", "/bin/busybox", "/usr/lib/initramfs-tools/bin/busybox"});
  if (busybox.empty())
    return Fail(UsageError("busybox was not found; install the package busybox-static"));
  const std::string bash = FirstProgram(options.bash, {"/usr/bin/bash-static", "/bin/bash-static"});
  if (bash.empty())
    return Fail(UsageError("bash-static was not found; install the package bash-static"));
  Toolbox toolbox;
  toolbox.bwrap_ = FirstProgram(options.bwrap, {"/usr/bin/bwrap", "/usr/local/bin/bwrap"});
  const fs::path directory = options.directory;
  toolbox.bin_ = directory / "toolbox" / "bin";
  toolbox.init_ = directory / "toolbox" / "sextant-init";
  const std::string stamp = Stamp(busybox) + Stamp(bash) + Stamp(options.nvidia_smi) +
                            StampOfBytes(EmbeddedInit()) + StampOfBytes(EmbeddedNvidiaSmi());
  std::error_code error;
  if (ReadAll(directory / "toolbox" / "stamp") != stamp) {
    // Built beside and put in place as a whole: a half-built toolbox never looks complete.
    const fs::path fresh = directory / "toolbox.new";
    fs::remove_all(fresh, error);
    RETURN_IF_ERROR(Fill(fresh / "bin", busybox, bash, options.nvidia_smi));
    RETURN_IF_ERROR(WriteFile(fresh / "sextant-init", EmbeddedInit(), fs::perms{0755}));
    RETURN_IF_ERROR(WriteFile(fresh / "stamp", stamp, fs::perms{0644}));
    fs::remove_all(directory / "toolbox", error);
    fs::rename(fresh, directory / "toolbox", error);
    if (error)
      return Fail(InternalError(fmt::format("put the toolbox in place: {}", error.message())));
  }
  for (const auto& entry : fs::directory_iterator(toolbox.bin_, error))
    toolbox.programs_.insert(entry.path().filename().string());
  return toolbox;
}

namespace {

// The file that a container path leads to on this machine, if a mount covers it.
struct Covered {
  bool covered = false;
  bool runs = false;
};
Covered InMounts(const ContainerSpec& spec, const std::string& path) {
  const Mount* best = nullptr;
  size_t best_size = 0;
  for (const Mount& mount : spec.mounts) {
    const std::string at = CleanPath(mount.container_path);
    const bool below = path == at || (path.starts_with(at) && path[at.size()] == '/');
    if (!at.empty() && below && at.size() >= best_size) {
      best = &mount;
      best_size = at.size();
    }
  }
  if (!best) return {};
  switch (best->kind) {
    case Mount::Kind::kTmpfs:
      return {true, false};
    case Mount::Kind::kFile:
      return {true, path.size() == best_size && (best->mode & 0111) != 0};
    case Mount::Kind::kHostPath:
      break;
  }
  std::string host = best->host_path;
  if (!best->sub_path.empty()) host += "/" + best->sub_path;
  host += path.substr(best_size);
  struct stat info{};
  return {true, stat(host.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 0111)};
}

}  // namespace

Toolbox::Program Toolbox::Resolve(const ContainerSpec& spec) const {
  if (spec.simulated) return {false, "the Pod asks to be simulated", ""};
  if (spec.argv.empty())
    return {false,
            fmt::format("no command is given and the image \"{}\" is not pulled", spec.image), ""};
  const std::string& name = spec.argv[0];
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(CleanPath(name.starts_with('/') ? name : spec.working_dir + "/" + name));
  } else {
    const std::string_view path = EnvValue(spec.env, "PATH", kDefaultPath);
    for (size_t at = 0; at <= path.size();) {
      const size_t end = std::min(path.find(':', at), path.size());
      candidates.push_back(CleanPath(fmt::format("{}/{}", path.substr(at, end - at), name)));
      at = end + 1;
    }
  }
  for (const std::string& candidate : candidates) {
    if (candidate.empty()) continue;
    const Covered covered = InMounts(spec, candidate);
    if (covered.runs) return {true, "", candidate};
    if (covered.covered) continue;
    const size_t slash = candidate.rfind('/');
    const std::string_view directory = std::string_view(candidate).substr(0, slash);
    if (std::ranges::find(kBinDirectories, directory) != kBinDirectories.end() &&
        Has(std::string_view(candidate).substr(slash + 1)))
      return {true, "", candidate};
  }
  return {false, fmt::format("the toolbox has no program \"{}\"", name), ""};
}

}  // namespace sextant::kubelet
