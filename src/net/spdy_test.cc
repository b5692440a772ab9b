// SPDY: bytes that the other side's library wrote, hostile ones, and a connection's streams.
#include "net/spdy.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "net/spdy_codec.h"
#include "net/test_util.h"
#include "net/websocket.h"

namespace sextant::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

std::string Shown(const SpdyFrame& frame) {
  std::string out = fmt::format("{}:{}", static_cast<int>(frame.type), frame.id);
  for (const Header& h : frame.headers) out += fmt::format(" {}={}", h.name, h.value);
  if (!frame.data.empty()) out += fmt::format(" '{}'", frame.data);
  if (frame.status != 0) out += fmt::format(" status {}", frame.status);
  return frame.fin ? out + " fin" : out;
}

// All frames of `bytes`, fed in pieces of `step`; an error as the last.
std::vector<std::string> Decode(SpdyDecoder& decoder, std::string_view bytes,
                                size_t step = SIZE_MAX) {
  std::vector<std::string> frames;
  while (!bytes.empty()) {
    decoder.Feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
    while (true) {
      auto next = decoder.Next();
      if (!next) {
        frames.push_back(next.error().message);
        return frames;
      }
      if (!*next) break;
      frames.push_back(Shown(**next));
    }
  }
  return frames;
}

std::vector<std::string> Decode(std::string_view bytes, size_t step = SIZE_MAX) {
  SpdyDecoder decoder;
  return Decode(decoder, bytes, step);
}

// What kubectl's library (github.com/moby/spdystream v0.5.0) writes for a forwarded connection that
// is given up: its two streams, a ping, the end.
constexpr std::string_view kRecorded =
    "800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e0"
    "1c60616061c0c0c0c0590489c64c50f2663400000000ffff00000001010000008003000100000018000000030000"
    "00000000c2aa19540e2512d60b000000ffff0000000300000005474554202f800300060000000400000001800300"
    "0300000008000000030000000580030007000000080000000000000000";

TEST(SpdyCodec, ReadsWhatTheOtherSideWrites) {
  const std::vector<std::string> frames = Decode(FromHex(kRecorded));
  ASSERT_EQ(frames.size(), 7);
  // The order of a stream's headers is chance there.
  EXPECT_THAT(frames[0], HasSubstr("1:1"));
  EXPECT_THAT(frames[0], HasSubstr(" streamtype=error"));
  EXPECT_THAT(frames[0], HasSubstr(" port=8080"));
  EXPECT_THAT(frames[0], HasSubstr(" requestid=0"));
  EXPECT_EQ(frames[1], "0:1 fin");
  EXPECT_THAT(frames[2], HasSubstr(" streamtype=data"));
  EXPECT_THAT(std::vector(frames.begin() + 3, frames.end()),
              ElementsAre("0:3 'GET /'", "6:1", "3:3 status 5", "7:0"));
}

TEST(SpdyCodec, PiecesMakeNoDifferenceButToData) {
  std::vector<std::string> whole = Decode(FromHex(kRecorded));
  std::vector<std::string> bytewise = Decode(FromHex(kRecorded), 1);
  whole.erase(whole.begin() + 3);
  ASSERT_EQ(bytewise.size(), 11);
  EXPECT_THAT(std::vector(bytewise.begin() + 3, bytewise.begin() + 8),
              ElementsAre("0:3 'G'", "0:3 'E'", "0:3 'T'", "0:3 ' '", "0:3 '/'"));
  bytewise.erase(bytewise.begin() + 3, bytewise.begin() + 8);
  EXPECT_EQ(bytewise, whole);
}

TEST(SpdyCodec, WhatIsWrittenCanBeRead) {
  SpdyEncoder encoder;
  std::string bytes;
  for (uint32_t id = 1; id < 200; id += 2) {  // one compression context for all of them
    bytes += encoder.SynStream(id, {{"n", std::to_string(id)}, {"word", "x"}}, id == 1);
  }
  bytes += encoder.SynReply(3, {});
  bytes += SpdyEncoder::Data(3, "abc", true);
  const std::vector<std::string> frames = Decode(bytes);
  ASSERT_EQ(frames.size(), 102);
  EXPECT_EQ(frames[0], "1:1 n=1 word=x fin");
  EXPECT_EQ(frames[99], "1:199 n=199 word=x");
  EXPECT_EQ(frames[100], "2:3");
  EXPECT_EQ(frames[101], "0:3 'abc' fin");
}

std::string SynWithBlock(std::string_view block) {
  SpdyDeflater deflater;
  const std::string packed = deflater.Block(block);
  return FromHex(fmt::format("80030001{:08x}000000010000000000", packed.size() + 10)) +
         std::string(1, '\0') + packed;
}

