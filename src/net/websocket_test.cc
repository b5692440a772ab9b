#include "net/websocket.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <fstream>

#include "net/test_util.h"
#include "net/ws_codec.h"

namespace sextant::net {
namespace {

using ::testing::HasSubstr;
using Bytes = std::string;

Bytes Masked(WsOp op, std::string_view payload) { return EncodeFrame(op, payload, 0x12345678); }

TEST(WsCodec, KnownFrames) {  // RFC 6455 section 5.7
  EXPECT_EQ(EncodeFrame(WsOp::kText, "Hello", {}), Bytes("\x81\x05Hello"));
  WsDecoder decoder(WsDecoder::Role::kServer, 1000);
  decoder.Feed(Bytes("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11));
  const auto next = decoder.Next();
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->op, WsOp::kText);
  EXPECT_EQ((*next)->payload, "Hello");
}

RC_GTEST_PROP(WsCodec, GoesRoundInAnyCut, ()) {
  const auto messages = *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<Bytes>());
  const bool to_server = *rc::gen::arbitrary<bool>();
  Bytes wire;
  for (const Bytes& m : messages) {
    const Bytes payload = m.size() % 3 == 0 ? Bytes(m.size() * 700, 'x') : m;
    wire += EncodeFrame(WsOp::kBinary, payload,
                        to_server ? std::optional<uint32_t>(0xa1b2c3d4) : std::nullopt);
  }
  WsDecoder decoder(to_server ? WsDecoder::Role::kServer : WsDecoder::Role::kClient, 1 << 20);
  std::vector<Bytes> got;
  while (!wire.empty()) {
    const size_t cut = *rc::gen::inRange<size_t>(1, wire.size() + 1);
    decoder.Feed(wire.substr(0, cut));
    wire.erase(0, cut);
    while (true) {
      auto next = decoder.Next();
      RC_ASSERT(next.has_value());
      if (!*next) break;
      got.push_back((*next)->payload);
    }
  }
  RC_ASSERT(got.size() == messages.size());
  for (size_t i = 0; i < got.size(); ++i) {
    RC_ASSERT(got[i] ==
              (messages[i].size() % 3 == 0 ? Bytes(messages[i].size() * 700, 'x') : messages[i]));
  }
}

TEST(WsCodec, FragmentsWithControlFramesBetween) {
  WsDecoder decoder(WsDecoder::Role::kClient, 1000);
  decoder.Feed(
      Bytes("\x02\x02"
            "ab"
            "\x89\x01"
            "p"
            "\x00\x01"
            "c"
            "\x80\x01"
            "d",
            4 + 3 + 3 + 3));
  auto next = decoder.Next();
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->op, WsOp::kPing);
  next = decoder.Next();
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->op, WsOp::kBinary);
  EXPECT_EQ((*next)->payload, "abcd");
}

TEST(WsCodec, RefusesBadFrames) {
  struct Case {
    const char* what;
    Bytes wire;  // as from a server
    WsClose code;
  };
  const Case cases[] = {
      {"reserved bit", Bytes("\xc2\x00", 2), WsClose::kProtocolError},
      {"unknown opcode", Bytes("\x83\x00", 2), WsClose::kProtocolError},
      {"unknown control opcode", Bytes("\x8b\x00", 2), WsClose::kProtocolError},
      {"masked by the server", Masked(WsOp::kText, "x"), WsClose::kProtocolError},
      {"continuation of nothing", Bytes("\x80\x00", 2), WsClose::kProtocolError},
      {"message within a message", Bytes("\x01\x00\x01\x00", 4), WsClose::kProtocolError},
      {"fragmented ping", Bytes("\x09\x00", 2), WsClose::kProtocolError},
      {"long ping", Bytes("\x89\x7e\x00\x80", 4), WsClose::kProtocolError},
      {"longer form than needed", Bytes("\x82\x7e\x00\x7d", 4), WsClose::kProtocolError},
      {"length with the top bit", Bytes("\x82\x7f\xff\0\0\0\0\0\0\0", 10), WsClose::kProtocolError},
      {"too large", Bytes("\x82\x7e\x03\xe9", 4), WsClose::kTooBig},
      {"close of one byte", Bytes("\x88\x01\x03", 3), WsClose::kProtocolError},
      {"close code 1005", Bytes("\x88\x02\x03\xed", 4), WsClose::kProtocolError},
      {"text that is not UTF-8", Bytes("\x81\x02\xc0\x80", 4), WsClose::kBadText},
  };
  for (const Case& c : cases) {
    WsDecoder decoder(WsDecoder::Role::kClient, 1000);
    decoder.Feed(c.wire);
    auto next = decoder.Next();
    while (next && *next) next = decoder.Next();
    ASSERT_FALSE(next) << c.what;
    EXPECT_EQ(next.error().code, c.code) << c.what;
  }
  // Fragments may not pass the limit together either.
  WsDecoder decoder(WsDecoder::Role::kClient, 1000);
  decoder.Feed("\x02\x7e\x02\x58" + Bytes(600, 'a') + Bytes("\x80\x7e\x02\x58", 4));
  EXPECT_FALSE(decoder.Next());
}

