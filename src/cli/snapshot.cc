// `snapshot save`, `snapshot restore`.
#include "lab/snapshot.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/process.h"

namespace sextant::cli {

int SnapshotSave(const std::string& name, const std::string& file) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto revision = lab::SaveSnapshot(*state, file);
  if (!revision) return Report(revision.error());
  fmt::print(stderr, "The lab {} as of revision {} is saved in {}\n", state->name(), *revision,
             file);
  return 0;
}

int SnapshotRestore(const std::string& file) {
  auto state = lab::RestoreSnapshot(file);
  if (!state) return Report(state.error());
  fmt::print(stderr, "The lab {} is restored from {}; `sextant start --name {}` brings it up\n",
             state->name(), file, state->name());
  return 0;
}

}  // namespace sextant::cli
