#include "lab/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "api/schema.h"
#include "base/file.h"
#include "base/random.h"
#include "store/copy.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecord = "config.json";
constexpr std::string_view kCheckpoint = "kubelet_internal_checkpoint";
constexpr size_t kMaxCheckpoint = 16 << 20;
constexpr int kTries = 20;

// The device managers' files, by their place in the lab's folder.
Result<store::Extras> Checkpoints(const LabState& state) {
  store::Extras files;
  std::error_code error;
  for (const auto& node : fs::directory_iterator(state.file("nodes"), error)) {
    const std::string name =
        fmt::format("nodes/{}/{}", node.path().filename().string(), kCheckpoint);
    Result<std::string> text = ReadFile(state.file(name), kMaxCheckpoint);
    if (text) files.emplace(name, *std::move(text));
    if (!text && !text.error().Is("NotFound")) return Fail(std::move(text).error());
  }
  return files;
}

// Only what a snapshot has put there itself: no way out of the lab's folder.
bool IsOurs(std::string_view name) {
  const std::string suffix = fmt::format("/{}", kCheckpoint);
  if (!name.starts_with("nodes/") || !name.ends_with(suffix)) return false;
  name.remove_prefix(6);
  name.remove_suffix(std::min(name.size(), suffix.size()));
  return !name.empty() && name.find('/') == std::string_view::npos && name[0] != '.';
}

// Everything of the lab in a folder of its own.
Result<LabRecord> Unpack(const std::string& file, const std::string& folder) {
  RETURN_IF_ERROR(MakeDirectories(folder, 0700));
  ASSIGN_OR_RETURN(store::Extras extras,
                   store::UnpackCopy(file, folder + "/lab.db", &api::Registry::Builtin()));
  ASSIGN_OR_RETURN(LabRecord record, ParseRecord(extras[std::string(kRecord)]));
  RETURN_IF_ERROR(CheckLabName(record.config.name));
  for (const auto& [name, text] : extras) {
    const std::string path = folder + "/" + name;
    if (name != kRecord && !IsOurs(name))
      return Fail(UsageError(fmt::format("{} is no snapshot of a lab: it holds {}", file, name)));
    RETURN_IF_ERROR(MakeDirectories(fs::path(path).parent_path(), 0700));
    RETURN_IF_ERROR(WriteFileAtomic(path, text, 0600));
  }
  return record;
}

// One step: at any moment one of the two is there, whole.
Status Exchange(const std::string& one, const std::string& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return {};
  return Fail(FileError("exchange", other, errno));
}

// The lock of a lab that does not run, there or not.
Status LockStopped(LabState& state) {
  Status locked = state.Lock();
  if (locked || !state.running()) return locked;
  return Fail(UsageError(
      fmt::format("the lab {} is running: `sextant stop --name {}` it before its state is replaced",
                  state.name(), state.name())));
}

}  // namespace

Result<store::Revision> SaveSnapshot(const LabState& state, const std::string& file) {
  ASSIGN_OR_RETURN(const LabRecord record, state.Read());
  if (record.ephemeral) {
    return Fail(UsageError(fmt::format(
        "the lab {} is ephemeral: it keeps nothing that could be saved", state.name())));
  }
  // Who holds which card stands in files of their own: they must be of the same moment.
  ASSIGN_OR_RETURN(store::Extras before, Checkpoints(state));
  for (int i = 0; i < kTries; ++i) {
    store::Extras extras = before;
    extras.emplace(kRecord, SerialiseRecord(record));
    ASSIGN_OR_RETURN(const store::Revision revision,
                     store::CopyState(state.file("lab.db"), file, extras));
    ASSIGN_OR_RETURN(store::Extras after, Checkpoints(state));
    if (after == before) return revision;
    before = std::move(after);
  }
  std::error_code ignored;
  fs::remove(file, ignored);
  return Fail(
      UsageError(fmt::format("cards change hands in the lab {} faster than it can be saved: "
                             "`sextant stop --name {}` first",
                             state.name(), state.name())));
}

Result<LabState> RestoreSnapshot(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string home, StateHome());
  const std::string fresh = fmt::format("{}/labs/.restore-{:x}", home, RandomSeed());
  std::error_code ignored;
  const auto restore = [&]() -> Result<LabState> {
    ASSIGN_OR_RETURN(const LabRecord record, Unpack(file, fresh));
    ASSIGN_OR_RETURN(LabState state, LabState::Of(record.config.name));
    RETURN_IF_ERROR(LockStopped(state));
    if (Status exchanged = Exchange(fresh, state.directory()); !exchanged) {
      if (!state.exists()) (void)state.Remove();  // the lock made the folder
      return Fail(std::move(exchanged).error());
    }
    return state;
  };
  Result<LabState> state = restore();
  fs::remove_all(fresh, ignored);  // what was unpacked, or what stood there before
  return state;
}

}  // namespace sextant::lab
