// Server and HttpClient over real sockets.
#include "net/server.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "net/test_util.h"

namespace sextant::net {
namespace {

using ::testing::HasSubstr;

// What the handler saw, as text.
void Describe(Request r, std::shared_ptr<ResponseWriter> writer) {
  std::string text =
      fmt::format("{} {} path={} query={} http/{} alpn={} sni={}\n", r.method, r.target, r.path,
                  r.query, r.http_major, r.peer->alpn, r.peer->server_name);
  if (r.peer->client_cert) {
    text += fmt::format("cn={} o={}\n", r.peer->client_cert->common_name,
                        fmt::join(r.peer->client_cert->organizations, ","));
  }
  if (!r.peer->client_cert_error.empty()) text += "bad cert: " + r.peer->client_cert_error + "\n";
  text += r.body;
  writer->SendResponse(200, {{"content-type", "text/plain"}, {"x-custom", "1"}}, std::move(text));
}

TEST_F(NetTest, Http2OverTlsWithClientCertificate) {
  Serve(Describe);
  ClientOptions options = Options();
  const CertificateAndKey me = Pki().ClientCertificate("alice", {"system:masters", "dev"});
  options.tls.cert_pem = me.chain_pem;
  options.tls.key_pem = me.key_pem;
  HttpClient client(io_, loop_, options);
  const auto r = Get(client, {.target = "/api/v1/pods?limit=5", .headers = {{"x-a", "b"}}});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->status, 200);
  EXPECT_EQ(r->headers.Get("x-custom"), "1");
  EXPECT_TRUE(r->headers.Has("date"));
  EXPECT_EQ(r->body,
            "GET /api/v1/pods?limit=5 path=/api/v1/pods query=limit=5 http/2 alpn=h2 sni=\n"
            "cn=alice o=system:masters,dev\n");
}

TEST_F(NetTest, Http1OverTlsWithoutAlpn) {
  Serve(Describe);
  HttpClient client(io_, loop_, Options(true, false));
  for (int i = 0; i < 3; ++i) {
    const auto r = Get(client, {.method = "POST", .target = "/x", .body = MakeBuffer("hello")});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->body, "POST /x path=/x query= http/1 alpn= sni=\nhello");
  }
  EXPECT_EQ(server_->stats().connections_total, 1u);
}

TEST_F(NetTest, PlainAndUnixSockets) {
  Serve(Describe, false);
  HttpClient plain(io_, loop_, Options(false));
  EXPECT_THAT(Get(plain, {.target = "/a"})->body, HasSubstr("GET /a"));

  const std::string path = ::testing::TempDir() + "/sextant-net-test.sock";
  auto unix_server = Server::Start({&io_}, {.listen = {.path = path}}, Describe);
  ASSERT_TRUE(unix_server) << unix_server.error().message;
  HttpClient client(io_, loop_, {.base_url = "unix://" + path});
  EXPECT_THAT(Get(client, {.target = "/b"})->body, HasSubstr("GET /b"));
  // A second server may not take a live socket away.
  const auto second = Server::Start({&io_}, {.listen = {.path = path}}, Describe);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(path));
}

TEST_F(NetTest, SaysWhatToDoWhenThePortIsInUse) {
  Serve(Describe);
  const auto second = Server::Start({&io_}, {.listen = server_->endpoint()}, Describe);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(server_->endpoint().ToString()));
  EXPECT_THAT(second.error().message, HasSubstr("choose another port"));
}

