// An HTTP client for one origin: HTTP/2 on one connection when the server agrees by ALPN, else
// HTTP/1.1 with kept-alive connections; unix sockets; WebSockets.
//
//   HttpClient client(io, loop, {.base_url = "https://127.0.0.1:6443", .tls = tls});
//   client.Do({.target = "/version"}, [](Result<ClientResponse> r) { ... });
//   auto call = client.Stream({.target = "/api/v1/pods?watch=1"}, {.on_data = ...});
//
// Threads: every method from any thread. Callbacks are posted to `results` (which must run tasks in
// order, such as a Loop, and outlive the calls), never run inline. An HTTP answer of any status is
// a result; an Error with code 0 means that no answer came (TransportError). Requests are not
// repeated, except when a reused connection turned out to be closed before any of it was handled.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/status.h"
#include "net/http.h"
#include "net/io.h"
#include "net/tls.h"
#include "net/websocket.h"

namespace sextant::net {

struct ClientOptions {
  // "https://host:port", "http://...", "unix:///path.sock"; a path in it is a prefix.
  std::string base_url;
  ClientTls tls;
  // Where to connect in place of the URL's host and port ("127.0.0.1:10250"); the URL's host still
  // is the TLS server name.
  std::string connect_to;
  Duration connect_timeout = std::chrono::seconds(10);  // lookup, connect and TLS handshake
  Duration headers_timeout = std::chrono::seconds(60);  // from sending to the answer's headers
  size_t max_body = 256 << 20;                          // of a whole answer (Do)
  size_t max_header_bytes = 64 << 10;
  int max_connections = 16;  // HTTP/1.1: requests beyond that wait
  bool http2 = true;         // offer h2 by ALPN
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";  // after the base URL's path, with the query
  Headers headers;
  Buffer body;
  Duration timeout{0};  // of the whole call; 0: none
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

// A running call. Dropping it does not cancel.
class Call {
 public:
  virtual ~Call() = default;
  // Gives the call up. Called from a task on `results`, no further callback runs.
  virtual void Cancel() = 0;
};

struct StreamCallbacks {
  std::move_only_function<void(int status, const Headers& headers)> on_headers;
  std::move_only_function<void(std::string bytes)> on_data;
  std::move_only_function<void(Status end)> on_done;  // last, once; an Error if broken off
};

struct WebSocketRequest {
  std::string target = "/";
  Headers headers;
  std::vector<std::string> protocols;
};

// A connection that is to speak something else: SPDY.
struct UpgradeRequest {
  std::string method = "POST";
  std::string target = "/";
  Headers headers;
  std::string to;  // "SPDY/3.1"
};
struct Upgraded {
  Headers headers;  // of the answer
  std::shared_ptr<ByteStream> stream;
};

// No HTTP answer: code 0, no reason.
Error TransportError(std::string message);
inline bool IsTransportError(const Error& error) { return error.code == 0; }

class HttpClient {
 public:
  using Done = std::move_only_function<void(Result<ClientResponse>)>;
  // The WebSocket's handlers run on the I/O thread; `done` on `results`. An answer other than 101
  // is an Error with its status as code and its body as message.
  using WebSocketDone = std::move_only_function<void(Result<std::shared_ptr<WebSocket>>)>;
  using UpgradeDone = std::move_only_function<void(Result<Upgraded>)>;  // likewise

  HttpClient(IoThread& io, Executor& results, ClientOptions options);
  ~HttpClient();  // calls still open end with an Error
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  std::shared_ptr<Call> Do(ClientRequest request, Done done);
  std::shared_ptr<Call> Stream(ClientRequest request, StreamCallbacks callbacks);
  std::shared_ptr<Call> OpenWebSocket(WebSocketRequest request, WebSocketDone done);
  std::shared_ptr<Call> OpenUpgrade(UpgradeRequest request, UpgradeDone done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sextant::net
