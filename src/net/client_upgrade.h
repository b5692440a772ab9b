// Asking a server to turn a connection into something else than HTTP. Internal to net.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/client.h"
#include "net/connector.h"
#include "net/session.h"

namespace sextant::net {

class Upgrade : public Call {
 public:
  // I/O thread, if the client goes before the answer has come.
  virtual void GiveUp(Error error) = 0;
};

struct UpgradePlan {
  ConnectPlan connect;
  ClientHead head;
  std::string to;  // the value of Upgrade: "websocket", "SPDY/3.1"
  // Why an answer of 101 is no good; may be empty.
  std::function<Status(const Headers&)> check;
  Duration headers_timeout{0};
  size_t max_header_bytes = 0;
};

// On a connection of its own. Any thread; `done` runs on `results`.
std::shared_ptr<Upgrade> StartUpgrade(IoThread& io, Executor& results, UpgradePlan plan,
                                      HttpClient::UpgradeDone done);

// The same for a WebSocket that offers `protocols`.
std::shared_ptr<Upgrade> StartWebSocket(IoThread& io, Executor& results, UpgradePlan plan,
                                        const std::vector<std::string>& protocols,
                                        HttpClient::WebSocketDone done);

}  // namespace sextant::net
