// One HTTP request over a socket in a Pod, for probes: HTTP/1.1 or HTTP/2, plain or over TLS with
// whatever certificate the server shows. On the runtime's loop only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kubelet/fd.h"
#include "kubelet/fd_loop.h"
#include "net/session.h"

namespace sextant::kubelet {

struct ExchangePlan {
  net::ClientHead head;
  net::Buffer body;
  std::string host;  // for TLS
  bool tls = false;
  bool http2 = false;   // by prior knowledge
  size_t max_body = 0;  // more is not waited for
};

struct ExchangeAnswer {
  int status = 0;  // 0: none came, and `error` says why in Go's words
  net::Headers headers;
  net::Headers trailers;
  std::string body;
  std::string error;
  bool heard = false;  // the server sent something at all
};

// Dropping it gives the exchange up; then `done` is not called. Else it is, once.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Whether the server sent something so far.
  virtual bool heard() const = 0;
};
std::shared_ptr<Exchange> StartExchange(FdLoop& loop, Fd socket, ExchangePlan plan,
                                        std::function<void(ExchangeAnswer)> done);

}  // namespace sextant::kubelet
