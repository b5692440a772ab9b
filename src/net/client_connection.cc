#include "net/client_connection.h"

namespace sextant::net {
namespace {

// Below the server's idle_timeout, so that we seldom send into a closing connection.
constexpr auto kIdleTimeout = std::chrono::seconds(60);
// A connection with open streams that is silent for the first is pinged, for the second given up
// (client-go's HTTP/2 health check: 30 s and 15 s more).
constexpr auto kPingAfter = std::chrono::seconds(30);
constexpr auto kGiveUpAfter = std::chrono::seconds(45);
// HTTP/1.1: body bytes posted and not used up before reading pauses.
constexpr size_t kMaxUnconsumed = 1 << 20;

bool IsSafe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

}  // namespace

ClientConnection::ClientConnection(std::shared_ptr<Host> host, std::shared_ptr<Transport> transport,
                                   bool http2, size_t max_header_bytes)
    : http2_(http2),
      host_(std::move(host)),
      transport_(std::move(transport)),
      session_(http2 ? NewH2ClientSession(max_header_bytes, *this)
                     : NewH1ClientSession(max_header_bytes, *this)),
      idle_since_(transport_->io().clock().Monotonic()) {}

void ClientConnection::Start() {
  transport_->SetOwner(this);
  transport_->Flush();
}

void ClientConnection::Submit(const std::shared_ptr<CallState>& call, ClientHead head) {
  const StreamId id = session_->Submit(std::move(head), call->request.body);
  if (id == 0) return host_->OnCallFailed(call, TransportError("out of stream ids"), true);
  call->connection = weak_from_this();
  call->stream = id;
  calls_.emplace(id, call);
  transport_->Flush();
}

void ClientConnection::Cancel(StreamId id) {
  if (calls_.erase(id) == 0) return;
  session_->Cancel(id);
  transport_->Flush();
  Settle();
}

void ClientConnection::Consume(StreamId id, size_t bytes) {
  if (transport_->closed()) return;
  session_->Consume(id, bytes);
  if (http2_) return transport_->Flush();  // a WINDOW_UPDATE may be due
  unconsumed_ -= std::min(unconsumed_, bytes);
  if (unconsumed_ <= kMaxUnconsumed / 2) transport_->SetReading(true);
}

void ClientConnection::OnBytes(std::string_view bytes) {
  if (const Status fed = session_->Feed(bytes); !fed) return transport_->Close(fed);
  Settle();
}

void ClientConnection::OnEnd() {
  transport_->Close(Fail(TransportError("the server closed the connection")));
}

void ClientConnection::OnClosed(Status why) {
  session_->End(why ? TransportError("the connection was closed") : why.error());
  host_->OnClosed(this);
}

void ClientConnection::OnHeaders(StreamId id, int status, Headers headers) {
  CallState& call = *calls_.at(id);
  host_->OnCallAnswered(call);
  call.OnHeaders(status, std::move(headers));
}

void ClientConnection::OnData(StreamId id, std::string_view bytes) {
  const size_t used = calls_.at(id)->OnData(bytes);
  if (used > 0) session_->Consume(id, used);
  if (http2_) return;
  unconsumed_ += bytes.size() - used;
  if (unconsumed_ > kMaxUnconsumed) transport_->SetReading(false);
}

void ClientConnection::OnDone(StreamId id, Status status, bool unprocessed) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) return;
  const auto call = std::move(it->second);
  calls_.erase(it);
  if (status) {
    ++served_;
    host_->OnCallDone(*call);
    return call->Finish({});
  }
  // HTTP/1.1 cannot tell that a request was not handled; a kept-alive connection that was closed
  // before the answer began most likely did not, and asking again does no harm.
  const bool retry = unprocessed && (http2_ || (served_ > 0 && IsSafe(call->request.method)));
  host_->OnCallFailed(call, std::move(status).error(), retry);
}

void ClientConnection::Settle() {
  if (transport_->closed()) return;
  if (session_->open_streams() == 0) {
    idle_since_ = transport_->io().clock().Monotonic();
    if (session_->closing()) return transport_->Close({});
  }
  if (session_->capacity() > 0) host_->OnCapacity();
}

void ClientConnection::Sweep() {
  const Duration now = transport_->io().clock().Monotonic();
  if (session_->open_streams() == 0) {
    if (now - idle_since_ >= kIdleTimeout) transport_->Close({});
    return;
  }
  if (!http2_) return;
  const Duration silent = now - transport_->last_read();
  if (silent >= kGiveUpAfter) {
    return transport_->Close(Fail(TransportError("the server does not answer pings")));
  }
  if (silent >= kPingAfter) {
    session_->Ping();
    transport_->Flush();
  }
}

}  // namespace sextant::net