// Over real sockets ------------------------------------------------------------------------------

// Sends every message back; "close N" closes with code N.
void Echo(Request r, std::shared_ptr<ResponseWriter> writer) {
  if (r.path == "/refuse") return writer->SendResponse(403, {}, std::string("not you"));
  const auto offered = r.WebSocketProtocols();
  writer->UpgradeWebSocket(
      offered.empty() ? "" : offered.front(), [](std::shared_ptr<WebSocket> ws) {
        if (!ws) return;
        ws->Start({.on_message = [ws](bool binary, const std::string& message) {
          if (message.starts_with("close ")) {
            ws->Close(static_cast<WsClose>(std::stoi(message.substr(6))), "as asked");
          } else {
            ws->Send(binary, message);
          }
        }});
      });
}

struct Client {
  std::shared_ptr<WebSocket> socket;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> messages;
  std::optional<std::pair<WsClose, std::string>> closed;

  void Start(Duration ping = {}) {
    socket->Start({.on_message =
                       [this](bool, std::string m) {
                         const std::lock_guard lock(mutex);
                         messages.push_back(std::move(m));
                         changed.notify_all();
                       },
                   .on_close =
                       [this](WsClose code, std::string reason) {
                         const std::lock_guard lock(mutex);
                         closed = {code, std::move(reason)};
                         changed.notify_all();
                       },
                   .ping_interval = ping});
  }
  bool Wait(auto condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, condition);
  }
};

class WebSocketTest : public NetTest {
 protected:
  Result<std::shared_ptr<WebSocket>> Open(HttpClient& client, WebSocketRequest request) {
    Awaited<Result<std::shared_ptr<WebSocket>>> opened;
    client.OpenWebSocket(std::move(request), opened.Setter());
    return opened.Get();
  }
};

TEST_F(WebSocketTest, EchoOverTls) {
  Serve(Echo);
  HttpClient client(io_, loop_, Options());
  auto ws = Open(client, {.target = "/exec?command=ls",
                          .protocols = {"v5.channel.k8s.io", "v4.channel.k8s.io"}});
  ASSERT_TRUE(ws) << ws.error().message;
  EXPECT_EQ((*ws)->protocol(), "v5.channel.k8s.io");
  Client c{.socket = *ws};
  c.Start(std::chrono::milliseconds(1));
  const std::string big(3 << 20, 'b');
  EXPECT_TRUE(c.socket->Send(true, "one"));
  EXPECT_TRUE(c.socket->Send(false, "zwei"));
  EXPECT_TRUE(c.socket->Send(true, big));
  EXPECT_TRUE(c.Wait([&] { return c.messages.size() == 3; }));
  EXPECT_EQ(c.messages, (std::vector<std::string>{"one", "zwei", big}));
  c.socket->Send(false, "close 4001");
  EXPECT_TRUE(c.Wait([&] { return c.closed.has_value(); }));
  EXPECT_EQ(c.closed->first, static_cast<WsClose>(4001));
  EXPECT_EQ(c.closed->second, "as asked");
  EXPECT_FALSE(c.socket->Send(true, "late"));
}

TEST_F(WebSocketTest, RefusalsCarryTheAnswer) {
  Serve(Echo);
  HttpClient client(io_, loop_, Options());
  const auto refused = Open(client, {.target = "/refuse"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 403);
  EXPECT_EQ(refused.error().message, "not you");
  // Not asked for: the handler's upgrade becomes a 400.
  for (bool http2 : {true, false}) {
    HttpClient plain(io_, loop_, Options(true, http2));
    const auto r = Get(plain, {.target = "/"});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->status, 400);
  }
}

