// One call of an HttpClient. Internal to net.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "net/client.h"
#include "net/session.h"

namespace sextant::net {

class ClientConnection;

// Lives on the I/O thread; callbacks are posted to `results`.
class CallState : public Call, public std::enable_shared_from_this<CallState> {
 public:
  CallState(ClientRequest r, Executor& results) : request(std::move(r)), results_(results) {}

  // Any thread.
  void Cancel() override {
    cancelled_ = true;
    if (on_cancel) on_cancel(shared_from_this());
  }
  bool cancelled() const { return cancelled_.load(); }

  // The answer as it comes in; each returns how many body bytes are used up already.
  void OnHeaders(int status, Headers headers);
  size_t OnData(std::string_view bytes);
  // Ends the call once; later calls do nothing.
  void Finish(Status status);
  bool finished() const { return finished_; }
  bool answered() const { return answered_; }

  const ClientRequest request;
  // Set before the call is handed on and then constant.
  bool whole = false;
  size_t max_body = 0;
  HttpClient::Done done;      // whole
  StreamCallbacks callbacks;  // not whole
  std::function<void(std::shared_ptr<CallState>)> on_cancel;
  std::function<void(size_t)> on_consumed;  // body bytes a callback is done with; any thread
  // I/O thread.
  std::weak_ptr<ClientConnection> connection;
  StreamId stream = 0;
  int attempts = 0;
  TimerId headers_timer = 0;
  TimerId timeout_timer = 0;

 private:
  Executor& results_;
  std::atomic<bool> cancelled_{false};
  bool answered_ = false;
  bool finished_ = false;
  ClientResponse response_;
  Status failure_;
};

}  // namespace sextant::net