// Many names behind one listener are told apart by SNI.
TEST_F(NetTest, OneCertificateOfManyNames) {
  ServerOptions options{.listen = {.address = "127.0.0.1"}, .tls = TestServerTls()};
  options.tls->certificate = Pki().Issue(
      {.common_name = "nodes", .dns_names = {"node-0", "node-1", "node-2"}, .server_auth = true});
  Serve(options, Describe);
  for (const char* name : {"node-0", "node-2"}) {
    ClientOptions o = Options();
    o.base_url = fmt::format("https://{}:10250", name);
    o.connect_to = server_->endpoint().ToString();
    HttpClient client(io_, loop_, o);
    const auto r = Get(client, {.target = "/"});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_THAT(r->body, HasSubstr(fmt::format("sni={}\n", name)));
  }
  ClientOptions o = Options();
  o.tls.server_name = "node-9";  // the certificate is not for that name
  HttpClient client(io_, loop_, o);
  const auto r = Get(client, {.target = "/"});
  ASSERT_FALSE(r);
  EXPECT_TRUE(IsTransportError(r.error()));
  EXPECT_THAT(r.error().message, HasSubstr("certificate"));
  // One certificate behind many names: asked for by one, verified by the other.
  o.tls.server_name = "node-1";
  o.tls.verify_name = "node-9";
  EXPECT_FALSE(Get(*std::make_unique<HttpClient>(io_, loop_, o), {.target = "/"}));
  o.tls.server_name = "node-9";
  o.tls.verify_name = "node-1";
  const auto other = Get(*std::make_unique<HttpClient>(io_, loop_, o), {.target = "/"});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_THAT(other->body, HasSubstr("sni=node-9\n"));
}

TEST_F(NetTest, ForeignCertificates) {
  Serve(Describe);
  const TestPki other;
  const CertificateAndKey stranger = other.ClientCertificate("mallory", {"system:masters"});
  for (bool http2 : {true, false}) {
    ClientOptions options = Options(true, http2);
    options.tls.cert_pem = stranger.chain_pem;
    options.tls.key_pem = stranger.key_pem;
    HttpClient client(io_, loop_, options);
    const auto r = Get(client, {.target = "/"});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_THAT(r->body, HasSubstr("bad cert: "));
    EXPECT_THAT(r->body, ::testing::Not(HasSubstr("cn=")));
  }
  // A server certificate used as a client's is refused too.
  ClientOptions wrong_use = Options();
  const CertificateAndKey server_cert = Pki().ServerCert();
  wrong_use.tls.cert_pem = server_cert.chain_pem;
  wrong_use.tls.key_pem = server_cert.key_pem;
  HttpClient wrong(io_, loop_, wrong_use);
  EXPECT_THAT(Get(wrong, {.target = "/"})->body, HasSubstr("bad cert: "));

  ClientOptions foreign_ca = Options();
  foreign_ca.tls.ca_pem = other.ca.ToPem();
  HttpClient distrusting(io_, loop_, foreign_ca);
  EXPECT_FALSE(Get(distrusting, {.target = "/"}));
  foreign_ca.tls.insecure_skip_verify = true;
  HttpClient careless(io_, loop_, foreign_ca);
  EXPECT_TRUE(Get(careless, {.target = "/"}));
}

// All that must hold for every way a request can go.
struct Way {
  const char* name;
  bool tls;
  bool http2;
};
class EveryWay : public NetTest, public ::testing::WithParamInterface<Way> {
 protected:
  void ServeWay(Handler handler, ServerLimits limits = {}) {
    Serve(std::move(handler), GetParam().tls, limits);
  }
  ClientOptions WayOptions() const { return Options(GetParam().tls, GetParam().http2); }
};
INSTANTIATE_TEST_SUITE_P(Ways, EveryWay,
                         ::testing::Values(Way{"h2", true, true}, Way{"h1tls", true, false},
                                           Way{"h1", false, false}),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryWay, LargeBodiesBothWays) {
  ServeWay(Describe, {.max_body = 32 << 20});
  HttpClient client(io_, loop_, WayOptions());
  std::string body(10 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i % 23);
  const auto r = Get(client, {.method = "PUT", .target = "/", .body = MakeBuffer(body)});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_TRUE(r->body.ends_with(body));
}

TEST_P(EveryWay, BodyOverTheLimitIs413) {
  ServerLimits limits;
  limits.max_body = 1000;
  ServeWay(Describe, limits);
  HttpClient client(io_, loop_, WayOptions());
  auto r = Get(client, {.method = "POST", .body = MakeBuffer(std::string(1000, 'a'))});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->status, 200);
  r = Get(client, {.method = "POST", .body = MakeBuffer(std::string(1001, 'a'))});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->status, 413);
  EXPECT_THAT(r->body, HasSubstr("limit is 1000"));
  r = Get(client, {.method = "POST", .body = MakeBuffer(std::string(5 << 20, 'a'))});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->status, 413);
}

