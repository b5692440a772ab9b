#include "net/client_call.h"

#include <fmt/format.h>

namespace sextant::net {

void CallState::OnHeaders(int status, Headers headers) {
  answered_ = true;
  if (whole) {
    response_.status = status;
    response_.headers = std::move(headers);
    return;
  }
  results_.Post([self = shared_from_this(), status, headers = std::move(headers)] {
    if (!self->cancelled() && self->callbacks.on_headers) {
      self->callbacks.on_headers(status, headers);
    }
  });
}

size_t CallState::OnData(std::string_view bytes) {
  if (whole) {
    if (response_.body.size() + bytes.size() > max_body) {
      failure_ = Fail(TransportError(fmt::format("the answer is larger than {} bytes", max_body)));
      return bytes.size();
    }
    response_.body.append(bytes);
    return bytes.size();
  }
  results_.Post([self = shared_from_this(), bytes = std::string(bytes)]() mutable {
    const size_t size = bytes.size();
    if (!self->cancelled() && self->callbacks.on_data) self->callbacks.on_data(std::move(bytes));
    self->on_consumed(size);
  });
  return 0;
}

void CallState::Finish(Status status) {
  if (std::exchange(finished_, true)) return;
  if (!failure_) status = failure_;
  results_.Post([self = shared_from_this(), status = std::move(status)]() mutable {
    // What the callbacks hold is let go here, on the thread that they belong to.
    auto done = std::exchange(self->done, {});
    StreamCallbacks callbacks = std::exchange(self->callbacks, {});
    if (self->cancelled()) return;
    if (!self->whole) {
      if (callbacks.on_done) callbacks.on_done(std::move(status));
    } else if (done && status) {
      done(std::move(self->response_));
    } else if (done) {
      done(Fail(std::move(status).error()));
    }
  });
}

}  // namespace sextant::net
