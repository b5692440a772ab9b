// Port-forward over SPDY: the client opens a pair of streams for every connection to a port, one
// for its data, one on which it hears what went wrong.
// Source: k8s.io/cri-streaming pkg/streaming/portforward/httpstream.go.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "kubelet/server_streams.h"
#include "net/spdy.h"

namespace sextant::kubelet {
namespace {

constexpr Duration kPairTimeout = std::chrono::seconds(30);
// Connections into the Pod at one time, dialled ones included: each is a descriptor.
constexpr size_t kMaxForwards = 1024;
constexpr size_t kMaxWaiting = 1 << 20;  // bytes for a connection that is being dialled
constexpr size_t kMaxRequestId = 64;

std::optional<uint16_t> PortOf(const net::Headers& headers) {
  const std::string_view text = headers.Get("port");
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

// Who does not tell the request's id opens the error stream first and the data stream next to it.
std::string RequestId(uint32_t stream, const net::Headers& headers) {
  const std::string_view id = headers.Get("requestid");
  if (!id.empty()) return std::string(id);
  return std::to_string(headers.Get("streamtype") == "error" ? stream : stream - 2);
}

// On the I/O thread.
class SpdyForwarding : public net::SpdyConnection::Events,
                       public std::enable_shared_from_this<SpdyForwarding> {
 public:
  explicit SpdyForwarding(ForwardTarget target) : target_(std::move(target)) {}

  void Start(std::shared_ptr<net::ByteStream> client) {
    connection_ = net::SpdyConnection::Serve(std::move(client), shared_from_this());
  }

  bool Accepts(const net::Headers& headers) override {
    const std::string_view type = headers.Get("streamtype");
    return PortOf(headers) && (type == "error" || type == "data") &&
           headers.Get("requestid").size() <= kMaxRequestId;
  }

  void OnStream(uint32_t id, const net::Headers& headers) override {
    const std::string request = RequestId(id, headers);
    const bool begins = !pairs_.contains(request);
    Pair& pair = pairs_[request];
    const bool is_error = headers.Get("streamtype") == "error";
    uint32_t& place = is_error ? pair.error : pair.data;
    if (place != 0) {
      connection_->Send(pair.error, fmt::format("error processing stream for request {}: {} stream "
                                                "already assigned",
                                                request, is_error ? "error" : "data"));
      return connection_->Reset(id, net::SpdyReset::kCancel);
    }
    place = id;
    pair.port = *PortOf(headers);
    if (begins) {
      pair.timer = target_.io->After(kPairTimeout, [weak = weak_from_this(), request] {
        if (const auto self = weak.lock()) self->OnPairTimeout(request);
      });
    }
    if (pair.error == 0 || pair.data == 0) return;
    target_.io->Cancel(pair.timer);
    const Pair complete = pair;
    pairs_.erase(request);
    Forward(complete);
  }

  void OnData(uint32_t id, std::string_view bytes) override {
    const auto found = forwards_.find(id);
    if (found == forwards_.end()) return;  // nothing is read from error streams
    Connection& to = *found->second;
    if (!to.socket) {
      to.waiting += bytes;
      if (to.waiting.size() > kMaxWaiting) Hold(id);
      return;
    }
    if (!to.socket->Send(std::string(bytes))) return End(id, true);
    if (to.socket->buffered_bytes() <= net::kMaxStreamBuffer / 2) return;
    Hold(id);
    to.socket->OnWritable([weak = weak_from_this(), id] {
      if (const auto self = weak.lock()) self->Unhold(id);
    });
  }

  void OnEnd(uint32_t id) override {
    const auto found = forwards_.find(id);
    if (found == forwards_.end()) return;
    found->second->client_ended = true;
    if (found->second->socket) found->second->socket->End();
  }

  void OnReset(uint32_t id) override {
    if (forwards_.contains(id)) End(id, true);
    std::erase_if(pairs_, [&](const auto& entry) {
      const bool gone = entry.second.error == id || entry.second.data == id;
      if (gone) target_.io->Cancel(entry.second.timer);
      return gone;
    });
  }

  void OnClosed() override {
    for (const auto& [request, pair] : pairs_) target_.io->Cancel(pair.timer);
    pairs_.clear();
    for (const auto& [id, forward] : std::exchange(forwards_, {})) {
      if (forward->socket) forward->socket->Close();
    }
    connection_.reset();
  }

 private:
  struct Pair {
    uint32_t error = 0;
    uint32_t data = 0;
    uint16_t port = 0;
    TimerId timer = 0;
  };
  struct Connection {
    Pair pair;
    std::shared_ptr<net::ByteStream> socket;  // not while it is being dialled
    std::string waiting;                      // from the client, while the Pod is being dialled
    std::string pending;                      // from the Pod, while the client cannot take it
    bool paused = false;                      // likewise
    bool client_ended = false;
    bool ended = false;       // while it was being dialled
    bool pod_ended = false;   // while something was pending
    bool pod_broken = false;  // and not in good order
  };

  void OnPairTimeout(const std::string& request) {
    const auto found = pairs_.find(request);
    if (found == pairs_.end() || !connection_) return;
    const Pair pair = found->second;
    pairs_.erase(found);
    connection_->Send(pair.error,
                      fmt::format("(request={}) timed out waiting for streams", request));
    connection_->End(pair.error);
    connection_->Reset(pair.data, net::SpdyReset::kCancel);
  }

  void Forward(const Pair& pair) {
    if (forwards_.size() >= kMaxForwards) {
      return Refuse(
          pair, ServiceUnavailable(fmt::format(
                    "{} connections are forwarded already, the most at one time", kMaxForwards)));
    }
    auto forward = std::make_shared<Connection>();
    forward->pair = pair;
    forwards_[pair.data] = forward;
    target_.Dial(pair.port, [self = shared_from_this(),
                             forward](const Result<std::shared_ptr<net::ByteStream>>& socket) {
      self->OnDialled(forward, socket);
    });
  }

  void OnDialled(const std::shared_ptr<Connection>& forward,
                 const Result<std::shared_ptr<net::ByteStream>>& socket) {
    if (!connection_) return;
    const uint32_t id = forward->pair.data;
    if (!socket || forward->ended) {
      forwards_.erase(id);
      Unhold(id);
      if (!socket && !forward->ended) Refuse(forward->pair, socket.error());
      return;
    }
    forward->socket = *socket;
    net::ByteStream::Handlers handlers;
    const auto weak = weak_from_this();
    handlers.on_data = [weak, id](std::string_view bytes) {
      if (const auto self = weak.lock()) self->FromPod(id, bytes);
    };
    handlers.on_end = [weak, id] {
      if (const auto self = weak.lock()) self->PodEnded(id, false);
    };
    handlers.on_close = [weak, id](const Status& why) {
      if (const auto self = weak.lock()) self->PodEnded(id, !why);
    };
    forward->socket->Start(std::move(handlers));
    if (!forward->waiting.empty()) forward->socket->Send(std::exchange(forward->waiting, {}));
    if (forward->client_ended) forward->socket->End();
    Unhold(id);
  }

  void FromPod(uint32_t id, std::string_view bytes) {
    const auto found = forwards_.find(id);
    if (found == forwards_.end()) return;
    found->second->pending += bytes;
    Flush(id);
  }

  // All connections share what the client can take: none sends more while it has enough.
  void Flush(uint32_t id) {
    const auto found = forwards_.find(id);
    if (found == forwards_.end()) return;
    const auto forward = found->second;
    if (connection_->buffered_bytes() > net::kMaxStreamBuffer / 2) {
      forward->paused = true;
      forward->socket->Pause();
      return connection_->OnWritable([weak = weak_from_this(), id] {
        if (const auto self = weak.lock()) self->Flush(id);
      });
    }
    const std::string bytes = std::exchange(forward->pending, {});
    if (!bytes.empty() && !connection_->Send(id, bytes)) return End(id, true);
    if (forward->pod_ended) return End(id, forward->pod_broken);
    if (std::exchange(forward->paused, false)) forward->socket->Resume();
  }

  // The Pod's end of the connection is over.
  void PodEnded(uint32_t id, bool broken) {
    const auto found = forwards_.find(id);
    if (found == forwards_.end()) return;
    if (found->second->pending.empty()) return End(id, broken);
    found->second->pod_ended = true;  // Flush goes on
    found->second->pod_broken = broken;
  }

  // The connection is over, or the client's interest in it.
  void End(uint32_t id, bool broken) {
    const auto found = forwards_.find(id);
    if (found == forwards_.end()) return;
    const auto forward = found->second;
    if (broken) {
      connection_->Reset(id, net::SpdyReset::kCancel);
    } else {
      connection_->End(id);
    }
    connection_->End(forward->pair.error);
    if (!forward->socket) {
      forward->ended = true;  // OnDialled forgets it
      return;
    }
    forwards_.erase(found);
    forward->socket->Close();
    Unhold(id);
  }

  void Refuse(const Pair& pair, const Error& why) {
    connection_->Send(pair.error, target_.Failure(pair.port, why));
    connection_->Reset(pair.data, net::SpdyReset::kCancel);
    connection_->Reset(pair.error, net::SpdyReset::kCancel);
  }

  // SPDY's streams share one connection: it rests while any of them cannot take more.
  void Hold(uint32_t id) {
    if (holding_.empty()) connection_->Pause();
    holding_.insert(id);
  }
  void Unhold(uint32_t id) {
    if (holding_.erase(id) > 0 && holding_.empty() && connection_) connection_->Resume();
  }

  const ForwardTarget target_;
  std::shared_ptr<net::SpdyConnection> connection_;
  std::map<std::string, Pair> pairs_;                         // incomplete; by request id
  std::map<uint32_t, std::shared_ptr<Connection>> forwards_;  // by data stream
  std::set<uint32_t> holding_;
};

}  // namespace

void ForwardOverSpdy(ForwardTarget target, std::shared_ptr<net::ByteStream> client) {
  std::make_shared<SpdyForwarding>(std::move(target))->Start(std::move(client));
}

}  // namespace sextant::kubelet
