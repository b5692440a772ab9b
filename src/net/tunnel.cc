#include "net/websocket.h"

namespace sextant::net {
namespace {

class Tunnel : public ByteStream {
 public:
  explicit Tunnel(std::shared_ptr<WebSocket> socket) : socket_(std::move(socket)) {}

  void Start(Handlers handlers) override {
    auto shared = std::make_shared<Handlers>(std::move(handlers));
    socket_->Start(
        {[shared, socket = std::weak_ptr(socket_)](bool binary, const std::string& bytes) {
           if (binary) return shared->on_data(bytes);
           if (const auto s = socket.lock()) s->Close(WsClose::kUnsupported);
         },
         [shared](WsClose code, const std::string& reason) {
           Handlers last = std::exchange(*shared, {});
           if (!last.on_close) return;
           if (code == WsClose::kNormal) return last.on_close({});
           last.on_close(Fail(Error{.message = "the WebSocket closed: " + reason}));
         }});
  }
  using ByteStream::Send;
  bool Send(Buffer bytes) override { return socket_->Send(true, *bytes); }
  void End() override { Close(); }
  void Close() override { socket_->Close(WsClose::kNormal); }
  size_t buffered_bytes() const override { return socket_->buffered_bytes(); }
  void OnWritable(Task task) override { socket_->OnWritable(std::move(task)); }
  void Pause() override { socket_->Pause(); }
  void Resume() override { socket_->Resume(); }
  const Peer& peer() const override { return peer_; }

 private:
  const std::shared_ptr<WebSocket> socket_;
  const Peer peer_;
};

}  // namespace

std::shared_ptr<ByteStream> TunnelOver(std::shared_ptr<WebSocket> socket) {
  return std::make_shared<Tunnel>(std::move(socket));
}

}  // namespace sextant::net
