// How the server reaches a node's kubelet: over its HTTPS API, simulated and real nodes alike. In a
// lab all nodes share one loopback listener and are told apart by TLS server name.
// Threads: any; callbacks on the I/O thread of the connection.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/client.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/websocket.h"

namespace sextant::server {

class NodeDialer {
 public:
  virtual ~NodeDialer() = default;

  struct Answer {
    std::function<void(int status, net::Headers headers)> on_headers;
    std::function<void(std::string piece)> on_data;
    std::function<void(Status)> on_done;  // once, last
  };
  // A GET whose answer streams (logs). The returned task cancels it.
  virtual Task Get(const std::string& node, const std::string& path_and_query, Answer answer) = 0;
  // A WebSocket to the kubelet (exec, attach, port-forward) that offers `protocols`.
  virtual void OpenWebSocket(
      const std::string& node, const std::string& path_and_query,
      std::vector<std::string> protocols,
      std::move_only_function<void(Result<std::shared_ptr<net::WebSocket>>)> done) = 0;
  // A connection to the kubelet that goes on as something else: SPDY, of older clients.
  virtual void OpenUpgrade(const std::string& node, net::UpgradeRequest request,
                           net::HttpClient::UpgradeDone done) = 0;
};

}  // namespace sextant::server
