// Client and server sessions wired together in memory, and a server session fed by hand.
#include "net/session.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "base/executor.h"
#include "net/client.h"

namespace sextant::net {
namespace {

using ::testing::HasSubstr;

// A body that comes when the test says so.
class FedBody : public BodySource {
 public:
  Piece Read(char* to, size_t max) override {
    const size_t n = std::min(max, bytes.size());
    std::memcpy(to, bytes.data(), n);
    bytes.erase(0, n);
    return {.size = n, .end = end && bytes.empty(), .broken = broken};
  }
  std::string bytes;
  bool end = false;
  bool broken = false;
};

struct ServerSide : ServerSession::Events {
  void OnRequest(StreamId id, Request request) override { requests.emplace_back(id, request); }
  void OnStreamClosed(StreamId id) override { closed.push_back(id); }
  std::vector<std::pair<StreamId, Request>> requests;
  std::vector<StreamId> closed;
};

struct ClientSide : ClientSession::Events {
  struct Answer {
    int status = 0;
    Headers headers;
    std::string body;
    std::optional<Status> done;
    bool unprocessed = false;
  };
  void OnHeaders(StreamId id, int status, Headers headers) override {
    answers[id].status = status;
    answers[id].headers = std::move(headers);
  }
  void OnData(StreamId id, std::string_view bytes) override {
    answers[id].body += bytes;
    session->Consume(id, bytes.size());
  }
  void OnDone(StreamId id, Status status, bool unprocessed) override {
    EXPECT_FALSE(answers[id].done);
    answers[id].done = std::move(status);
    answers[id].unprocessed = unprocessed;
  }
  ClientSession* session = nullptr;
  std::map<StreamId, Answer> answers;
};

// A client and a server with a wire between them that cuts where `cut` says.
struct Pair {
  explicit Pair(bool http2, ServerLimits limits = {}) {
    const ServerSessionOptions options{.limits = limits};
    server = http2 ? NewH2ServerSession(clock, options, server_side)
                   : NewH1ServerSession(clock, options, server_side);
    client = http2 ? NewH2ClientSession(64 << 10, client_side)
                   : NewH1ClientSession(64 << 10, client_side);
    client_side.session = client.get();
  }

  static void Move(auto& from, auto& to, size_t cut, Status& result) {
    std::string wire;
    from.Take(wire, SIZE_MAX / 2);
    for (size_t at = 0; at < wire.size() && result; at += cut) {
      if (Status s = to.Feed(std::string_view(wire).substr(at, cut)); !s) result = s;
    }
    moved = moved || !wire.empty();
  }
  void Run(size_t cut = SIZE_MAX / 4) {
    do {
      moved = false;
      Move(*client, *server, cut, server_status);
      Move(*server, *client, cut, client_status);
    } while (moved);
  }
  StreamId Ask(std::string method, std::string target, std::string body = {},
               Headers headers = {}) {
    return client->Submit({.method = method,
                           .target = target,
                           .scheme = "https",
                           .authority = "h",
                           .headers = headers},
                          body.empty() ? nullptr : MakeBuffer(std::move(body)));
  }
  void Answer(StreamId id, int status, std::string body, Headers headers = {}) {
    const uint64_t size = body.size();
    server->Respond(id, {.status = status, .headers = headers, .length = size},
                    std::make_shared<WholeBody>(MakeBuffer(std::move(body))));
  }
  StreamId last() const { return server_side.requests.back().first; }