TEST_P(EveryWay, HeadersOverTheLimitAre431) {
  ServerLimits limits;
  limits.max_header_bytes = 4096;
  ServeWay(Describe, limits);
  HttpClient client(io_, loop_, WayOptions());
  const std::string big(5000, 'h');
  const auto r = Get(client, {.headers = {{"x-big", big}}});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->status, 431);
}

TEST_P(EveryWay, HeadAndEmptyAnswers) {
  ServeWay([](Request r, std::shared_ptr<ResponseWriter> w) {
    w->SendResponse(r.path == "/none" ? 204 : 200, {}, std::string(r.path == "/none" ? "" : "abc"));
  });
  HttpClient client(io_, loop_, WayOptions());
  auto r = Get(client, {.method = "HEAD", .target = "/"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->headers.Get("content-length"), "3");
  EXPECT_EQ(r->body, "");
  r = Get(client, {.method = "DELETE", .target = "/none"});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->status, 204);
  EXPECT_EQ(Get(client, {.target = "/"})->body, "abc");
  EXPECT_EQ(server_->stats().connections_total, 1u);
}

TEST_P(EveryWay, StreamArrivesPieceByPiece) {
  Awaited<std::shared_ptr<ResponseWriter>> writer;
  ServeWay([set = writer.Setter()](Request, std::shared_ptr<ResponseWriter> w) {
    w->StartStream(200, {{"content-type", "application/json"}});
    set(w);
  });
  HttpClient client(io_, loop_, WayOptions());
  Awaited<int> status;
  Awaited<Status> done;
  std::mutex mutex;
  std::condition_variable grown;
  std::string got;
  client.Stream({.target = "/watch"},
                {.on_headers = [set = status.Setter()](int s, const Headers&) { set(s); },
                 .on_data =
                     [&](std::string bytes) {
                       const std::lock_guard lock(mutex);
                       got += bytes;
                       grown.notify_all();
                     },
                 .on_done = done.Setter()});
  const auto w = writer.Get();
  EXPECT_EQ(status.Get(), 200);  // before the first piece
  std::string want;
  for (int i = 0; i < 20; ++i) {
    const Buffer event = MakeBuffer(fmt::format("event {}\n", i));
    want += *event;
    EXPECT_TRUE(w->Write(event));
    std::unique_lock lock(mutex);
    EXPECT_TRUE(grown.wait_for(lock, kPatience, [&] { return got == want; }));
  }
  EXPECT_FALSE(w->closed());
  w->Finish();
  EXPECT_TRUE(done.Get());
  Awaited<bool> closed;
  w->OnClosed([set = closed.Setter()] { set(true); });
  EXPECT_TRUE(closed.Get());
  EXPECT_FALSE(w->Write(MakeBuffer("late")));
}

TEST_P(EveryWay, CancelReachesTheServer) {
  Awaited<std::shared_ptr<ResponseWriter>> writer;
  ServeWay([set = writer.Setter()](Request, std::shared_ptr<ResponseWriter> w) {
    w->StartStream(200, {});
    set(w);
  });
  HttpClient client(io_, loop_, WayOptions());
  Awaited<int> status;
  const auto call =
      client.Stream({}, {.on_headers = [set = status.Setter()](int s, const Headers&) { set(s); }});
  status.Get();
  Awaited<bool> closed;
  writer.Get()->OnClosed([set = closed.Setter()] { set(true); });
  call->Cancel();
  EXPECT_TRUE(closed.Get());
}