TEST(SpdyCodec, HostileBytesEndTheConnection) {
  struct Case {
    std::string what;
    std::string bytes;
    std::string_view error;
  };
  const std::vector<Case> cases = {
      {"version 2", FromHex("8002000600000004000000") + "\x01", "version 3"},
      {"a control frame of 16 MiB", FromHex("8003000100ffffff"), "too big"},
      {"a ping of 5 bytes", FromHex("80030006000000050000000100"), "wrong size"},
      {"a SYN_STREAM of 4 bytes", FromHex("800300010000000400000001"), "wrong size"},
      {"data of stream 0", FromHex("000000000000000178"), "stream 0"},
      {"no zlib", FromHex("800300010000000e00000001000000000000deadbeef"), "unpacked"},
      {"an empty block", SynWithBlock(""), "cut off"},
      {"more headers than there are", SynWithBlock(FromHex("00000002000000016100000000")),
       "cut off"},
      {"a name longer than the block", SynWithBlock(FromHex("00000001ffffffff61")), "cut off"},
      {"bytes after the headers", SynWithBlock(FromHex("0000000078")), "more than"},
      {"a capital", SynWithBlock(FromHex("00000001000000014100000000")), "capitals"},
      {"no name", SynWithBlock(FromHex("000000010000000000000000")), "empty"},
      {"a name twice", SynWithBlock(FromHex("0000000200000001610000000000000001610000000178")),
       "twice"},
      {"a block that grows without end", SynWithBlock(std::string(8 << 20, 'x')), "too big"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const std::vector<std::string> frames = Decode(c.bytes);
    ASSERT_EQ(frames.size(), 1);
    EXPECT_THAT(frames[0], HasSubstr(std::string(c.error)));
  }
}

TEST(SpdyCodec, WhatIsNotKnownIsSkipped) {
  // SETTINGS, WINDOW_UPDATE, CREDENTIAL, then a ping.
  EXPECT_THAT(Decode(FromHex("800300040000000400000000"
                             "80030009000000080000000100001000"
                             "8003000a0000000400000000"
                             "800300060000000400000007")),
              ElementsAre("6:7"));
}

RC_GTEST_PROP(SpdyCodecProperty, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  SpdyDecoder decoder;
  std::string given = FromHex(kRecorded).substr(0, *rc::gen::inRange<size_t>(0, 160)) + bytes;
  decoder.Feed(given);
  size_t frames = 0;
  for (auto next = decoder.Next(); next && *next; next = decoder.Next()) ++frames;
  RC_ASSERT(frames <= given.size());
}

// A stream in memory: keeps what is sent, is fed by the test.
class FakeStream : public ByteStream {
 public:
  void Start(Handlers handlers) override { handlers_ = std::move(handlers); }
  using ByteStream::Send;
  bool Send(Buffer bytes) override {
    if (full || closed) return false;
    sent += *bytes;
    return true;
  }
  void End() override {}
  void Close() override { closed = true; }
  size_t buffered_bytes() const override { return 0; }
  void OnWritable(Task) override {}
  void Pause() override { paused = true; }
  void Resume() override { paused = false; }
  const Peer& peer() const override { return peer_; }

  void Feed(std::string_view bytes) { handlers_.on_data(bytes); }
  // As every stream does in the end: its handlers go, and what they hold.
  void Lose() {
    Handlers handlers = std::exchange(handlers_, {});
    if (handlers.on_close) handlers.on_close({});
  }

  std::string sent;
  bool full = false;
  bool closed = false;
  bool paused = false;

 private:
  Handlers handlers_;
  Peer peer_;
};

// Tells what happens; accepts streams that do not say "no".
class Told : public SpdyConnection::Events {
 public:
  bool Accepts(const Headers& headers) override { return !headers.Has("no"); }
  void OnStream(uint32_t id, const Headers&) override { Tell("open", id); }
  void OnData(uint32_t id, std::string_view bytes) override {
    Tell("data", id);
    text += bytes;
    if (on_data) on_data();
  }
  void OnEnd(uint32_t id) override { Tell("end", id); }
  void OnReset(uint32_t id) override { Tell("reset", id); }
  void OnClosed() override { events.push_back("closed"); }

  std::vector<std::string> events;
  std::string text;
  std::function<void()> on_data;

 private:
  void Tell(std::string_view what, uint32_t id) {
    events.push_back(fmt::format("{} {}", what, id));
  }
};

class SpdyConnectionTest : public ::testing::Test {
 protected:
  ~SpdyConnectionTest() override { stream_->Lose(); }
  std::vector<std::string> Sent() { return Decode(decoder_, std::exchange(stream_->sent, {})); }

  std::shared_ptr<FakeStream> stream_ = std::make_shared<FakeStream>();
  std::shared_ptr<Told> told_ = std::make_shared<Told>();
  std::shared_ptr<SpdyConnection> connection_ = SpdyConnection::Serve(stream_, told_);
  SpdyEncoder client_;
  SpdyDecoder decoder_;
};

TEST_F(SpdyConnectionTest, StreamsOpenSpeakAndEnd) {
  stream_->Feed(client_.SynStream(1, {{"a", "b"}}, false) + SpdyEncoder::Data(1, "in", true));
  EXPECT_THAT(told_->events, ElementsAre("open 1", "data 1", "end 1"));
  EXPECT_TRUE(connection_->Send(1, "out"));
  connection_->End(1);
  EXPECT_FALSE(connection_->Send(1, "late"));
  EXPECT_THAT(Sent(), ElementsAre("2:1", "0:1 'out'", "0:1 fin"));
  stream_->Feed(SpdyEncoder::Data(1, "late", false));
  stream_->Lose();
  EXPECT_THAT(told_->events, ElementsAre("open 1", "data 1", "end 1", "closed"));
}

TEST_F(SpdyConnectionTest, StreamsThatMayNotBeAreReset) {
  stream_->Feed(client_.SynStream(1, {{"no", ""}}, false));  // not wanted
  stream_->Feed(client_.SynStream(2, {{"a", "b"}}, false));  // a server's number
  stream_->Feed(client_.SynStream(5, {{"a", "b"}}, false));
  stream_->Feed(client_.SynStream(3, {{"a", "b"}}, false));  // older than the last
  EXPECT_THAT(Sent(), ElementsAre("3:1 status 5", "3:2 status 1", "2:5", "3:3 status 1"));
  EXPECT_THAT(told_->events, ElementsAre("open 5"));
  stream_->Feed(SpdyEncoder::RstStream(5, SpdyReset::kCancel));
  EXPECT_THAT(told_->events, ElementsAre("open 5", "reset 5"));
  EXPECT_FALSE(connection_->Send(5, "late"));
}

TEST_F(SpdyConnectionTest, TooManyStreamsAreRefused) {
  for (uint32_t i = 0; i < kMaxSpdyStreams; ++i) {
    stream_->Feed(client_.SynStream(2 * i + 1, {}, false));
  }
  Sent();
  const auto next = static_cast<uint32_t>(2 * kMaxSpdyStreams + 1);
  stream_->Feed(client_.SynStream(next, {}, false));
  EXPECT_THAT(Sent(), ElementsAre(fmt::format("3:{} status 3", next)));
  stream_->Feed(SpdyEncoder::RstStream(1, SpdyReset::kCancel));
  stream_->Feed(client_.SynStream(next + 2, {}, false));
  EXPECT_THAT(Sent(), ElementsAre(fmt::format("2:{}", next + 2)));
}

TEST_F(SpdyConnectionTest, PingsComeBackAndGoodbyesAreAnswered) {
  stream_->Feed(SpdyEncoder::Ping(1) + SpdyEncoder::Ping(2));
  EXPECT_THAT(Sent(), ElementsAre("6:1"));
  stream_->Feed(SpdyEncoder::GoAway(0, false));
  EXPECT_THAT(Sent(), ElementsAre("7:0"));
  EXPECT_TRUE(stream_->closed);
}

TEST_F(SpdyConnectionTest, ABrokenFrameEndsIt) {
  stream_->Feed(client_.SynStream(1, {}, false) + FromHex("8002000600000004") +
                SpdyEncoder::Data(1, "late", false));
  EXPECT_THAT(Sent(), ElementsAre("2:1", "7:1 status 1"));
  EXPECT_TRUE(stream_->closed);
  EXPECT_THAT(told_->events, ElementsAre("open 1"));
}

TEST_F(SpdyConnectionTest, APausedConnectionHandsNothingOn) {
  told_->on_data = [this] { connection_->Pause(); };
  stream_->Feed(client_.SynStream(1, {}, false) + SpdyEncoder::Data(1, "a", false) +
                SpdyEncoder::Data(1, "b", false) + SpdyEncoder::Data(1, "", true));
  EXPECT_TRUE(stream_->paused);
  EXPECT_THAT(told_->events, ElementsAre("open 1", "data 1"));
  connection_->Resume();  // and pauses again
  EXPECT_EQ(told_->text, "ab");
  EXPECT_THAT(told_->events, ElementsAre("open 1", "data 1", "data 1"));
  connection_->Resume();
  EXPECT_THAT(told_->events, ElementsAre("open 1", "data 1", "data 1", "end 1"));
}

TEST_F(SpdyConnectionTest, AClientThatReadsNothingIsCutOff) {
  stream_->full = true;
  stream_->Feed(SpdyEncoder::Ping(1));
  EXPECT_TRUE(stream_->closed);
  EXPECT_THAT(told_->events, IsEmpty());
}

// Sends back what comes.
class Echo : public SpdyConnection::Events {
 public:
  bool Accepts(const Headers&) override { return true; }
  void OnStream(uint32_t, const Headers&) override {}
  void OnData(uint32_t id, std::string_view bytes) override { connection->Send(id, bytes); }
  void OnEnd(uint32_t id) override { connection->End(id); }
  void OnReset(uint32_t) override {}
  void OnClosed() override { connection.reset(); }
  std::shared_ptr<SpdyConnection> connection;
};

void ServeEcho(std::shared_ptr<ByteStream> stream) {
  auto echo = std::make_shared<Echo>();
  echo->connection = SpdyConnection::Serve(std::move(stream), echo);
}

// Collects until stream 1 is at its end.
auto Collect(const std::shared_ptr<SpdyDecoder>& decoder, std::function<void(std::string)> done) {
  return [decoder, text = std::make_shared<std::string>(),
          done = std::move(done)](std::string_view bytes) {
    decoder->Feed(bytes);
    for (auto next = decoder->Next(); next && *next; next = decoder->Next()) {
      *text += (*next)->data;
      if ((*next)->fin) done(*text);
    }
  };
}

class SpdyWireTest : public NetTest {};

TEST_F(SpdyWireTest, AnHttpUpgradeLeavesTheBytes) {
  Serve([](const Request& request, const std::shared_ptr<ResponseWriter>& writer) {
    if (!request.IsUpgradeTo("SPDY/3.1")) return writer->SendResponse(400, {}, "no upgrade\n");
    writer->Hijack({{"upgrade", "SPDY/3.1"}, {"x-stream-protocol-version", "echo"}},
                   [writer](std::shared_ptr<ByteStream> stream) { ServeEcho(std::move(stream)); });
  });
  HttpClient client(io_, loop_, Options());
  Awaited<Result<Upgraded>> opened;
  client.OpenUpgrade({.target = "/", .headers = {}, .to = "SPDY/3.1"}, opened.Setter());
  const auto upgraded = opened.Get();
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  EXPECT_EQ(upgraded->headers.Get("x-stream-protocol-version"), "echo");
  Awaited<std::string> answer;
  SpdyEncoder encoder;
  upgraded->stream->Start(
      {Collect(std::make_shared<SpdyDecoder>(), answer.Setter()), {}, [](const Status&) {}});
  upgraded->stream->Send(encoder.SynStream(1, {}, false) + SpdyEncoder::Data(1, "hello", true));
  EXPECT_EQ(answer.Get(), "hello");

  Awaited<Result<Upgraded>> refused;
  client.OpenUpgrade({.target = "/", .headers = {}, .to = "gopher"}, refused.Setter());
  const auto why = refused.Get();
  ASSERT_FALSE(why);
  EXPECT_EQ(why.error().code, 400);
  EXPECT_EQ(why.error().message, "no upgrade");
}

TEST_F(SpdyWireTest, AWebSocketCarriesTheBytes) {
  Serve([](const Request&, const std::shared_ptr<ResponseWriter>& writer) {
    writer->UpgradeWebSocket("SPDY/3.1+echo.k8s.io", [writer](std::shared_ptr<WebSocket> socket) {
      ServeEcho(TunnelOver(std::move(socket)));
    });
  });
  HttpClient client(io_, loop_, Options());
  Awaited<Result<std::shared_ptr<WebSocket>>> opened;
  client.OpenWebSocket({.target = "/", .headers = {}, .protocols = {"SPDY/3.1+echo.k8s.io"}},
                       opened.Setter());
  const auto socket = opened.Get();
  ASSERT_TRUE(socket) << socket.error().message;
  const auto tunnel = TunnelOver(*socket);
  Awaited<std::string> answer;
  Awaited<bool> closed;
  SpdyEncoder encoder;
  tunnel->Start({Collect(std::make_shared<SpdyDecoder>(), answer.Setter()),
                 {},
                 [set = closed.Setter()](const Status& why) { set(why.has_value()); }});
  const std::string bytes = encoder.SynStream(1, {}, false) + SpdyEncoder::Data(1, "hello", true);
  for (char byte : bytes) tunnel->Send(std::string(1, byte));  // messages have no meaning
  EXPECT_EQ(answer.Get(), "hello");
  (*socket)->Send(false, "text");
  EXPECT_FALSE(closed.Get());
}

}  // namespace
}  // namespace sextant::net
