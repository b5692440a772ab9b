// Where labs keep their state: $SEXTANT_HOME, else $XDG_STATE_HOME/sextant, else
// ~/.local/state/sextant. One folder a lab:
//
//   labs/<name>/config.json   what it is made of (LabConfig and how it was started)
//               lab.db        its objects (SQLite)
//               lock          held by the process that runs it, whose number stands in it
//               status.json   pid, server: of that process
//               admin.kubeconfig, lab.log, nodes/, runtime/
//
// Blocking file work; CLI threads only. Errors: sentences for a person.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/config.h"

namespace sextant::lab {

// A lab as it was asked for, beyond what it is made of.
struct LabRecord {
  LabConfig config;
  bool ephemeral = false;
  std::string context;     // name in the kubeconfig: "kind-gpu-lab"
  std::string kubeconfig;  // file given by --kubeconfig; empty: the usual one
};

struct LabStatus {
  int64_t pid = 0;
  std::string server;
  std::string runtime;
  std::string explanation;
};

Result<std::string> StateHome();
// Cluster names as kind takes them: [a-z0-9.-]+. Of such a name a lab can be found; whether one can
// be made is CheckNodeNames' to say.
Status CheckLabName(const std::string& name);

class LabState {
 public:
  static Result<LabState> Of(const std::string& name);
  static Result<std::vector<std::string>> List();

  const std::string& directory() const { return directory_; }
  const std::string& name() const { return name_; }
  bool exists() const;  // there is a config.json
  // The process that holds the lock and is not about to die; 0 while it has not yet written its
  // number. Nothing: the lab does not run.
  std::optional<pid_t> Holder() const;
  bool running() const { return Holder().has_value(); }
  std::string file(std::string_view name) const { return directory_ + "/" + std::string(name); }

  Status Write(const LabRecord& record) const;
  Result<LabRecord> Read() const;
  Status WriteStatus(const LabStatus& status) const;
  Result<LabStatus> ReadStatus() const;
  // Takes the lock for this process's life, or writes its number where it has it; an Error if
  // somebody else has it. Makes the folder if need be.
  Status Lock();
  // The lock that Lock has taken, for a child to inherit; -1: none.
  int lock_fd() const { return lock_fd_; }
  // The lock that the process that started this one has taken, if `fd` is that.
  void Inherit(int fd);
  // The folder and all in it, and gives up the lock. Who has locked it removes that folder only,
  // never one that another process has made since.
  Status Remove();

 private:
  LabState(std::string name, std::string directory);
  bool IsLockFile(int fd) const;
  Status RemoveFolder() const;
  std::string name_;
  std::string directory_;
  int lock_fd_ = -1;  // kept open until the process ends
};

// For tests: LabRecord as the JSON of config.json, and back.
std::string SerialiseRecord(const LabRecord& record);
Result<LabRecord> ParseRecord(std::string_view json);

}  // namespace sextant::lab
