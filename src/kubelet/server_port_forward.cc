#include <fmt/format.h>

#include <algorithm>

#include "kubelet/server_streams.h"
#include "net/stream.h"
#include "net/websocket.h"

namespace sextant::kubelet {
namespace {

constexpr char kProtocol[] = "v4.channel.k8s.io";
constexpr size_t kMaxPorts = 100;

// Port i has channel 2i for data and 2i+1 for errors; both begin with the port's number, low byte
// first (kubelet's portforward/websocket.go).
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  Forwarding(net::IoThread& io, std::shared_ptr<net::WebSocket> socket, std::vector<uint16_t> ports)
      : io_(io), socket_(std::move(socket)), ports_(std::move(ports)), streams_(ports_.size()) {}

  // On the I/O thread, as all that follows.
  void Start(const NodeRef& node, Loop& loop, const std::string& sandbox) {
    for (size_t i = 0; i < ports_.size(); ++i) {
      const std::string number = {static_cast<char>(ports_[i] & 255),
                                  static_cast<char>(ports_[i] >> 8)};
      Send(2 * i, number);
      Send(2 * i + 1, number);
      loop.Post([node, sandbox, port = ports_[i], self = shared_from_this(), i] {
        const auto kubelet = node.lock();
        if (!kubelet) return;
        (*kubelet)->runtime().DialPort(sandbox, port, [self, i](Result<int> fd) {
          self->io_.Post([self, i, fd] { self->OnDialled(i, fd); });
        });
      });
    }
    socket_->Start({[self = shared_from_this()](bool, std::string message) {
                      self->OnMessage(std::move(message));
                    },
                    [self = shared_from_this()](net::WsClose, std::string) { self->OnClose(); }});
  }

 private:
  void OnDialled(size_t i, const Result<int>& fd) {
    if (!fd) {
      Send(2 * i + 1,
           fmt::format("error forwarding port {} to pod: {}", ports_[i], fd.error().message));
      return;
    }
    auto stream = net::AdoptSocket(io_, *fd);
    if (closed_) return;
    streams_[i] = stream;
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

  net::IoThread& io_;
  const std::shared_ptr<net::WebSocket> socket_;
  const std::vector<uint16_t> ports_;
  std::vector<std::shared_ptr<net::ByteStream>> streams_;
  std::map<size_t, std::vector<std::string>> waiting_;
  bool closed_ = false;
};

}  // namespace

void ServePortForward(NodeRef node, Loop& loop, net::IoThread& io, std::string sandbox,
                      std::vector<uint16_t> ports, const std::vector<std::string>& protocols,
                      std::shared_ptr<net::ResponseWriter> writer) {
  if (ports.empty() || ports.size() > kMaxPorts) {
    return SendText(*writer, 400, "query parameter \"port\" is required");
  }
  if (std::find(protocols.begin(), protocols.end(), kProtocol) == protocols.end()) {
    return SendText(*writer, 400,
                    "this kubelet forwards ports over WebSocket channels (v4.channel.k8s.io), not "
                    "over tunnelled SPDY");
  }
  net::ResponseWriter& upgrading = *writer;
  upgrading.UpgradeWebSocket(kProtocol, [node = std::move(node), &loop, &io,
                                         sandbox = std::move(sandbox), ports = std::move(ports),
                                         writer](std::shared_ptr<net::WebSocket> socket) mutable {
    if (!socket) return;  // on the I/O thread of the connection, which is `io`
    std::make_shared<Forwarding>(io, std::move(socket), std::move(ports))
        ->Start(node, loop, sandbox);
  });
}

}  // namespace sextant::kubelet
