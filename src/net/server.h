// An HTTP server: HTTP/2 and HTTP/1.1 over TLS (by ALPN; without ALPN HTTP/1.1), HTTP/1.1 over
// plain TCP and unix sockets (HTTP/2 there too if the client starts with its preface).
//
//   ServerOptions options{.listen = {.address = "127.0.0.1", .port = 6443}, .tls = tls};
//   ASSIGN_OR_RETURN(auto server, Server::Start({&io}, options, handler));
//   server->endpoint().port;   // the real one if 0 was asked for
//   server->Stop(seconds(5));
//
// Threads: the handler runs on an I/O thread and must hand its work on at once. Server's methods
// may be called from any thread but an I/O thread of its own (Stop waits for them).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/http.h"
#include "net/io.h"
#include "net/tls.h"

namespace sextant::net {

using Handler = std::function<void(Request, std::shared_ptr<ResponseWriter>)>;

struct ServerLimits {
  // kube-apiserver's own: MaxRequestBodyBytes is 3 MiB (apiserver pkg/server/config.go).
  size_t max_body = 3 << 20;
  size_t max_header_bytes = 64 << 10;
  uint32_t max_streams = 250;          // side by side on one HTTP/2 connection
  size_t max_stream_buffer = 4 << 20;  // ResponseWriter::Write's bound
  int max_connections = 10'000;        // further ones are closed at once
  // A handshake or the headers of a request may take this long; so may a pause within a body.
  Duration header_timeout = std::chrono::seconds(32);
  // A connection without a request is closed after this.
  Duration idle_timeout = std::chrono::seconds(90);
  // A client that takes nothing of what is to be sent for this long is dropped.
  Duration write_timeout = std::chrono::seconds(60);
};

// What an answer carries that net itself gives (400 for a bad message, 408, 413, 431 ...).
struct ErrorAnswer {
  Headers headers;
  std::string body;
};
using ErrorRenderer = std::function<ErrorAnswer(const Error&)>;
// "400 Bad Request: missing required Host header" as plain text, the form of Go's net/http, on
// which Kubernetes' servers stand.
ErrorAnswer PlainError(const Error& error);

struct ServerOptions {
  Endpoint listen;  // port 0: any free port; a path: a unix socket of mode 0600
  std::optional<ServerTls> tls;
  ServerLimits limits;
  ErrorRenderer render_error = PlainError;
};

struct ServerStats {
  int connections = 0;
  uint64_t connections_total = 0;
};

class Server {
 public:
  // Binds and listens. Connections are spread over `threads` (at least one; they must outlive the
  // Server). A port in use is an Error that names the address and what to do.
  static Result<std::unique_ptr<Server>> Start(std::vector<IoThread*> threads,
                                               ServerOptions options, Handler handler);
  virtual ~Server() = default;  // Stop(0)
  virtual const Endpoint& endpoint() const = 0;
  // Stops listening, tells clients (GOAWAY, connection: close), waits up to `grace` for requests
  // to end, then closes what is left. Idempotent.
  virtual void Stop(Duration grace) = 0;
  virtual ServerStats stats() const = 0;
};

}  // namespace sextant::net
