// `snapshot save`, `snapshot restore`.
#include "lab/snapshot.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/process.h"

namespace sextant::cli {

namespace {

// Named before anything is begun: the errors of the copy speak of temporary files.
Status CheckFile(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (file.empty()) return Fail(UsageError("snapshot: name a file"));
  if (fs::is_directory(file, error)) {
    return Fail(UsageError(fmt::format("snapshot {}: is a folder, name a file in it", file)));
  }
  const fs::path folder = fs::path(file).parent_path();
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  return Fail(UsageError(fmt::format("snapshot {}: there is no folder {}", file, folder.string())));
}

}  // namespace

int SnapshotSave(const std::string& name, const std::string& file) {
  if (auto good = CheckFile(file); !good) return Report(good.error());
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto revision = lab::SaveSnapshot(*state, file);
  if (!revision) return Report(revision.error());
  fmt::print(stderr, "The lab {} as of revision {} is saved in {}\n", state->name(), *revision,
             file);
  return 0;
}

int SnapshotRestore(const std::string& file) {
  if (auto good = CheckFile(file); !good) return Report(good.error());
  if (std::error_code error; !std::filesystem::exists(file, error)) {
    return Report(UsageError(fmt::format("snapshot {}: there is no such file", file)));
  }
  auto state = lab::RestoreSnapshot(file);
  if (!state) return Report(state.error());
  fmt::print(stderr, "The lab {} is restored from {}; `sextant start --name {}` brings it up\n",
             state->name(), file, state->name());
  return 0;
}

}  // namespace sextant::cli
