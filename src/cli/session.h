// A connection to one cluster for the length of one command, with calls that wait for their answer.
// One thread (the command's own).
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "client/blocking.h"
#include "client/remote_client.h"
#include "lab/state.h"
#include "net/io.h"

namespace sextant::cli {

class Session {
 public:
  explicit Session(client::RemoteOptions options);
  // The admin of a lab on this machine. Errors: the lab does not run.
  static Result<std::unique_ptr<Session>> ToLab(const lab::LabState& state);

  client::RemoteClient& client() { return client_; }
  client::Blocking& calls() { return calls_; }

 private:
  RealClock clock_;
  net::IoThread io_;
  EventLoop loop_;
  client::RemoteClient client_;
  client::Blocking calls_{client_};
};

}  // namespace sextant::cli
