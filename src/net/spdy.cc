#include "net/spdy.h"

#include <algorithm>
#include <map>

namespace sextant::net {
namespace {

constexpr size_t kMaxDataFrame = 1 << 20;

class Connection : public SpdyConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ByteStream> stream, std::shared_ptr<Events> events)
      : stream_(std::move(stream)), events_(std::move(events)) {}

  void Begin() {
    ByteStream::Handlers handlers;
    handlers.on_data = [self = shared_from_this()](std::string_view bytes) {
      self->decoder_.Feed(bytes);
      self->Deliver();
    };
    handlers.on_end = [self = shared_from_this()] { self->stream_->Close(); };
    handlers.on_close = [self = shared_from_this()](const Status&) {
      self->closing_ = true;
      self->streams_.clear();
      std::exchange(self->events_, nullptr)->OnClosed();
    };
    stream_->Start(std::move(handlers));
  }

  bool Send(uint32_t id, std::string_view bytes) override {
    if (closing_ || !Sending(id)) return false;
    do {
      const std::string_view piece = bytes.substr(0, kMaxDataFrame);
      if (!stream_->Send(SpdyEncoder::Data(id, piece, false))) return false;
      bytes.remove_prefix(piece.size());
    } while (!bytes.empty());
    return true;
  }

  void End(uint32_t id) override {
    if (closing_ || !Sending(id)) return;
    Write(SpdyEncoder::Data(id, {}, true));
    streams_.at(id).ended = true;
    DropIfDone(id);
  }

  void Reset(uint32_t id, SpdyReset why) override {
    if (closing_ || streams_.erase(id) == 0) return;
    Write(SpdyEncoder::RstStream(id, why));
  }

  void Close() override { GoAway(false); }
  size_t buffered_bytes() const override { return stream_->buffered_bytes(); }
  void OnWritable(Task task) override { stream_->OnWritable(std::move(task)); }
  void Pause() override {
    paused_ = true;
    stream_->Pause();
  }
  void Resume() override {
    if (!std::exchange(paused_, false)) return;
    stream_->Resume();
    Deliver();
  }

 private:
  struct Stream {
    bool ended = false;       // by us
    bool peer_ended = false;  // by the client
  };

  bool Sending(uint32_t id) const {
    const auto found = streams_.find(id);
    return found != streams_.end() && !found->second.ended;
  }

  void DropIfDone(uint32_t id) {
    const auto found = streams_.find(id);
    if (found != streams_.end() && found->second.ended && found->second.peer_ended) {
      streams_.erase(found);
    }
  }

  // What keeps the protocol's order must not be lost: a client that reads nothing is cut off.
  void Write(std::string frame) {
    if (!stream_->Send(std::move(frame))) GoAway(false);
  }

  void GoAway(bool protocol_error) {
    if (std::exchange(closing_, true)) return;
    streams_.clear();
    stream_->Send(SpdyEncoder::GoAway(last_id_, protocol_error));
    stream_->Close();
  }

  void Deliver() {
    const auto self = shared_from_this();  // handlers may drop us
    if (std::exchange(delivering_, true)) return;
    while (!paused_ && !closing_) {
      const auto frame = decoder_.Next();
      if (!frame) {
        GoAway(true);
        break;
      }
      if (!*frame) break;
      OnFrame(**frame);
    }
    delivering_ = false;
  }

  void OnFrame(const SpdyFrame& frame) {
    switch (frame.type) {
      case SpdyType::kSynStream:
        return Open(frame);
      case SpdyType::kData:
        return OnData(frame);
      case SpdyType::kHeaders:
        if (frame.fin) OnFin(frame.id);
        return;
      case SpdyType::kRstStream:
        if (streams_.erase(frame.id) > 0) events_->OnReset(frame.id);
        return;
      case SpdyType::kPing:
        // Ours would be even; we send none.
        if (frame.id % 2 == 1) Write(SpdyEncoder::Ping(frame.id));
        return;
      case SpdyType::kGoAway:
        return GoAway(false);
      default:
        return;  // SYN_REPLY: we open no streams
    }
  }

  void Open(const SpdyFrame& frame) {
    if (frame.id % 2 == 0 || frame.id <= last_id_) {
      return Write(SpdyEncoder::RstStream(frame.id, SpdyReset::kProtocolError));
    }
    last_id_ = frame.id;
    if (streams_.size() >= kMaxSpdyStreams) {
      return Write(SpdyEncoder::RstStream(frame.id, SpdyReset::kRefusedStream));
    }
    if (!events_->Accepts(frame.headers)) {
      return Write(SpdyEncoder::RstStream(frame.id, SpdyReset::kCancel));
    }
    streams_[frame.id] = {};
    Write(encoder_.SynReply(frame.id, {}));
    if (closing_) return;
    events_->OnStream(frame.id, frame.headers);
    if (frame.fin) OnFin(frame.id);
  }

  void OnData(const SpdyFrame& frame) {
    const auto found = streams_.find(frame.id);
    if (found == streams_.end() || found->second.peer_ended) return;  // given up in the meantime
    if (!frame.data.empty()) events_->OnData(frame.id, frame.data);
    if (frame.fin) OnFin(frame.id);
  }

  void OnFin(uint32_t id) {
    const auto found = streams_.find(id);
    if (closing_ || found == streams_.end() || std::exchange(found->second.peer_ended, true)) {
      return;
    }
    events_->OnEnd(id);
    DropIfDone(id);
  }

  const std::shared_ptr<ByteStream> stream_;
  std::shared_ptr<Events> events_;
  SpdyDecoder decoder_;
  SpdyEncoder encoder_;
  std::map<uint32_t, Stream> streams_;
  uint32_t last_id_ = 0;
  bool paused_ = false;
  bool closing_ = false;     // nothing more goes out or counts
  bool delivering_ = false;  // on the stack
};

}  // namespace

std::shared_ptr<SpdyConnection> SpdyConnection::Serve(std::shared_ptr<ByteStream> stream,
                                                      std::shared_ptr<Events> events) {
  auto connection = std::make_shared<Connection>(std::move(stream), std::move(events));
  connection->Begin();
  return connection;
}

}  // namespace sextant::net
