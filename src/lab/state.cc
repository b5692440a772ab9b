#include "lab/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "api/json.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"

namespace sextant::lab {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kMaxFile = 16 << 20;
constexpr size_t kMaxName = 63;
constexpr Duration kDyingLimit = std::chrono::seconds(10);
constexpr Duration kNamelessLimit = std::chrono::milliseconds(200);
constexpr int kLockTries = 100;
constexpr useconds_t kDyingLookUs = 2'000;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr std::pair<RuntimeMode, std::string_view> kModes[] = {
    {RuntimeMode::kAuto, "auto"},
    {RuntimeMode::kProcess, "process"},
    {RuntimeMode::kSimulated, "simulated"}};

void SetNode(Mut out, const NodeConfig& node) {
  out.Set("name", node.name);
  out.Set("controlPlane", node.control_plane);
  out.Set("image", node.image);
  out["labels"].SetMap();
  for (const auto& [key, value] : node.labels) out["labels"].Set(key, value);
}

NodeConfig ReadNode(Value node) {
  NodeConfig out;
  out.name = node["name"].AsString();
  out.control_plane = node["controlPlane"].AsBool();
  out.image = node["image"].AsString();
  for (auto [key, value] : node["labels"].members()) {
    out.labels[std::string(key)] = value.AsString();
  }
  return out;
}

Result<Object> ReadObject(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFile));
  auto object = api::ParseJson(text);
  if (!object) {
    return Fail(UsageError(fmt::format("{} is damaged ({}); remove the lab with `sextant down`",
                                       path, object.error().message)));
  }
  return object;
}

// Whether the process is gone or on its way out: it may hold its files a while longer, since the
// kernel takes its memory away first (do_exit).
bool Dying(pid_t pid) {
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING, include/linux/sched.h
  constexpr unsigned long kKilled = 1UL << (SIGKILL - 1);
  auto stat = ReadFile(fmt::format("/proc/{}/stat", pid), kMaxFile);
  if (!stat) return true;
  // "pid (name) state ppid pgrp session tty tpgid flags ..."; the name may hold anything.
  char state = 0;
  unsigned long flags = 0;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos ||
      std::sscanf(stat->c_str() + name_end + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) !=
          2) {
    return false;
  }
  if (state == 'Z' || state == 'X' || (flags & kExiting) != 0) return true;
  auto status = ReadFile(fmt::format("/proc/{}/status", pid), kMaxFile);
  if (!status) return true;
  for (const char* pending : {"\nSigPnd:", "\nShdPnd:"}) {
    const size_t at = status->find(pending);
    if (at != std::string::npos &&
        (std::strtoul(status->c_str() + at + std::strlen(pending), nullptr, 16) & kKilled) != 0) {
      return true;
    }
  }
  return false;
}

// Whom the lock's file names, 0 for nobody.
pid_t NamedIn(int fd) {
  char text[24] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  const long pid = n > 0 ? std::strtol(text, nullptr, 10) : 0;
  return pid > 0 && pid <= std::numeric_limits<pid_t>::max() ? static_cast<pid_t>(pid) : 0;
}

// Takes the lock (LOCK_EX, or LOCK_SH to look), waiting for a holder that is dying. The lock's file
// names its holder; where it names nobody, somebody only looks or is about to write its number.
bool TakeLock(int fd, int how) {
  const RealClock clock;
  const Duration start = clock.Monotonic();
  while (::flock(fd, how | LOCK_NB) != 0) {
    const pid_t pid = NamedIn(fd);
    if (pid > 0 && !Dying(pid)) return false;
    if (clock.Monotonic() - start > (pid > 0 ? kDyingLimit : kNamelessLimit)) return false;
    ::usleep(kDyingLookUs);
  }
  return true;
}

}  // namespace

