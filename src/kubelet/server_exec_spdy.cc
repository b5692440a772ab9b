// exec and attach over SPDY, as clients before WebSockets speak it: a stream each for errors,
// standard input, output, error and the terminal's size.
// Source: k8s.io/cri-streaming pkg/streaming/remotecommand/httpstream.go (v4ProtocolHandler).
#include <algorithm>
#include <map>

#include "kubelet/server_exec.h"
#include "net/spdy.h"

namespace sextant::kubelet {
namespace {

constexpr Duration kStreamsTimeout = std::chrono::seconds(30);
constexpr size_t kMaxEarly = 1 << 20;

constexpr std::pair<std::string_view, StreamChannel> kTypes[] = {
    {"error", StreamChannel::kError},   {"stdin", StreamChannel::kStdin},
    {"stdout", StreamChannel::kStdout}, {"stderr", StreamChannel::kStderr},
    {"resize", StreamChannel::kResize},
};

std::optional<StreamChannel> ChannelOf(const net::Headers& headers) {
  for (const auto& [type, channel] : kTypes) {
    if (headers.Get("streamtype") == type) return channel;
  }
  return std::nullopt;
}

// The connection's side, on the I/O thread. Begins when all streams that the request needs are
// there.
class SpdyStreams : public net::SpdyConnection::Events,
                    public std::enable_shared_from_this<SpdyStreams> {
 public:
  SpdyStreams(net::IoThread& io, const StreamRequest& request,
              std::function<void(std::shared_ptr<SpdyStreams>)> ready)
      : io_(io),
        ready_(std::move(ready)),
        missing_(1 + static_cast<int>(request.use_stdin) + static_cast<int>(request.use_stdout) +
                 static_cast<int>(request.use_stderr) + static_cast<int>(request.tty)) {}

  void Serve(std::shared_ptr<net::ByteStream> client) {
    connection_ = net::SpdyConnection::Serve(std::move(client), shared_from_this());
    // Nobody could be told why: the error stream may be what is missing.
    timer_ = io_.After(kStreamsTimeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && self->connection_) self->connection_->Close();
    });
  }

  void Start(StreamClient::Handlers handlers) {
    handlers_ = std::move(handlers);
    started_ = true;
    if (!connection_) return OnClosed();
    if (!early_.empty()) handlers_.on_input(std::exchange(early_, {}));
    if (early_end_) handlers_.on_input_end();
    connection_->Resume();
  }
  net::SpdyConnection* connection() { return connection_.get(); }
  uint32_t StreamOf(StreamChannel channel) const {
    const auto found = streams_.find(channel);
    return found == streams_.end() ? 0 : found->second;
  }

  bool Accepts(const net::Headers& headers) override {
    const auto channel = ChannelOf(headers);
    return channel && !streams_.contains(*channel);
  }
  void OnStream(uint32_t id, const net::Headers& headers) override {
    streams_[*ChannelOf(headers)] = id;
    if (--missing_ != 0) return;
    io_.Cancel(timer_);
    connection_->Pause();  // until there is somebody to take the input
    ready_(shared_from_this());
  }
  void OnData(uint32_t id, std::string_view bytes) override {
    if (id == StreamOf(StreamChannel::kStdin)) return OnInput(bytes);
    if (started_ && id == StreamOf(StreamChannel::kResize)) handlers_.on_resize(bytes);
  }
  void OnEnd(uint32_t id) override {
    if (id != StreamOf(StreamChannel::kStdin)) return;
    if (started_) return handlers_.on_input_end();
    early_end_ = true;
  }
  void OnReset(uint32_t id) override { OnEnd(id); }
  void OnClosed() override {
    io_.Cancel(timer_);
    connection_.reset();
    if (!std::exchange(started_, false)) return;
    std::exchange(handlers_, {}).on_gone();
  }

 private:
  void OnInput(std::string_view bytes) {
    if (started_) return handlers_.on_input(std::string(bytes));
    early_ += bytes;
    if (early_.size() > kMaxEarly) connection_->Close();
  }

  net::IoThread& io_;
  std::function<void(std::shared_ptr<SpdyStreams>)> ready_;
  int missing_;
  std::map<StreamChannel, uint32_t> streams_;
  std::shared_ptr<net::SpdyConnection> connection_;
  StreamClient::Handlers handlers_;
  std::string early_;  // input that came before all streams were there
  bool early_end_ = false;
  TimerId timer_ = 0;
  bool started_ = false;
};

// What is sent waits in the I/O thread's queue at most as long as the session's window lets it.
class SpdyClient : public StreamClient {
 public:
  SpdyClient(net::IoThread& io, std::shared_ptr<SpdyStreams> streams)
      : io_(io.poster()), streams_(std::move(streams)) {}
  ~SpdyClient() override {
    With([](SpdyStreams&, net::SpdyConnection& connection) { connection.Close(); });
  }

  void Start(Handlers handlers) override {
    io_->Post([streams = streams_, handlers = std::move(handlers)]() mutable {
      streams->Start(std::move(handlers));
    });
  }
  bool Send(StreamChannel channel, std::string_view bytes) override {
    With([channel, bytes = std::string(bytes)](SpdyStreams& streams,
                                               net::SpdyConnection& connection) {
      if (!connection.Send(streams.StreamOf(channel), bytes)) connection.Close();
    });
    return true;
  }
  void OnWritable(Task task) override {
    io_->Post([streams = streams_, task = std::move(task)]() mutable {
      if (streams->connection() != nullptr)
        return streams->connection()->OnWritable(std::move(task));
      task();
    });
  }
  void Pause() override {
    With([](SpdyStreams&, net::SpdyConnection& connection) { connection.Pause(); });
  }
  void Resume() override {
    With([](SpdyStreams&, net::SpdyConnection& connection) { connection.Resume(); });
  }
  void Finish(const std::string& status) override {
    With([status](SpdyStreams& streams, net::SpdyConnection& connection) {
      connection.Send(streams.StreamOf(StreamChannel::kError), status);
      for (StreamChannel channel :
           {StreamChannel::kStdout, StreamChannel::kStderr, StreamChannel::kError}) {
        connection.End(streams.StreamOf(channel));
      }
      connection.Close();
    });
  }

 private:
  // Posted: in the order of the calls.
  void With(std::function<void(SpdyStreams&, net::SpdyConnection&)> use) {
    io_->Post([streams = streams_, use = std::move(use)] {
      if (streams->connection() != nullptr) use(*streams, *streams->connection());
    });
  }

  const std::shared_ptr<Executor> io_;
  const std::shared_ptr<SpdyStreams> streams_;
};

}  // namespace

void ServeStreamOverSpdy(NodeRef node, Loop& loop, net::IoThread& io, StreamRequest request,
                         std::shared_ptr<net::ByteStream> client) {
  auto streams = std::make_shared<SpdyStreams>(
      io, request,
      [node = std::move(node), &loop, &io, request](std::shared_ptr<SpdyStreams> ready) {
        JoinStream(node, loop, request, std::make_shared<SpdyClient>(io, std::move(ready)));
      });
  streams->Serve(std::move(client));
}

}  // namespace sextant::kubelet