TEST_F(WebSocketTest, DroppingEitherEndClosesTheOther) {
  Awaited<std::shared_ptr<WebSocket>> server_side;
  Serve([set = server_side.Setter()](Request, std::shared_ptr<ResponseWriter> w) {
    w->UpgradeWebSocket("", set);
  });
  HttpClient client(io_, loop_, Options());
  {
    auto ws = Open(client, {});
    ASSERT_TRUE(ws) << ws.error().message;
    Client c{.socket = std::move(*ws)};
    c.Start();
    server_side.Get().reset();
    EXPECT_TRUE(c.Wait([&] { return c.closed.has_value(); }));
    EXPECT_EQ(c.closed->first, WsClose::kAbnormal);
  }
}

TEST_F(WebSocketTest, ServerStopClosesThem) {
  Serve(Echo);
  HttpClient client(io_, loop_, Options());
  auto ws = Open(client, {});
  ASSERT_TRUE(ws) << ws.error().message;
  Client c{.socket = std::move(*ws)};
  c.Start();
  server_->Stop({});
  EXPECT_TRUE(c.Wait([&] { return c.closed.has_value(); }));
}

TEST_F(WebSocketTest, ProxyPassesMessagesAndTheClose) {
  auto backend = Server::Start({&io_}, {.listen = {.address = "127.0.0.1"}}, Echo);
  ASSERT_TRUE(backend);
  HttpClient to_backend(
      io_, io_, {.base_url = fmt::format("http://127.0.0.1:{}", (*backend)->endpoint().port)});
  Awaited<bool> done;
  Serve([&](Request, std::shared_ptr<ResponseWriter> writer) {
    to_backend.OpenWebSocket({}, [&, writer](Result<std::shared_ptr<WebSocket>> upstream) {
      if (!upstream) return writer->SendResponse(502, {}, upstream.error().message);
      writer->UpgradeWebSocket("", [&, up = *upstream](std::shared_ptr<WebSocket> down) {
        if (down) Proxy(down, up, [set = done.Setter()] { set(true); });
      });
    });
  });
  HttpClient client(io_, loop_, Options());
  auto ws = Open(client, {});
  ASSERT_TRUE(ws) << ws.error().message;
  Client c{.socket = std::move(*ws)};
  c.Start();
  size_t sent = 0;
  for (int i = 0; i < 300; ++i) {
    if (c.socket->Send(true, std::string(30'000, static_cast<char>('a' + i % 26)))) ++sent;
  }
  EXPECT_TRUE(c.Wait([&] { return c.messages.size() == sent; }));
  EXPECT_EQ(c.messages.back().size(), 30'000u);
  c.socket->Send(true, "close 3999");
  EXPECT_TRUE(c.Wait([&] { return c.closed.has_value(); }));
  EXPECT_EQ(c.closed->first, static_cast<WsClose>(3999));
  EXPECT_TRUE(done.Get());
}

TEST_F(WebSocketTest, HijackGivesTheBytes) {
  Serve(
      [](Request, std::shared_ptr<ResponseWriter> w) {
        w->Hijack({{"upgrade", "SPDY/3.1"}}, [](std::shared_ptr<ByteStream> s) {
          if (!s) return;
          s->Start(
              {.on_data = [s](std::string_view bytes) { s->Send("got " + std::string(bytes)); },
               .on_end = [s] { s->Close(); }});
        });
      },
      false);
  Awaited<Result<std::shared_ptr<ByteStream>>> dialled;
  Dial(io_, server_->endpoint(), kPatience, dialled.Setter());
  auto stream = dialled.Get();
  ASSERT_TRUE(stream) << stream.error().message;
  Awaited<std::string> all;
  auto got = std::make_shared<std::string>();
  (*stream)->Start({.on_data = [got](std::string_view bytes) { *got += bytes; },
                    .on_close = [got, set = all.Setter()](const Status&) { set(*got); }});
  (*stream)->Send(
      "POST /pf HTTP/1.1\r\nhost: h\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\nearly");
  (*stream)->End();
  const std::string text = all.Get();
  EXPECT_THAT(text, HasSubstr("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(text, HasSubstr("upgrade: SPDY/3.1\r\n"));
  EXPECT_THAT(text, ::testing::EndsWith("\r\n\r\ngot early"));
}

TEST_F(WebSocketTest, SpliceCopiesBothWays) {
  auto echo =
      StreamListener::Start(io_, {.address = "127.0.0.1"}, [](std::shared_ptr<ByteStream> s) {
        s->Start({.on_data = [s](std::string_view bytes) { s->Send(std::string(bytes)); },
                  .on_end = [s] { s->Close(); }});
      });
  ASSERT_TRUE(echo) << echo.error().message;
  const Endpoint to = (*echo)->endpoint();
  auto front = StreamListener::Start(io_, {.path = "@sextant-net-splice"},
                                     [&, to](std::shared_ptr<ByteStream> a) {
                                       Dial(io_, to, kPatience, [a](auto b) {
                                         if (b) Splice(a, *b);
                                       });
                                     });
  ASSERT_TRUE(front) << front.error().message;
  Awaited<Result<std::shared_ptr<ByteStream>>> dialled;
  Dial(io_, (*front)->endpoint(), kPatience, dialled.Setter());
  auto stream = dialled.Get();
  ASSERT_TRUE(stream) << stream.error().message;
  Awaited<size_t> all;
  auto got = std::make_shared<size_t>(0);
  (*stream)->Start({.on_data = [got](std::string_view bytes) { *got += bytes.size(); },
                    .on_close = [got, set = all.Setter()](const Status&) { set(*got); }});
  EXPECT_TRUE((*stream)->Send(std::string(3 << 20, 'z')));
  (*stream)->End();
  EXPECT_EQ(all.Get(), size_t{3} << 20);
}

TEST_F(WebSocketTest, DialFailures) {
  Awaited<Result<std::shared_ptr<ByteStream>>> refused;
  Dial(io_, {.path = "/nonexistent/socket"}, kPatience, refused.Setter());
  EXPECT_THAT(refused.Get().error().message, HasSubstr("/nonexistent/socket"));
  Awaited<Result<std::shared_ptr<ByteStream>>> bad;
  Dial(io_, {.address = "not an address", .port = 1}, kPatience, bad.Setter());
  EXPECT_FALSE(bad.Get());
}

// What a kubectl needs to run a command in a Pod: the Pod, then channels 1 (stdout) and 3 (status).
void LittleKubernetes(Request r, std::shared_ptr<ResponseWriter> writer) {
  if (r.path == "/api/v1/namespaces/default/pods/p/exec") {
    const auto offered = r.WebSocketProtocols();
    if (offered.empty() || offered.front() != "v5.channel.k8s.io" || !r.peer->alpn.empty()) {
      return writer->SendResponse(400, {}, std::string("not as kubectl does it"));
    }
    return writer->UpgradeWebSocket(offered.front(), [](std::shared_ptr<WebSocket> ws) {
      if (!ws) return;
      ws->Start({.on_message = [ws](bool, const std::string& m) {
        if (m == "\xff" + std::string(1, '\0')) {  // the end of stdin
          ws->Send(true, "\x01 and goodbye\n");
          ws->Send(true, "\x03{\"status\":\"Success\"}");
          ws->Close(WsClose::kNormal);
        } else if (m.starts_with('\0')) {
          ws->Send(true, "\x01got " + m.substr(1));
        }
      }});
    });
  }
  const std::pair<const char*, const char*> pages[] = {
      {"/api", R"({"kind":"APIVersions","versions":["v1"]})"},
      {"/apis", R"({"kind":"APIGroupList","apiVersion":"v1","groups":[]})"},
      {"/api/v1", R"({"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods",
         "singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]}]})"},
      {"/api/v1/namespaces/default/pods/p", R"({"kind":"Pod","apiVersion":"v1","metadata":
         {"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c"}]},
         "status":{"phase":"Running"}})"}};
  for (const auto& [path, body] : pages) {
    if (r.path == path) {
      return writer->SendResponse(200, {{"content-type", "application/json"}}, std::string(body));
    }
  }
  writer->SendResponse(404, {}, std::string("no"));
}

TEST_F(WebSocketTest, KubectlExecWorks) {
  if (std::system("kubectl version --client >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "kubectl is not here";
  }
  Serve(LittleKubernetes);
  const std::string dir = ::testing::TempDir();
  std::ofstream(dir + "/net-kubectl-ca.pem") << Pki().ca.ToPem();
  const std::string out = dir + "/net-kubectl-out";
  const std::string command = fmt::format(
      "echo hello | KUBECONFIG=/dev/null timeout 60 kubectl --server https://127.0.0.1:{} "
      "--certificate-authority {}/net-kubectl-ca.pem --cache-dir {}/net-kubectl-cache --token t "
      "exec -i p -- cat >{} 2>&1",
      server_->endpoint().port, dir, dir, out);
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(out);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(text, "got hello\n and goodbye\n");
}

}  // namespace
}  // namespace sextant::net
