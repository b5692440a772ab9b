// The streaming parts of the kubelets' API: a container's log as an answer in pieces, and exec,
// attach and port-forward over WebSocket or SPDY.
//
// Threads: called on the loop. Streams live by the callbacks that hold them; a client that goes
// away ends them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kubelet/kubelet.h"
#include "kubelet/log_reader.h"
#include "net/http.h"
#include "net/io.h"
#include "net/stream.h"

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
// Speaks v5.channel.k8s.io or v4 over WebSocket, v4 over SPDY.
void ServeStream(NodeRef node, Loop& loop, net::IoThread& io, StreamRequest stream,
                 const net::Request& request, std::shared_ptr<net::ResponseWriter> writer);

// Whether the client asks to speak SPDY/3.1 after an HTTP upgrade, as kubectl did before
// WebSockets.
bool IsSpdyUpgrade(const net::Request& request);
// Whether it asks for SPDY/3.1 carried in a WebSocket.
bool IsSpdyTunnel(const net::Request& request);
// Upgrades to SPDY in one of the two ways and agrees on `protocol`; a client that does not offer it
// is refused. `done` gets the bytes on the I/O thread of the connection.
void UpgradeToSpdy(const net::Request& request, std::string_view protocol,
                   const std::shared_ptr<net::ResponseWriter>& writer,
                   std::function<void(std::shared_ptr<net::ByteStream>)> done);

// A Pod that ports are forwarded to.
struct ForwardTarget {
  NodeRef node;
  Loop* loop;
  net::IoThread* io;  // of the clients' connections
  std::string sandbox;

  // Connects to a port in the Pod; `done` runs on `io`, like the stream.
  void Dial(uint16_t port,
            std::function<void(Result<std::shared_ptr<net::ByteStream>>)> done) const;
  // What the client is told when that fails.
  std::string Failure(uint16_t port, const Error& error) const;
};

// Port-forward: over SPDY (portforward.k8s.io), where every connection to a port is a pair of
// streams, or over a WebSocket with two channels a port (v4.channel.k8s.io), one connection each.
void ServePortForward(ForwardTarget target, const std::vector<uint16_t>& ports,
                      const net::Request& request, std::shared_ptr<net::ResponseWriter> writer);
void ForwardOverSpdy(ForwardTarget target, std::shared_ptr<net::ByteStream> client);

void SendText(net::ResponseWriter& writer, int status, std::string text);

}  // namespace sextant::kubelet
