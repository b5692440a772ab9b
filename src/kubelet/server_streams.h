// The streaming parts of the kubelets' API: a container's log as an answer in pieces, and exec,
// attach and port-forward as WebSockets.
//
// Threads: called on the loop. Streams live by the callbacks that hold them; a client that goes
// away ends them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kubelet/kubelet.h"
#include "kubelet/log_reader.h"
#include "net/http.h"
#include "net/io.h"

namespace sextant::kubelet {

// A kubelet that may go away: empty then.
using NodeRef = std::weak_ptr<Kubelet*>;

using Query = std::vector<std::pair<std::string, std::string>>;

// The last value of `name`; empty if there is none.
std::string QueryValue(const Query& query, std::string_view name);
// As Go's ParameterCodec reads a bool: there, and neither "false" nor "0".
bool QueryFlag(const Query& query, std::string_view name);

Result<LogOptions> ReadLogOptions(const Query& query);

struct LogRequest {
  std::string ns;
  std::string pod;
  std::string container;
  bool previous = false;
  LogOptions options;
};
void ServeLog(Kubelet& kubelet, const NodeRef& node, LogRequest request,
              std::shared_ptr<net::ResponseWriter> writer);

struct StreamRequest {
  bool attach = false;
  std::string container_id;
  std::vector<std::string> argv;
  bool tty = false;
  bool use_stdin = false;
  bool use_stdout = false;
  bool use_stderr = false;
};
// Speaks v5.channel.k8s.io or v4: `protocols` are those that the client offers.
void ServeStream(NodeRef node, Loop& loop, StreamRequest request,
                 const std::vector<std::string>& protocols,
                 std::shared_ptr<net::ResponseWriter> writer);

// The WebSocket form of port-forward: two channels a port, v4.channel.k8s.io.
void ServePortForward(NodeRef node, Loop& loop, net::IoThread& io, std::string sandbox,
                      std::vector<uint16_t> ports, const std::vector<std::string>& protocols,
                      std::shared_ptr<net::ResponseWriter> writer);

void SendText(net::ResponseWriter& writer, int status, std::string text);

}  // namespace sextant::kubelet