  static inline bool moved = false;
  ManualLoop clock;
  ServerSide server_side;
  ClientSide client_side;
  std::unique_ptr<ServerSession> server;
  std::unique_ptr<ClientSession> client;
  Status server_status;
  Status client_status;
};

RC_GTEST_PROP(Wired, RequestsGoThroughInAnyCut, ()) {
  const bool http2 = *rc::gen::arbitrary<bool>();
  const auto cut = *rc::gen::inRange<size_t>(1, 3000);
  const auto bodies = *rc::gen::resize(
      10, rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>()));
  Pair pair(http2);
  for (std::string body : bodies) {
    if (body.size() % 2 == 1) body = std::string(body.size() * 9000, 'x') + body;
    const StreamId id = pair.Ask("POST", "/a?b", body, {{"x-n", "v"}});
    pair.Run(cut);
    RC_ASSERT(pair.server_side.requests.size() > 0u);
    const Request& r = pair.server_side.requests.back().second;
    RC_ASSERT(r.method == "POST" && r.path == "/a" && r.query == "b" && r.body == body);
    RC_ASSERT(r.headers.Get("x-n") == "v" && r.headers.Get("host") == "h");
    pair.Answer(pair.last(), 201, body + body, {{"x-m", "w"}});
    pair.Run(cut);
    const auto& answer = pair.client_side.answers.at(id);
    RC_ASSERT(answer.status == 201);
    RC_ASSERT(answer.body == body + body);
    RC_ASSERT(answer.headers.Get("x-m") == "w");
    RC_ASSERT(answer.done.has_value() && answer.done->has_value());
  }
  RC_ASSERT(pair.server_side.closed.size() == bodies.size());
  RC_ASSERT(pair.server_status.has_value() && pair.client_status.has_value());
}

class BothVersions : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Wired, BothVersions, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "http2" : "http1"; });

TEST_P(BothVersions, StreamedAnswer) {
  Pair pair(GetParam());
  const StreamId id = pair.Ask("GET", "/watch");
  pair.Run();
  const auto body = std::make_shared<FedBody>();
  pair.server->Respond(pair.last(), {.status = 200}, body);
  pair.Run();
  EXPECT_EQ(pair.client_side.answers[id].status, 200);
  EXPECT_FALSE(pair.client_side.answers[id].done);
  for (const char* piece : {"one", "two"}) {
    body->bytes = piece;
    pair.server->Resume(pair.last());
    pair.Run();
    EXPECT_TRUE(pair.client_side.answers[id].body.ends_with(piece));
  }
  body->end = true;
  pair.server->Resume(pair.last());
  pair.Run();
  EXPECT_TRUE(pair.client_side.answers[id].done && *pair.client_side.answers[id].done);
  EXPECT_EQ(pair.client_side.answers[id].body, "onetwo");
  EXPECT_EQ(pair.server_side.closed.size(), 1u);
}

TEST_P(BothVersions, BrokenBodyIsAnError) {
  Pair pair(GetParam());
  const StreamId id = pair.Ask("GET", "/");
  pair.Run();
  const auto body = std::make_shared<FedBody>();
  body->bytes = "half";
  pair.server->Respond(pair.last(), {.status = 200}, body);
  pair.Run();
  body->broken = true;
  pair.server->Resume(pair.last());
  pair.Run();
  if (pair.server->finished()) pair.client->End(TransportError("closed"));
  ASSERT_TRUE(pair.client_side.answers[id].done);
  EXPECT_FALSE(*pair.client_side.answers[id].done);
  EXPECT_EQ(pair.server_side.closed.size(), 1u);
}

TEST_P(BothVersions, HeadersThatWouldSplitAreLeftOut) {
  Pair pair(GetParam());
  const StreamId id = pair.Ask("GET", "/", {}, {{"x-evil", "a\r\nx-injected: 1"}, {"x-ok", "1"}});
  pair.Run();
  EXPECT_FALSE(pair.server_side.requests.back().second.headers.Has("x-evil"));
  EXPECT_FALSE(pair.server_side.requests.back().second.headers.Has("x-injected"));
  pair.Answer(pair.last(), 200, "b",
              {{"location", "x\r\n\r\n<script>"}, {"bad name", "1"}, {"x-ok", "1"}});
  pair.Run();
  EXPECT_FALSE(pair.client_side.answers[id].headers.Has("location"));
  EXPECT_EQ(pair.client_side.answers[id].headers.Get("x-ok"), "1");
  EXPECT_EQ(pair.client_side.answers[id].body, "b");
}