std::string SerialiseRecord(const LabRecord& record) {
  Editor edit;
  Mut root = edit.Root();
  const LabConfig& config = record.config;
  root.Set("version", 1);
  root.Set("name", config.name);
  for (const NodeConfig& node : config.nodes) SetNode(root["nodes"].Append(), node);
  root["pools"].SetList();
  for (const PoolConfig& pool : config.pools) {
    Mut out = root["pools"].Append();
    out.Set("name", pool.name);
    out.Set("model", pool.model);
    out.Set("count", pool.count);
    out.Set("allocation", pool.allocation);
    out.Set("spec", pool.spec);
  }
  root.Set("listenAddress", config.listen_address);
  root.Set("port", config.port);
  for (const auto& [mode, name] : kModes)
    if (mode == config.runtime) root.Set("runtime", name);
  for (const auto& [gate, on] : config.feature_gates) root["featureGates"].Set(gate, on);
  for (const auto& [name, on] : config.runtime_config) root["runtimeConfig"].Set(name, on);
  root.Set("ephemeral", record.ephemeral);
  root.Set("context", record.context);
  root.Set("kubeconfig", record.kubeconfig);
  const Object object = std::move(edit).Finish();
  return api::ToJson(object.root(), {.indent = 2, .newline = true});
}

Result<LabRecord> ParseRecord(std::string_view json) {
  ASSIGN_OR_RETURN(const Object object, api::ParseJson(json));
  if (object["version"].AsInt() != 1) {
    return Fail(UsageError("the lab's state was made by a newer sextant; use that one"));
  }
  LabRecord record;
  LabConfig& config = record.config;
  config.name = object["name"].AsString();
  for (Value node : object["nodes"].items()) config.nodes.push_back(ReadNode(node));
  for (Value pool : object["pools"].items()) {
    config.pools.push_back({.name = std::string(pool["name"].AsString()),
                            .model = std::string(pool["model"].AsString()),
                            .count = static_cast<int>(pool["count"].AsInt()),
                            .allocation = std::string(pool["allocation"].AsString("plugin")),
                            .spec = std::string(pool["spec"].AsString())});
  }
  config.listen_address = object["listenAddress"].AsString("127.0.0.1");
  config.port = static_cast<int>(object["port"].AsInt());
  for (const auto& [mode, name] : kModes)
    if (object["runtime"].AsString() == name) config.runtime = mode;
  for (auto [gate, on] : object["featureGates"].members()) {
    config.feature_gates[std::string(gate)] = on.AsBool();
  }
  for (auto [name, on] : object["runtimeConfig"].members()) {
    config.runtime_config[std::string(name)] = on.AsString();
  }
  record.ephemeral = object["ephemeral"].AsBool();
  record.context = object["context"].AsString();
  record.kubeconfig = object["kubeconfig"].AsString();
  return record;
}

Result<std::string> StateHome() {
  if (std::string home = Env("SEXTANT_HOME"); !home.empty()) return home;
  if (std::string state = Env("XDG_STATE_HOME"); !state.empty()) return state + "/sextant";
  if (std::string home = Env("HOME"); !home.empty()) return home + "/.local/state/sextant";
  return Fail(UsageError("neither SEXTANT_HOME nor HOME is set: say where labs keep their state"));
}

Status CheckLabName(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), good)) {
    return Fail(UsageError(fmt::format(
        "'{}' is not a valid cluster name, cluster names must match `^[a-z0-9.-]+$`", name)));
  }
  if (name.size() > kMaxName || name.front() == '.' || name.front() == '-') {
    return Fail(
        UsageError(fmt::format("'{}' is not a valid cluster name, cluster names begin with "
                               "a letter or a digit and have at most {} characters",
                               name, kMaxName)));
  }
  return {};
}

LabState::LabState(std::string name, std::string directory)
    : name_(std::move(name)), directory_(std::move(directory)) {}

Result<LabState> LabState::Of(const std::string& name) {
  RETURN_IF_ERROR(CheckLabName(name));
  ASSIGN_OR_RETURN(const std::string home, StateHome());
  return LabState(name, fmt::format("{}/labs/{}", home, name));
}

