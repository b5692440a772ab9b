#include "net/server_connection.h"

#include <array>
#include <ctime>

#include "base/ascii.h"
#include "base/check.h"
#include "net/stream_core.h"
#include "net/tls_context.h"
#include "net/websocket_over.h"

namespace sextant::net {
namespace {

// Requests whose handler still holds the writer, although the client may have reset them: beyond
// this many times max_streams new ones are refused.
constexpr int kMaxWriterFactor = 2;

// "Mon, 30 Nov 2026 09:47:59 GMT", made once a second.
std::string_view HttpDate(const Clock& clock) {
  thread_local time_t made_for = -1;
  thread_local std::array<char, 32> text;
  const time_t now =
      std::chrono::duration_cast<std::chrono::seconds>(clock.Now().time_since_epoch()).count();
  if (now != made_for) {
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    made_for = now;
  }
  return text.data();
}

}  // namespace

ServerConnection::ServerConnection(std::shared_ptr<ConnectionHost> host,
                                   std::shared_ptr<Transport> transport, Peer peer)
    : host_(std::move(host)),
      transport_(std::move(transport)),
      peer_(std::make_shared<const Peer>(std::move(peer))),
      started_(transport_->io().clock().Monotonic()) {}

void ServerConnection::OnOpen() {
  if (transport_->ssl() != nullptr) {
    Peer peer = *peer_;
    DescribePeer(transport_->ssl(), peer);
    peer_ = std::make_shared<const Peer>(std::move(peer));
    if (!peer_->alpn.empty()) StartSession(peer_->alpn == "h2");
  }
}

void ServerConnection::StartSession(bool http2) {
  const ServerOptions& options = host_->options();
  ServerSessionOptions session{.limits = options.limits,
                               .render_error = options.render_error,
                               .any_authority = options.listen.is_unix()};
  const Clock& clock = transport_->io().clock();
  session_ = http2 ? NewH2ServerSession(clock, std::move(session), *this)
                   : NewH1ServerSession(clock, std::move(session), *this);
}

// Without ALPN the first bytes tell: no HTTP/1.1 request begins like HTTP/2's preface.
void ServerConnection::ChooseProtocol() {
  const size_t n = std::min(first_bytes_.size(), kH2Preface.size());
  const bool like_h2 = std::string_view(first_bytes_).substr(0, n) == kH2Preface.substr(0, n);
  if (like_h2 && n < kH2Preface.size()) return;
  StartSession(like_h2);
  const std::string bytes = std::exchange(first_bytes_, {});
  OnBytes(bytes);
}

void ServerConnection::OnBytes(std::string_view bytes) {
  if (!session_) {
    first_bytes_.append(bytes);
    return ChooseProtocol();
  }
  if (const Status fed = session_->Feed(bytes); !fed) {
    transport_->CloseWhenSent();
    return;
  }
  Settle();
}

void ServerConnection::OnEnd() {
  peer_ended_ = true;
  // A client that has only closed its sending side may still wait for whole answers, but nobody
  // reads an endless one.
  if (!session_ || open_.empty()) return transport_->CloseWhenSent();
  session_->Shutdown();
  for (auto& [id, open] : open_) {
    if (open.streaming) return transport_->Close({});
  }
}

void ServerConnection::Produce(std::string& out, size_t room) {
  if (!session_) return;
  session_->Take(out, room);
  Settle();
}

void ServerConnection::Settle() {
  if (!transport_ || transport_->closed()) return;
  transport_->SetReading(session_->wants_read());
  if (session_->finished()) transport_->CloseWhenSent();
}

void ServerConnection::OnClosed(Status) {
  for (auto& [id, open] : std::exchange(open_, {})) open.exchange->Close();
  host_->OnConnectionClosed(this);
}

void ServerConnection::Shutdown() {
  if (!session_) return transport_->Close({});
  session_->Shutdown();
  transport_->Flush();
  Settle();
}

void ServerConnection::Sweep() {
  const ServerLimits& limits = host_->options().limits;
  const Duration now = transport_->io().clock().Monotonic();
  if (!transport_->open() || !session_) {
    if (now - started_ >= limits.header_timeout) transport_->Close({});
    return;
  }
  if (transport_->unsent() > 0 && now - transport_->last_write() >= limits.write_timeout) {
    return transport_->Close({});
  }
  if (!session_->Sweep()) return transport_->CloseWhenSent();
  transport_->Flush();
  Settle();
}

void ServerConnection::OnRequest(StreamId id, Request request) {
  const ServerLimits& limits = host_->options().limits;
  if (writers_->load() >= kMaxWriterFactor * static_cast<int>(limits.max_streams)) {
    return session_->Reset(id);
  }
  request.peer = peer_;
  auto exchange = std::make_shared<Exchange>(transport_->io().poster(), weak_from_this(), id,
                                             limits.max_stream_buffer);
  Open open{.exchange = exchange};
  if (request.headers.HasToken("connection", "upgrade")) {
    open.upgrade = AsciiLower(request.headers.Get("upgrade"));
    if (request.IsWebSocketUpgrade()) {
      open.web_socket_key = std::string(request.headers.Get("sec-websocket-key"));
    }
  }
  open_.emplace(id, std::move(open));
  host_->handler()(std::move(request), Exchange::NewWriter(std::move(exchange), writers_));
}

void ServerConnection::OnStreamClosed(StreamId id) {
  const auto it = open_.find(id);
  if (it == open_.end()) return;
  const auto exchange = std::move(it->second.exchange);
  open_.erase(it);
  exchange->Close();
}

void ServerConnection::OnExchangeReady(Exchange& exchange) {
  const auto it = open_.find(exchange.id());
  if (it == open_.end() || it->second.exchange.get() != &exchange) return;
  Exchange::Wish wish = exchange.TakeWish();
  if (wish.upgrade) return Upgrade(exchange, std::move(wish));
  if (wish.abort || (peer_ended_ && wish.streaming)) {
    session_->Reset(exchange.id());
  } else if (wish.head) {
    it->second.streaming = wish.streaming;
    Begin(exchange, std::move(wish));
  } else {
    session_->Resume(exchange.id());
  }
  transport_->Flush();
}

void ServerConnection::Begin(Exchange& exchange, Exchange::Wish wish) {
  if (!wish.head->headers.Has("date")) {
    wish.head->headers.Add("date", HttpDate(transport_->io().clock()));
  }
  session_->Respond(exchange.id(), std::move(*wish.head), exchange.shared_from_this());
}

Headers ServerConnection::WebSocketHeaders(const Exchange& exchange,
                                           const std::string& protocol) const {
  Headers headers{{"upgrade", "websocket"}};
  headers.Add("sec-websocket-accept", WebSocketAccept(open_.at(exchange.id()).web_socket_key));
  if (!protocol.empty()) headers.Add("sec-websocket-protocol", protocol);
  return headers;
}

void ServerConnection::Upgrade(Exchange& exchange, Exchange::Wish wish) {
  const StreamId id = exchange.id();
  const Open& open = open_.at(id);
  const bool web_socket = static_cast<bool>(wish.web_socket);
  const bool asked = web_socket ? !open.web_socket_key.empty() : !open.upgrade.empty();
  std::string rest;
  if (!asked ||
      !session_->Upgrade(
          id, web_socket ? WebSocketHeaders(exchange, wish.protocol) : wish.upgrade_headers,
          rest)) {
    session_->Respond(
        id, {.status = 400, .headers = {{"content-type", "text/plain"}}, .length = {}},
        std::make_shared<WholeBody>(
            MakeBuffer("400 Bad Request: the request does not ask for an upgrade\n")));
    transport_->Flush();
    if (wish.web_socket) wish.web_socket(nullptr);
    if (wish.stream) wish.stream(nullptr);
    return;
  }
  const auto self = shared_from_this();
  std::string head;
  session_->Take(head, SIZE_MAX / 2);
  host_->OnUpgraded(transport_);
  IoThread& io = transport_->io();
  auto stream = StreamOver(transport_, *peer_, std::move(head), std::move(rest));
  OnClosed({});  // the connection ends here, its transport goes on
  if (!web_socket) return wish.stream(std::move(stream));
  wish.web_socket(
      WebSocketOver(io, std::move(stream), WsDecoder::Role::kServer, std::move(wish.protocol)));
}

}  // namespace sextant::net
