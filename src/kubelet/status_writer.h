// Brings one Pod's status to the API: one patch at a time, the newest status always wins, failures
// are tried again. And when all is told of a Pod that is to go: deletes it.
// Threads: the client's loop. Source: pkg/kubelet/status/status_manager.go.
#pragma once

#include <functional>
#include <memory>

#include "api/document.h"
#include "client/client.h"

namespace sextant::kubelet {

class StatusWriter {
 public:
  StatusWriter(client::Client& client, const api::Object& pod);
  ~StatusWriter();

  // Nothing happens if it is what was told last.
  void Set(api::Object status);
  // What was told last, or what the API showed at first.
  api::Value last() const { return told_ ? told_.root() : first_["status"]; }
  // Deletes the Pod for good once everything set before is written. Once is enough.
  void DeleteWhenTold();
  // The Pod is gone from the API: nothing more is to be told.
  void Close();

 private:
  void Send();
  void OnSent(Result<api::Object> result);
  void Delete();
  void Again(void (StatusWriter::*what)());

  client::Client& client_;
  const api::Object first_;
  const client::ObjectName name_;
  const std::string uid_;
  api::Object told_;
  api::Object next_;
  bool in_flight_ = false;
  bool delete_wanted_ = false;
  bool closed_ = false;
  int failures_ = 0;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::kubelet
