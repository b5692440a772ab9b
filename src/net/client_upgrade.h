// Asking a server for a WebSocket. Internal to net.
#pragma once

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
  std::vector<std::string> protocols;
  Duration headers_timeout{0};
  size_t max_header_bytes = 0;
};

// On a connection of its own. Any thread; `done` runs on `results`.
std::shared_ptr<Upgrade> StartUpgrade(IoThread& io, Executor& results, UpgradePlan plan,
                                      HttpClient::WebSocketDone done);

}  // namespace sextant::net
