// The process of a lab as a child of ours, so that it can be killed at any moment: the program's
// own `sextant __lab`, which `sextant start` runs too.
//
// Threads: one. Errors: sentences for a person, with the end of the lab's log.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/remote_client.h"

namespace sextant::crash {

struct Place {
  std::string program;    // the sextant to test
  std::string directory;  // of everything that this run makes
  std::string lab;        // its name

  std::string state() const { return directory + "/home/labs/" + lab; }
};

// Runs a command of the program to its end. An Error carries what it printed.
Status RunCommand(const Place& place, std::vector<std::string> arguments);

class LabProcess {
 public:
  static Result<LabProcess> Spawn(const Place& place);
  LabProcess(LabProcess&& other) noexcept;
  LabProcess& operator=(LabProcess&&) = delete;
  ~LabProcess();  // kills

  // Waits until it serves.
  Result<client::RemoteOptions> Access(Duration limit);
  // kill -9, and gone. An Error if it had ended by itself.
  Status Kill();

 private:
  LabProcess(const Place& place, pid_t pid, int report)
      : place_(&place), pid_(pid), report_(report) {}

  const Place* place_;
  pid_t pid_ = -1;
  int report_ = -1;  // the lab tells here how it can be reached
};

}  // namespace sextant::crash
