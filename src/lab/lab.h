// A whole lab in this process: store, API server, scheduler, controllers and simulated nodes, put
// together and taken apart.
//
//   ASSIGN_OR_RETURN(auto lab, Lab::Start(config, {.directory = state}));
//   lab->access().server;            // "https://127.0.0.1:34567"
//   lab->WaitReady(seconds(60));     // nodes Ready with the GPUs they should show
//
// Threads: Start, Stop and the waits block and belong to the caller's thread; never call them from
// the lab's own loops. The destructor stops everything.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "lab/config.h"
#include "lab/pki.h"

namespace sextant::lab {

struct LabPaths {
  std::string directory;   // state: lab.db, nodes/...; must exist (a temporary one if ephemeral)
  bool ephemeral = false;  // the store is kept in memory only
};

// What a kubeconfig needs.
struct Access {
  std::string server;  // https URL
  std::string ca_pem;
  KeyAndCert admin;
};

class Lab {
 public:
  static Result<std::unique_ptr<Lab>> Start(LabConfig config, LabPaths paths);
  ~Lab();

  const LabConfig& config() const;
  const Access& access() const;
  // "bubblewrap", "simulated": how Pods run here, and why not better (may be empty).
  std::string runtime_level() const;
  std::string runtime_explanation() const;

  // Waits until every node is Ready and shows the GPUs that its pool says, or until `give_up`,
  // asked now and then, says so. An Error tells what is still missing.
  Status WaitReady(Duration timeout, const std::function<bool()>& give_up = {});
  // Runs when the lab cannot go on (the disk refuses): the text for the user. Called once, on a
  // loop of the lab.
  void OnFatal(std::function<void(Error)> callback);
  // Everything acknowledged is on disk afterwards.
  void Stop();

 private:
  struct Parts;
  explicit Lab(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sextant::lab
