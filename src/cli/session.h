// A connection to one cluster for the length of one command, with calls that wait for their answer.
// One thread (the command's own).
#pragma once

#include <future>
#include <memory>
#include <string>

#include "base/executor.h"
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
  Loop& loop() { return loop_; }

  Result<api::Object> Get(client::Gvr gvr, client::ObjectName name);
  Result<client::List> List(client::Gvr gvr, client::ListOptions options = {});
  Result<api::Object> Create(client::Gvr gvr, client::ObjectName name, api::Object object);
  Result<api::Object> Patch(client::Gvr gvr, client::ObjectName name, api::Object merge_patch);
  Result<api::Object> Delete(client::Gvr gvr, client::ObjectName name);
  Result<std::string> GetRaw(std::string path);

 private:
  template <typename T, typename F>
  Result<T> Wait(F call);

  RealClock clock_;
  net::IoThread io_;
  EventLoop loop_;
  client::RemoteClient client_;
};

}  // namespace sextant::cli