TEST_P(EveryWay, BrokenOffAnswersAreErrors) {
  ServeWay([](Request r, std::shared_ptr<ResponseWriter> w) {
    if (r.path == "/dropped") return;
    w->StartStream(200, {});
    w->Write(MakeBuffer("half"));
    if (r.path == "/abort") w->Abort();
  });
  HttpClient client(io_, loop_, WayOptions());
  const auto dropped = Get(client, {.target = "/dropped"});
  ASSERT_TRUE(dropped) << dropped.error().message;
  EXPECT_EQ(dropped->status, 500);
  for (const char* path : {"/abort", "/unfinished"}) {
    const auto r = Get(client, {.target = path});
    ASSERT_FALSE(r) << path;
    EXPECT_TRUE(IsTransportError(r.error()));
  }
}

TEST_P(EveryWay, SlowReaderFillsTheBoundedQueue) {
  ServerLimits limits;
  limits.max_stream_buffer = 100'000;
  Awaited<std::shared_ptr<ResponseWriter>> writer;
  ServeWay(
      [set = writer.Setter()](Request, std::shared_ptr<ResponseWriter> w) {
        w->StartStream(200, {});
        set(w);
      },
      limits);
  HttpClient client(io_, loop_, WayOptions());
  // The results loop is held up, so the client's windows fill.
  auto released = std::make_shared<Awaited<bool>>();
  std::atomic<size_t> got{0};
  Awaited<Status> done;
  client.Stream({}, {.on_data =
                         [&, first = true](std::string bytes) mutable {
                           if (std::exchange(first, false)) released->Get();
                           got += bytes.size();
                         },
                     .on_done = done.Setter()});
  const auto w = writer.Get();
  const Buffer piece = MakeBuffer(std::string(50'000, 'p'));
  // The socket's own buffers take some megabytes; then, or when the I/O thread is busy, the queue
  // refuses.
  int pieces = 0;
  while (w->Write(piece)) {
    EXPECT_LE(w->buffered_bytes(), 100'000u);
    if (++pieces > 1'000'000) FAIL() << "the queue never filled";
  }
  EXPECT_FALSE(w->closed());
  Awaited<bool> writable;
  w->OnWritable([set = writable.Setter()] { set(true); });
  released->Setter()(true);
  EXPECT_TRUE(writable.Get());
  w->Finish();
  EXPECT_TRUE(done.Get());
  EXPECT_EQ(got.load(), static_cast<size_t>(pieces) * piece->size());
}

TEST_P(EveryWay, StopLetsRequestsEnd) {
  Awaited<std::shared_ptr<ResponseWriter>> writer;
  ServeWay([set = writer.Setter()](Request, std::shared_ptr<ResponseWriter> w) { set(w); });
  HttpClient client(io_, loop_, WayOptions());
  Awaited<Result<ClientResponse>> got;
  client.Do({.target = "/"}, got.Setter());
  auto w = writer.Get();
  std::thread stop([&] { server_->Stop(kPatience); });
  w->SendResponse(200, {}, std::string("last"));
  w.reset();
  stop.join();
  const auto r = got.Get();
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->body, "last");
  EXPECT_EQ(server_->stats().connections, 0);
  EXPECT_FALSE(Get(client, {.target = "/"}));
}

TEST_P(EveryWay, StopClosesEndlessStreams) {
  Awaited<std::shared_ptr<ResponseWriter>> writer;
  ServeWay([set = writer.Setter()](Request, std::shared_ptr<ResponseWriter> w) {
    w->StartStream(200, {});
    set(w);
  });
  HttpClient client(io_, loop_, WayOptions());
  Awaited<Status> done;
  client.Stream({}, {.on_done = done.Setter()});
  const auto w = writer.Get();
  server_->Stop(std::chrono::milliseconds(10));
  EXPECT_FALSE(done.Get());
  EXPECT_TRUE(w->closed());
}

TEST_P(EveryWay, ManyRequestsAtOnce) {
  ServeWay(Describe);
  HttpClient client(io_, loop_, WayOptions());
  constexpr int kRequests = 2000;
  std::atomic<int> left{kRequests};
  std::atomic<int> good{0};
  Awaited<bool> all;
  for (int i = 0; i < kRequests; ++i) {
    client.Do({.target = fmt::format("/r/{}", i)},
              [&, i, set = all.Setter()](Result<ClientResponse> r) {
                if (r && r->body.starts_with(fmt::format("GET /r/{} ", i))) ++good;
                if (--left == 0) set(true);
              });
  }
  ASSERT_TRUE(all.Get());
  EXPECT_EQ(good.load(), kRequests);
  EXPECT_LE(server_->stats().connections_total, 16u);
}

TEST_P(EveryWay, ClientTimesOut) {
  std::vector<std::shared_ptr<ResponseWriter>> held;
  ServeWay([&](Request, std::shared_ptr<ResponseWriter> w) { held.push_back(w); });
  ClientOptions options = WayOptions();
  options.headers_timeout = std::chrono::milliseconds(20);
  HttpClient client(io_, loop_, options);
  const auto r = Get(client, {});
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("in time"));
  server_->Stop({});
}

TEST_F(NetTest, ClientWithoutServer) {
  Serve(Describe);
  const ClientOptions options = Options();
  server_.reset();
  HttpClient client(io_, loop_, options);
  const auto r = Get(client, {});
  ASSERT_FALSE(r);
  EXPECT_TRUE(IsTransportError(r.error()));
  EXPECT_THAT(r.error().message, HasSubstr("Connection refused"));
  HttpClient bad(io_, loop_, {.base_url = "nonsense"});
  EXPECT_EQ(Get(bad, {}).error().code, 400);
}

TEST_F(NetTest, ClientReconnectsAfterTheServerClosedAnIdleConnection) {
  ServerOptions options{.listen = {.address = "127.0.0.1"}};
  Serve(options, Describe);
  options.listen = server_->endpoint();
  HttpClient client(io_, loop_, Options(false));
  ASSERT_TRUE(Get(client, {.target = "/1"}));
  server_.reset();
  Serve(options, Describe);
  const auto r = Get(client, {.target = "/2"});
  ASSERT_TRUE(r) << r.error().message;
}

TEST_F(NetTest, SeveralThreads) {
  IoThread second("io2", clock_);
  auto server = Server::Start(
      {&io_, &second}, {.listen = {.address = "127.0.0.1"}, .tls = TestServerTls()}, Describe);
  ASSERT_TRUE(server) << server.error().message;
  server_ = std::move(*server);
  for (int i = 0; i < 4; ++i) {
    HttpClient client(io_, loop_, Options());
    EXPECT_TRUE(Get(client, {.target = "/"}));
  }
  server_.reset();
}

TEST_F(NetTest, CurlAgrees) {
  if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "curl is not here";
  Serve(Describe);
  const std::string dir = ::testing::TempDir();
  std::ofstream(dir + "/net-ca.pem") << Pki().ca.ToPem();
  std::ofstream(dir + "/net-body") << std::string(2 << 20, 'b');
  const auto curl = [&](const std::string& arguments) {
    const std::string out = dir + "/net-out";
    const std::string command =
        fmt::format("curl -sS --cacert {}/net-ca.pem {} https://localhost:{}/x?y=1 >{} 2>&1", dir,
                    arguments, server_->endpoint().port, out);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(out);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_THAT(curl("--http2"), HasSubstr("GET /x?y=1 path=/x query=y=1 http/2 alpn=h2"));
  EXPECT_THAT(curl("--http1.1"), HasSubstr("http/1 alpn=http/1.1 sni=localhost"));
  EXPECT_THAT(curl("--no-alpn --http1.1"), HasSubstr("http/1 alpn= "));
  // More than a megabyte: curl sends Expect: 100-continue.
  EXPECT_THAT(curl("--http1.1 -T " + dir + "/net-body"), HasSubstr("bbbbbbbb"));
  EXPECT_THAT(curl("--http2 -T " + dir + "/net-body"), HasSubstr("bbbbbbbb"));
  EXPECT_THAT(curl("--http1.1 -H 'Transfer-Encoding: chunked' -d @" + dir + "/net-body"),
              HasSubstr("bbbbbbbb"));
}

}  // namespace
}  // namespace sextant::net
