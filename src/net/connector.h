// Making a connection: name lookup, connect, TLS handshake. Internal to net.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.h"

namespace sextant::net {

struct ConnectPlan {
  // Tried in turn. If empty, `host` and `port` are looked up.
  std::vector<Endpoint> to;
  std::string host;
  uint16_t port = 0;
  std::function<SslPtr()> tls;  // not set: plain
  Duration timeout{0};          // of all of it
};

struct Connected {
  std::shared_ptr<Transport> transport;  // open; `done` gives it an owner before it returns
  Endpoint to;
};

// `done` runs on the I/O thread; any thread may call.
void Connect(IoThread& io, ConnectPlan plan, std::move_only_function<void(Result<Connected>)> done);

}  // namespace sextant::net
