// Requests over loopback with our own client on another thread, the parser, and signatures.
#include <benchmark/benchmark.h>

#include <fstream>
#include <latch>

#include "net/client.h"
#include "net/h1_parser.h"
#include "net/server.h"

namespace sextant::net {
namespace {

struct Lab {
  explicit Lab(bool tls) {
    const Key ca_key = Key::Generate();
    const Key key = Key::Generate();
    const Time now = clock.Now();
    const Certificate ca =
        *IssueCertificate({.common_name = "ca", .is_ca = true}, ca_key, nullptr, ca_key, now);
    const Certificate cert =
        *IssueCertificate({.common_name = "s", .ip_addresses = {"127.0.0.1"}, .server_auth = true},
                          key, &ca, ca_key, now);
    ServerOptions options{.listen = {.address = "127.0.0.1"}};
    if (tls) options.tls = ServerTls{.certificate = {cert.ToPem(), key.PrivatePem()}};
    const Buffer body = MakeBuffer(std::string(1024, 'b'));
    server = *Server::Start({&server_io}, options, [body](Request, auto writer) {
      writer->SendResponse(200, {{"content-type", "application/json"}}, body);
    });
    client_options = {
        .base_url = fmt::format("{}://{}", tls ? "https" : "http", server->endpoint().ToString()),
        .tls = {.ca_pem = ca.ToPem()}};
  }
  RealClock clock;
  IoThread server_io{"server", clock};
  IoThread client_io{"client", clock};
  std::unique_ptr<Server> server;
  ClientOptions client_options;
};

// state.range(0) requests at once.
void Requests(benchmark::State& state, bool tls, bool http2) {
  Lab lab(tls);
  lab.client_options.http2 = http2;
  // Results run on the client's own I/O thread: no third thread in the way.
  HttpClient client(lab.client_io, lab.client_io, lab.client_options);
  for (auto _ : state) {
    std::latch done(state.range(0));
    for (int64_t i = 0; i < state.range(0); ++i) {
      client.Do({.target = "/api/v1/namespaces/default/pods/p"},
                [&](const Result<ClientResponse>& r) {
                  if (!r || r->body.size() != 1024) state.SkipWithError("bad answer");
                  done.count_down();
                });
    }
    done.wait();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(Requests, h2_tls, true, true)->Arg(1)->Arg(100)->UseRealTime();
BENCHMARK_CAPTURE(Requests, h1_tls, true, false)->Arg(1)->Arg(16)->UseRealTime();
BENCHMARK_CAPTURE(Requests, h1_plain, false, false)->Arg(1)->Arg(16)->UseRealTime();

// One event to many watchers; items are deliveries.
void WatchFanOut(benchmark::State& state) {
  Lab lab(true);
  std::vector<std::shared_ptr<ResponseWriter>> writers;
  std::mutex mutex;
  lab.server = *Server::Start({&lab.server_io}, {.listen = {.path = "@sextant-net-bench"}},
                              [&](Request, std::shared_ptr<ResponseWriter> writer) {
                                writer->StartStream(200, {});
                                const std::lock_guard lock(mutex);
                                writers.push_back(std::move(writer));
                              });
  ClientOptions options{.base_url = "unix://@sextant-net-bench", .max_connections = 1000};
  HttpClient client(lab.client_io, lab.client_io, options);
  const auto watchers = static_cast<size_t>(state.range(0));
  std::atomic<size_t> got{0};
  for (size_t i = 0; i < watchers; ++i) {
    client.Stream({}, {.on_data = [&](const std::string& bytes) { got += bytes.size(); }});
  }
  while (true) {
    const std::lock_guard lock(mutex);
    if (writers.size() == watchers) break;
  }
  const Buffer event = MakeBuffer(std::string(2000, 'e'));
  for (auto _ : state) {
    got = 0;
    for (const auto& w : writers) w->Write(event);
    while (got.load() < watchers * event->size()) std::this_thread::yield();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  writers.clear();
}
BENCHMARK(WatchFanOut)->Arg(500)->UseRealTime();

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages >> pages;
  return pages * 4096;
}

// Resident bytes of one idle TLS connection, both ends together.
void IdleConnection(benchmark::State& state) {
  Lab lab(true);
  constexpr int kConnections = 200;
  for (auto _ : state) {
    const size_t before = ResidentBytes();
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < kConnections; ++i) {
      clients.push_back(
          std::make_unique<HttpClient>(lab.client_io, lab.client_io, lab.client_options));
      std::latch done(1);
      clients.back()->Do({}, [&](const Result<ClientResponse>&) { done.count_down(); });
      done.wait();
    }
    state.counters["bytes_both_ends"] =
        static_cast<double>(ResidentBytes() - before) / kConnections;
  }
}
BENCHMARK(IdleConnection)->Iterations(1);

void ParseRequest(benchmark::State& state) {
  struct Sink : H1Parser::Events {
    bool OnHead(H1Head& head) override { return head.status == 0; }
    void OnBody(std::string_view) override {}
  } sink;
  const std::string wire =
      "GET /api/v1/namespaces/default/pods?limit=500 HTTP/1.1\r\nHost: 127.0.0.1:6443\r\n"
      "User-Agent: kubectl/v1.36.3 (linux/amd64) kubernetes/abcdef0\r\n"
      "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n"
      "Accept-Encoding: gzip\r\n\r\n";
  H1Parser parser(H1Parser::Side::kRequests, {}, sink);
  for (auto _ : state) {
    benchmark::DoNotOptimize(parser.Feed(wire));
    parser.Reset();
  }
}
BENCHMARK(ParseRequest);

void SignToken(benchmark::State& state) {
  const Key key = Key::Generate(state.range(0) == 0 ? KeyKind::kEcP256 : KeyKind::kRsa2048);
  const std::string token(900, 't');
  for (auto _ : state) benchmark::DoNotOptimize(key.Sign(token));
  state.SetLabel(std::string(key.algorithm()));
}
BENCHMARK(SignToken)->Arg(0)->Arg(1);

void VerifyToken(benchmark::State& state) {
  const Key key = Key::Generate(state.range(0) == 0 ? KeyKind::kEcP256 : KeyKind::kRsa2048);
  const std::string token(900, 't');
  const std::string signature = key.Sign(token);
  for (auto _ : state) benchmark::DoNotOptimize(key.Verify(token, signature));
  state.SetLabel(std::string(key.algorithm()));
}
BENCHMARK(VerifyToken)->Arg(0)->Arg(1);

}  // namespace
}  // namespace sextant::net
