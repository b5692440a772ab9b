#include <fmt/format.h>

#include <algorithm>

#include "kubelet/server_streams.h"
#include "net/stream.h"
#include "net/websocket.h"

namespace sextant::kubelet {
namespace {

constexpr char kProtocol[] = "v4.channel.k8s.io";
constexpr char kSpdyProtocol[] = "portforward.k8s.io";
constexpr size_t kMaxPorts = 100;

// Port i has channel 2i for data and 2i+1 for errors; both begin with the port's number, low byte
// first (cri-streaming's portforward/websocket.go).
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  Forwarding(ForwardTarget target, std::shared_ptr<net::WebSocket> socket,
             std::vector<uint16_t> ports)
      : target_(std::move(target)),
        socket_(std::move(socket)),
        ports_(std::move(ports)),
        streams_(ports_.size()) {}

  // On the I/O thread, as all that follows.
  void Start() {
    for (size_t i = 0; i < ports_.size(); ++i) {
      const std::string number = {static_cast<char>(ports_[i] & 255),
                                  static_cast<char>(ports_[i] >> 8)};
      Send(2 * i, number);
      Send(2 * i + 1, number);
      target_.Dial(ports_[i], [self = shared_from_this(),
                               i](const Result<std::shared_ptr<net::ByteStream>>& stream) {
        self->OnDialled(i, stream);
      });
    }
    socket_->Start({[self = shared_from_this()](bool, std::string message) {
                      self->OnMessage(std::move(message));
                    },
                    [self = shared_from_this()](net::WsClose, std::string) { self->OnClose(); }});
  }

 private:
  void OnDialled(size_t i, const Result<std::shared_ptr<net::ByteStream>>& dialled) {
    if (!dialled) {
      Send(2 * i + 1, target_.Failure(ports_[i], dialled.error()));
      return;
    }
    if (closed_) return;
    streams_[i] = *dialled;
    const auto& stream = *dialled;
    stream->Start({[self = shared_from_this(), i](std::string_view bytes) {
                     if (!self->Send(2 * i, bytes)) self->socket_->Close(net::WsClose::kTooBig);
                   },
                   {},
                   [self = shared_from_this(), i](Status) { self->OnStreamEnd(i); }});
    for (std::string& piece : waiting_[i]) stream->Send(std::move(piece));
    waiting_.erase(i);
  }

  void OnMessage(std::string message) {
    if (message.empty()) return;
    const size_t channel = static_cast<uint8_t>(message[0]);
    const size_t i = channel / 2;
    if (channel % 2 != 0 || i >= ports_.size()) return;
    std::string data = message.substr(1);
    if (streams_[i]) {
      if (!streams_[i]->Send(std::move(data))) socket_->Close(net::WsClose::kTooBig);
    } else if (waiting_[i].size() < kMaxPorts) {
      waiting_[i].push_back(std::move(data));
    }
  }

  bool Send(size_t channel, std::string_view bytes) {
    std::string frame(1, static_cast<char>(channel));
    frame += bytes;
    return socket_->Send(true, frame);
  }

  void OnStreamEnd(size_t i) {
    streams_[i].reset();
    const bool any = std::any_of(streams_.begin(), streams_.end(),
                                 [](const auto& stream) { return stream != nullptr; });
    if (!any) socket_->Close(net::WsClose::kNormal);
  }

  void OnClose() {
    closed_ = true;
    for (auto& stream : streams_)
      if (stream) stream->Close();
  }

  const ForwardTarget target_;
  const std::shared_ptr<net::WebSocket> socket_;
  const std::vector<uint16_t> ports_;
  std::vector<std::shared_ptr<net::ByteStream>> streams_;
  std::map<size_t, std::vector<std::string>> waiting_;
  bool closed_ = false;
};

}  // namespace

void ForwardTarget::Dial(uint16_t port,
                         std::function<void(Result<std::shared_ptr<net::ByteStream>>)> done) const {
  loop->Post([node = node, to = io, sandbox = sandbox, port, done = std::move(done)] {
    const auto finish = [to, done](Result<int> fd) {
      to->Post([to, done, fd] {
        if (!fd) return done(Fail(fd.error()));
        done(net::AdoptSocket(*to, *fd));
      });
    };
    const auto kubelet = node.lock();
    if (!kubelet) return finish(Fail(ServiceUnavailable("the node is not running")));
    (*kubelet)->runtime().DialPort(sandbox, port, finish);
  });
}

std::string ForwardTarget::Failure(uint16_t port, const Error& error) const {
  return fmt::format("error forwarding port {} to pod {}, uid : {}", port, sandbox, error.message);
}

void ServePortForward(ForwardTarget target, const std::vector<uint16_t>& ports,
                      const net::Request& request, std::shared_ptr<net::ResponseWriter> writer) {
  if (IsSpdyUpgrade(request) || IsSpdyTunnel(request)) {
    return UpgradeToSpdy(request, kSpdyProtocol, writer,
                         [target = std::move(target)](std::shared_ptr<net::ByteStream> client) {
                           ForwardOverSpdy(target, std::move(client));
                         });
  }
  if (ports.empty() || ports.size() > kMaxPorts) {
    return SendText(*writer, 400, "query parameter \"port\" is required");
  }
  const std::vector<std::string> protocols = request.WebSocketProtocols();
  if (std::find(protocols.begin(), protocols.end(), kProtocol) == protocols.end()) {
    return SendText(*writer, 400,
                    "this kubelet forwards ports over SPDY/3.1+portforward.k8s.io and "
                    "v4.channel.k8s.io");
  }
  net::ResponseWriter& upgrading = *writer;
  upgrading.UpgradeWebSocket(kProtocol, [target = std::move(target), ports,
                                         writer](std::shared_ptr<net::WebSocket> socket) mutable {
    if (!socket) return;  // on the I/O thread of the connection, which is the target's
    std::make_shared<Forwarding>(std::move(target), std::move(socket), std::move(ports))->Start();
  });
}

}  // namespace sextant::kubelet
