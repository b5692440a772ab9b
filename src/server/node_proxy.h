// Logs, exec, attach, port-forward and the proxy to a node (GET only): the API server's part is to
// find the node, check the request, and pass bytes between the client and the node's kubelet.
//
// exec, attach and port-forward: a WebSocket is passed on to the kubelet as messages, whatever
// protocol it speaks (port-forward: SPDY inside it); a SPDY upgrade as bytes. Create permission is
// asked for GET too, as in 1.35 and later.
#pragma once

#include <memory>

#include "net/http.h"
#include "server/node_dialer.h"
#include "server/pipeline.h"

namespace sextant::server {

class NodeProxy {
 public:
  NodeProxy(Pipeline& pipeline, NodeDialer* nodes) : pipeline_(pipeline), nodes_(nodes) {}

  // True if `op` names such a subresource.
  static bool Serves(const Operation& op);
  // Answers what Serves. The operation has been authenticated, not authorized.
  void Handle(const Operation& op, const net::Request& request,
              const std::shared_ptr<net::ResponseWriter>& writer);

  // A bounded log as one text, for LocalClient.
  void ReadLog(const Operation& op, std::string container, int64_t limit_bytes,
               std::move_only_function<void(Result<std::string>)> done);

 private:
  Status Serve(const Operation& op, const net::Request& request,
               const std::shared_ptr<net::ResponseWriter>& writer);
  Status ServeNode(const Operation& op, const net::Request& request,
                   const std::shared_ptr<net::ResponseWriter>& writer);

  Pipeline& pipeline_;
  NodeDialer* nodes_;
};

}  // namespace sextant::server