TEST_P(BothVersions, IdleConnectionsEnd) {
  Pair pair(GetParam());
  pair.Ask("GET", "/");
  pair.Run();
  pair.clock.Advance(std::chrono::hours(1));  // a request is being handled: no limit
  EXPECT_TRUE(pair.server->Sweep());
  EXPECT_FALSE(pair.server->finished());
  pair.Answer(pair.last(), 200, "x");
  pair.Run();
  pair.clock.Advance(std::chrono::seconds(89));
  EXPECT_TRUE(pair.server->Sweep());
  EXPECT_FALSE(pair.server->finished());
  pair.clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(pair.server->Sweep());
  pair.Run();
  EXPECT_TRUE(pair.server->finished());
}

TEST_P(BothVersions, SlowBodiesEnd) {
  Pair pair(GetParam());
  const StreamId id = pair.Ask("POST", "/", std::string(100'000, 'b'));
  std::string wire;
  pair.client->Take(wire, 50'000);
  ASSERT_TRUE(pair.server->Feed(std::string_view(wire).substr(0, 20'000)));
  pair.clock.Advance(std::chrono::seconds(20));
  ASSERT_TRUE(pair.server->Feed(std::string_view(wire).substr(20'000, 10'000)));
  pair.clock.Advance(std::chrono::seconds(20));  // 20 s since the last byte: still fine
  EXPECT_TRUE(pair.server->Sweep());
  pair.clock.Advance(std::chrono::seconds(12));
  EXPECT_TRUE(pair.server->Sweep());
  Pair::Move(*pair.server, *pair.client, SIZE_MAX / 4, pair.client_status);
  const auto& answer = pair.client_side.answers[id];
  ASSERT_TRUE(answer.done);
  EXPECT_TRUE(answer.status == 408 || !*answer.done);
  EXPECT_TRUE(pair.server_side.requests.empty());
}

TEST_P(BothVersions, ShutdownLetsTheOpenRequestEnd) {
  Pair pair(GetParam());
  const StreamId id = pair.Ask("GET", "/");
  pair.Run();
  pair.server->Shutdown();
  pair.Run();
  EXPECT_FALSE(pair.server->finished());
  pair.Answer(pair.last(), 200, "bye");
  pair.Run();
  EXPECT_EQ(pair.client_side.answers[id].body, "bye");
  EXPECT_TRUE(pair.client->closing());
  EXPECT_EQ(pair.client->capacity(), 0u);
  EXPECT_TRUE(pair.server->finished());
}

TEST(H1Session, PipelinedRequestsAreAnsweredInOrder) {
  ManualLoop clock;
  ServerSide side;
  const auto server = NewH1ServerSession(clock, {}, side);
  std::string wire;
  for (int i = 0; i < 3; ++i) wire += fmt::format("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", i);
  ASSERT_TRUE(server->Feed(wire));
  std::string out;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(side.requests.size(), static_cast<size_t>(i) + 1);  // one at a time
    EXPECT_EQ(side.requests.back().second.path, fmt::format("/{}", i));
    server->Respond(side.requests.back().first, {.status = 200, .length = 1},
                    std::make_shared<WholeBody>(MakeBuffer(std::to_string(i))));
    server->Take(out, 10'000);
  }
  EXPECT_LT(out.find("\r\n\r\n0"), out.find("\r\n\r\n1"));
  // While one is handled, what follows is held to a bound.
  ASSERT_TRUE(server->Feed("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_TRUE(server->wants_read());
  ASSERT_TRUE(server->Feed(std::string(70'000, 'x')));
  EXPECT_FALSE(server->wants_read());
}

TEST(H1Session, BadRequestIsAnsweredAndEndsTheConnection) {
  ManualLoop clock;
  ServerSide side;
  const auto server =
      NewH1ServerSession(clock,
                         {.render_error =
                              [](const Error& e) {
                                return ErrorAnswer{{{"content-type", "application/json"}},
                                                   fmt::format("{{\"code\":{}}}", e.code)};
                              }},
                         side);
  ASSERT_TRUE(
      server->Feed("GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\nGET /smuggled HTTP/1.1\r\n"));
  std::string out;
  server->Take(out, 10'000);
  EXPECT_THAT(out, HasSubstr("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(out, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(out, HasSubstr("\r\n\r\n{\"code\":400}"));
  EXPECT_TRUE(server->finished());
  EXPECT_TRUE(side.requests.empty());
}

TEST(H1Session, SlowHeadersAre408) {
  ManualLoop clock;
  ServerSide side;
  const auto server = NewH1ServerSession(clock, {}, side);
  for (int i = 0; i < 31; ++i) {  // a byte a second does not help
    ASSERT_TRUE(server->Feed("G"));
    clock.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(server->Sweep());
    EXPECT_FALSE(server->finished());
  }
  clock.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(server->Sweep());
  std::string out;
  server->Take(out, 10'000);
  EXPECT_THAT(out, HasSubstr("HTTP/1.1 408 "));
  EXPECT_TRUE(server->finished());
}

TEST(H1Session, ContinueIsSentBeforeTheBody) {
  ManualLoop clock;
  ServerSide side;
  const auto server = NewH1ServerSession(clock, {}, side);
  ASSERT_TRUE(server->Feed(
      "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  std::string out;
  server->Take(out, 10'000);
  EXPECT_EQ(out, "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(server->Feed("ab"));
  ASSERT_EQ(side.requests.size(), 1u);
  EXPECT_EQ(side.requests[0].second.body, "ab");
}

TEST(H1Session, OldClientsGetBodiesThatEndWithTheConnection) {
  ManualLoop clock;
  ServerSide side;
  const auto server = NewH1ServerSession(clock, {}, side);
  ASSERT_TRUE(server->Feed("GET / HTTP/1.0\r\n\r\n"));
  const auto body = std::make_shared<FedBody>();
  body->bytes = "abc";
  body->end = true;
  server->Respond(side.requests[0].first, {.status = 200}, body);
  std::string out;
  server->Take(out, 10'000);
  EXPECT_THAT(out, ::testing::Not(HasSubstr("chunked")));
  EXPECT_TRUE(out.ends_with("\r\n\r\nabc"));
  EXPECT_TRUE(server->finished());
}

TEST(H1Session, ClientRefusesBytesNobodyAskedFor) {
  ClientSide side;
  const auto client = NewH1ClientSession(64 << 10, side);
  EXPECT_FALSE(client->Feed("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
  EXPECT_TRUE(client->closing());
}

// HTTP/2 by hand ----------------------------------------------------------------------------------

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  for (int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift & 255);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 255);
  return out + std::string(payload);
}
constexpr uint8_t kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6,
                  kWindowUpdate = 8, kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;
// GET https://h/ in HPACK (RFC 7541 appendix A).
const std::string kGet("\x82\x87\x84\x41\x01h", 6);
const std::string kPost("\x83\x87\x84\x41\x01h", 6);

struct ByHand {
  explicit ByHand(ServerLimits limits = {}) {
    server = NewH2ServerSession(clock, {.limits = limits}, side);
    Feed(std::string(kH2Preface) + Frame(kSettings, 0, 0, ""));
  }
  bool Feed(const std::string& bytes) {
    if (failed) return false;
    failed = !server->Feed(bytes);
    server->Take(out, SIZE_MAX / 2);
    return !failed;
  }
  // The type and error code of a GOAWAY in what came out; -1 if there is none.
  int GoAway() const {
    for (size_t at = 0; at + 9 <= out.size();) {
      const auto byte = [&](size_t i) { return static_cast<uint8_t>(out[at + i]); };
      const size_t size = static_cast<size_t>(byte(0) << 16 | byte(1) << 8 | byte(2));
      if (byte(3) == 7) return byte(9 + 7);
      at += 9 + size;
    }
    return -1;
  }
  ManualLoop clock;
  ServerSide side;
  std::unique_ptr<ServerSession> server;
  std::string out;
  bool failed = false;
};

constexpr int kCalm = 11;  // ENHANCE_YOUR_CALM

TEST(H2Flood, ControlFramesEndTheConnection) {
  const std::pair<const char*, std::string> floods[] = {
      {"PING", Frame(kPing, 0, 0, "12345678")},
      {"PING ack", Frame(kPing, 1, 0, "12345678")},
      {"SETTINGS", Frame(kSettings, 0, 0, "")},
      {"PRIORITY", Frame(kPriority, 0, 3, std::string("\0\0\0\0\x01", 5))},
      {"WINDOW_UPDATE", Frame(kWindowUpdate, 0, 0, std::string("\0\0\0\x01", 4))},
  };
  for (const auto& [name, frame] : floods) {
    ByHand h;
    int count = 0;
    while (count < 10'000 && h.Feed(frame)) ++count;
    EXPECT_LT(count, 3000) << name;
    EXPECT_GT(count, 500) << name;
    EXPECT_EQ(h.GoAway(), kCalm) << name;
  }
}

TEST(H2Flood, EmptyDataEndsTheConnection) {
  ByHand h;
  ASSERT_TRUE(h.Feed(Frame(kHeaders, kEndHeaders, 1, kPost)));
  int count = 0;
  while (count < 10'000 && h.Feed(Frame(kData, 0, 1, ""))) ++count;
  EXPECT_LT(count, 3000);
}

TEST(H2Flood, HonestControlFramesOverTimeAreFine) {
  ByHand h;
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(h.Feed(Frame(kPing, 0, 0, "12345678"))) << i;
    h.clock.Advance(std::chrono::milliseconds(20));
  }
}

TEST(H2Flood, RapidResetsEndTheConnection) {
  ByHand h;
  uint32_t id = 1;
  int count = 0;
  while (count < 10'000 && !h.server->finished() &&
         h.Feed(Frame(kHeaders, kEndHeaders | kEndStream, id, kGet) +
                Frame(kReset, 0, id, std::string("\0\0\0\x08", 4)))) {
    id += 2;
    ++count;
  }
  EXPECT_LT(count, 3000);
  EXPECT_NE(h.GoAway(), -1);
}

TEST(H2Flood, ContinuationsAreBounded) {
  ByHand h;
  ASSERT_TRUE(h.Feed(Frame(kHeaders, kEndStream, 1, kGet)));
  // Literal headers without indexing, a kilobyte each.
  const std::string field = std::string("\x00\x01x\x7f\xe1\x06", 6) + std::string(993, 'v');
  int count = 0;
  while (count < 1000 && h.Feed(Frame(kContinuation, 0, 1, field))) ++count;
  EXPECT_LT(count, 200);
  EXPECT_TRUE(h.side.requests.empty());
}

TEST(H2Session, AtMostSoManyStreams) {
  ServerLimits limits;
  limits.max_streams = 3;
  ByHand h(limits);
  h.Feed(Frame(kSettings, 1, 0, ""));  // the limit holds from here
  for (uint32_t id = 1; id <= 9; id += 2) {
    h.Feed(Frame(kHeaders, kEndHeaders | kEndStream, id, kGet));
  }
  EXPECT_EQ(h.side.requests.size(), 3u);
}

TEST(H2Session, BadFramesAreRefused) {
  const std::pair<const char*, std::string> cases[] = {
      {"no SETTINGS size", Frame(kSettings, 0, 0, "12345")},
      {"SETTINGS on a stream", Frame(kSettings, 0, 1, "")},
      {"PING size", Frame(kPing, 0, 0, "1")},
      {"DATA on stream 0", Frame(kData, 0, 0, "x")},
      {"DATA on an idle stream", Frame(kData, 0, 5, "x")},
      {"HEADERS on an even stream", Frame(kHeaders, kEndHeaders | kEndStream, 2, kGet)},
      {"HEADERS with bad HPACK",
       Frame(kHeaders, kEndHeaders | kEndStream, 1, "\xff\xff\xff\xff\xff\xff")},
      {"CONTINUATION of nothing", Frame(kContinuation, kEndHeaders, 1, kGet)},
      {"DATA within a header block", Frame(kHeaders, 0, 1, kGet) + Frame(kData, 0, 1, "x")},
      {"WINDOW_UPDATE of zero", Frame(kWindowUpdate, 0, 0, std::string(4, '\0'))},
      {"too large a frame", Frame(kData, 0, 1, std::string(20'000, 'x'))},
  };
  for (const auto& [name, bytes] : cases) {
    ByHand h;
    h.Feed(bytes);
    EXPECT_NE(h.GoAway(), -1) << name;
    EXPECT_TRUE(h.side.requests.empty()) << name;
  }
  ServerSide side;
  ManualLoop clock;
  EXPECT_FALSE(NewH2ServerSession(clock, {}, side)->Feed("GET / HTTP/1.1\r\n\r\n"));
}

TEST(H2Session, MalformedRequestsAreRefused) {
  const auto literal = [](std::string name, std::string value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name +
           static_cast<char>(value.size()) + value;
  };
  const std::pair<const char*, std::string> cases[] = {
      {"upper-case name", kGet + literal("X", "v")},
      {"connection header", kGet + literal("connection", "close")},
      {"transfer-encoding", kGet + literal("transfer-encoding", "chunked")},
      {"line break in a value", kGet + literal("x", "a\r\nb")},
      {"no path", std::string("\x82\x87\x41\x01h", 5)},
      {"two methods", std::string("\x82\x83\x87\x84\x41\x01h", 7)},
      {"unknown pseudo-header", kGet + literal(":x", "v")},
      {"pseudo-header after a header",
       std::string("\x82\x87\x41\x01h", 5) + literal("x", "v") + "\x84"},
      {"path without a slash", std::string("\x82\x87\x41\x01h", 5) + "\x44\x01"
                                                                     "a"},
      {"bad length", kGet + literal("content-length", "-1")},
      {"two lengths", kGet + literal("content-length", "0") + literal("content-length", "1")},
      {"length without a body", kGet + literal("content-length", "5")},
  };
  for (const auto& [name, block] : cases) {
    ByHand h;
    h.Feed(Frame(kHeaders, kEndHeaders | kEndStream, 1, block));
    EXPECT_TRUE(h.side.requests.empty()) << name;
  }
  ByHand h;
  h.Feed(Frame(kHeaders, kEndHeaders | kEndStream, 1, kGet + literal("x", "v")));
  ASSERT_EQ(h.side.requests.size(), 1u);
  EXPECT_EQ(h.side.requests[0].second.authority, "h");
}

TEST(H2Session, ConnectionsThatStopWithinAHeaderBlockEnd) {
  ByHand h;
  h.Feed(Frame(kHeaders, kEndStream, 1, kGet));
  h.clock.Advance(std::chrono::seconds(31));
  EXPECT_TRUE(h.server->Sweep());
  h.clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(h.server->Sweep());
}

TEST(H2Session, UnixClientsMaySendAnyAuthority) {
  ManualLoop clock;
  ServerSide side;
  const auto server = NewH2ServerSession(clock, {.any_authority = true}, side);
  const std::string path = "/run/a b.sock";
  ASSERT_TRUE(server->Feed(
      std::string(kH2Preface) + Frame(kSettings, 0, 0, "") +
      Frame(kHeaders, kEndHeaders | kEndStream, 1, std::string("\x82\x86\x84\x41\x0d", 5) + path)));
  ASSERT_EQ(side.requests.size(), 1u);
  EXPECT_EQ(side.requests[0].second.authority, path);
}

// Frames in any order with any content: no crash, no request that breaks the rules.
RC_GTEST_PROP(H2Session, AnyFramesAreSafe, ()) {
  ByHand h({.max_body = 100});
  const auto count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count && !h.failed; ++i) {
    const auto type = *rc::gen::inRange<int>(0, 11);
    const auto flags = *rc::gen::element<int>(0, 1, 4, 5, 8, 0x20, 0xff);
    const auto stream = *rc::gen::element<uint32_t>(0, 1, 1, 3, 5, 2);
    const auto payload = *rc::gen::oneOf(rc::gen::just(kGet), rc::gen::just(kPost),
                                         rc::gen::arbitrary<std::string>());
    h.Feed(Frame(static_cast<uint8_t>(type), static_cast<uint8_t>(flags), stream, payload));
    if (!h.side.requests.empty() && *rc::gen::arbitrary<bool>()) {
      const StreamId id = h.side.requests.back().first;
      h.server->Respond(id, {.status = 200, .length = 3},
                        std::make_shared<WholeBody>(MakeBuffer("abc")));
    }
  }
  for (const auto& [id, request] : h.side.requests) {
    RC_ASSERT(request.body.size() <= 100u);
    RC_ASSERT(request.path.starts_with("/") || request.path == "*");
  }
}

TEST(H2Client, LearnsTheServersLimit) {
  ServerLimits limits;
  limits.max_streams = 7;
  Pair pair(true, limits);
  EXPECT_EQ(pair.client->capacity(), 100u);
  pair.Run();
  EXPECT_EQ(pair.client->capacity(), 7u);
  pair.Ask("GET", "/");
  EXPECT_EQ(pair.client->capacity(), 6u);
}

TEST(H2Client, UnconsumedBytesHoldTheServerBack) {
  Pair pair(true);
  const StreamId id = pair.Ask("GET", "/");
  pair.Run();
  struct Hoarder : ClientSide {
    void OnData(StreamId i, std::string_view bytes) override { answers[i].body += bytes; }
  };
  // A second client whose owner uses nothing up.
  Hoarder hoarder;
  const auto client = NewH2ClientSession(64 << 10, hoarder);
  ServerSide side;
  const auto server = NewH2ServerSession(pair.clock, {}, side);
  const StreamId stream = client->Submit(
      {.method = "GET", .target = "/", .scheme = "https", .authority = "h"}, nullptr);
  const auto run = [&] {
    Status s;
    do {
      Pair::moved = false;
      Pair::Move(*client, *server, SIZE_MAX / 4, s);
      Pair::Move(*server, *client, SIZE_MAX / 4, s);
    } while (Pair::moved);
  };
  run();
  server->Respond(side.requests[0].first, {.status = 200},
                  std::make_shared<WholeBody>(MakeBuffer(std::string(5 << 20, 'x'))));
  run();
  EXPECT_EQ(hoarder.answers[stream].body.size(), size_t{1} << 20);  // one stream window
  client->Consume(stream, 1 << 20);
  run();
  EXPECT_EQ(hoarder.answers[stream].body.size(), size_t{2} << 20);
  client->Cancel(stream);
  run();
  EXPECT_EQ(side.closed.size(), 1u);
  static_cast<void>(id);
}

TEST(H2Client, RefusedStreamsAreUnprocessed) {
  Pair pair(true);
  pair.Run();
  pair.Ask("GET", "/1");
  pair.Run();
  pair.server->Shutdown();  // GOAWAY; the next request crosses it on the wire
  const StreamId late = pair.Ask("GET", "/2");
  pair.Run();
  ASSERT_TRUE(pair.client_side.answers[late].done);
  EXPECT_FALSE(*pair.client_side.answers[late].done);
  EXPECT_TRUE(pair.client_side.answers[late].unprocessed);
  EXPECT_EQ(pair.server_side.requests.size(), 1u);
}

}  // namespace
}  // namespace sextant::net