Result<std::vector<std::string>> LabState::List() {
  ASSIGN_OR_RETURN(const std::string home, StateHome());
  std::vector<std::string> names;
  DIR* directory = ::opendir((home + "/labs").c_str());
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.front() == '.') continue;
    auto state = Of(name);
    if (state && state->exists()) names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool LabState::exists() const { return ::access(file("config.json").c_str(), F_OK) == 0; }

std::optional<pid_t> LabState::Holder() const {
  const int fd = ::open(file("lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::optional<pid_t> holder;
  if (!TakeLock(fd, LOCK_SH)) holder = NamedIn(fd);
  ::close(fd);
  return holder;
}

bool LabState::IsLockFile(int fd) const {
  struct stat opened;
  struct stat there;
  return ::fstat(fd, &opened) == 0 && ::stat(file("lock").c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

void LabState::Inherit(int fd) {
  if (lock_fd_ >= 0 || !IsLockFile(fd)) return;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  lock_fd_ = fd;
}

Status LabState::Lock() {
  for (int i = 0; lock_fd_ < 0; ++i) {
    RETURN_IF_ERROR(MakeDirectories(directory_, 0700));
    const int fd = ::open(file("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      if (errno == ENOENT && i < kLockTries) continue;  // the folder has just been removed
      return Fail(FileError("open", file("lock"), errno));
    }
    if (TakeLock(fd, LOCK_EX)) {
      if (IsLockFile(fd)) {
        lock_fd_ = fd;
        break;
      }
    } else if (IsLockFile(fd)) {
      ::close(fd);
      return Fail(UsageError(fmt::format("the lab {} is running already", name_)));
    }
    ::close(fd);  // of a folder that has been removed meanwhile
  }
  if (!TakeLock(lock_fd_, LOCK_EX)) {  // of one that was inherited: taken already
    return Fail(UsageError(fmt::format("the lab {} is running already", name_)));
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock_fd_, 0) != 0 ||
      ::pwrite(lock_fd_, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Fail(FileError("write", file("lock"), errno));
  }
  return {};
}

Status LabState::Write(const LabRecord& record) const {
  RETURN_IF_ERROR(MakeDirectories(directory_, 0700));
  return WriteFileAtomic(file("config.json"), SerialiseRecord(record), 0600);
}

Result<LabRecord> LabState::Read() const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file("config.json"), kMaxFile));
  auto record = ParseRecord(text);
  if (!record) {
    return Fail(UsageError(fmt::format("{}: {}", file("config.json"), record.error().message)));
  }
  return record;
}

Status LabState::WriteStatus(const LabStatus& status) const {
  Editor edit;
  edit.Root().Set("pid", status.pid);
  edit.Root().Set("server", status.server);
  edit.Root().Set("runtime", status.runtime);
  edit.Root().Set("explanation", status.explanation);
  const Object object = std::move(edit).Finish();
  return WriteFileAtomic(file("status.json"), api::ToJson(object.root(), {.newline = true}), 0600);
}

Result<LabStatus> LabState::ReadStatus() const {
  ASSIGN_OR_RETURN(const Object object, ReadObject(file("status.json")));
  return LabStatus{object["pid"].AsInt(), std::string(object["server"].AsString()),
                   std::string(object["runtime"].AsString()),
                   std::string(object["explanation"].AsString())};
}

Status LabState::Remove() {
  const int fd = std::exchange(lock_fd_, -1);
  Status removed;
  if (fd < 0 || IsLockFile(fd)) removed = RemoveFolder();
  if (fd >= 0) ::close(fd);
  return removed;
}

// Out of the way in one step: whoever makes the lab anew meanwhile loses nothing.
Status LabState::RemoveFolder() const {
  const std::filesystem::path folder = directory_;
  const std::string away = folder.parent_path() / fmt::format(".removed-{:x}", RandomSeed());
  std::error_code error;
  std::filesystem::rename(folder, away, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (!error) std::filesystem::remove_all(away, error);
  if (error) return Fail(FileError("remove", directory_, error.value()));
  return {};
}

}  // namespace sextant::lab
