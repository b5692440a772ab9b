// One request over a socket: answers by hand, hostile ones, and TLS with a real server.
#include "kubelet/process_exchange.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kubelet/grpc_health.h"
#include "net/test_util.h"

namespace sextant::kubelet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExchangeTest : public net::NetTest {
 protected:
  ExchangeAnswer Ask(Fd socket, ExchangePlan plan) {
    net::Awaited<ExchangeAnswer> answer;
    std::shared_ptr<Exchange> exchange;
    fds_.Post([&, set = answer.Setter()] {
      fcntl(socket.get(), F_SETFL, O_NONBLOCK);
      exchange = StartExchange(fds_, std::move(socket), std::move(plan), set);
    });
    ExchangeAnswer got = answer.Get();
    net::Awaited<bool> dropped;
    fds_.Post([&, set = dropped.Setter()] {
      exchange.reset();
      set(true);
    });
    dropped.Get();
    return got;
  }
  // A server that has said `bytes` already; it hears what the client says, or has gone.
  ExchangeAnswer AskOne(std::string_view bytes, ExchangePlan plan, bool gone = true) {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    Fd server(pair[1]);
    EXPECT_EQ(write(server.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    if (gone) shutdown(server.get(), SHUT_WR);
    ExchangeAnswer answer = Ask(Fd(pair[0]), std::move(plan));
    char block[4096];
    const ssize_t n = recv(server.get(), block, sizeof block, MSG_DONTWAIT);
    sent_.assign(block, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    return answer;
  }
  Fd Connect() {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(server_->endpoint().port)};
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    return fd;
  }
  static ExchangePlan Http() {
    ExchangePlan plan{.host = "10.244.0.5", .max_body = 100};
    plan.head = {.method = "GET",
                 .target = "/healthz",
                 .scheme = "http",
                 .authority = "10.244.0.5:80",
                 .headers = {{"accept", "*/*"}}};
    return plan;
  }
  static ExchangePlan Grpc() {
    ExchangePlan plan = Http();
    plan.http2 = true;
    plan.head.method = "POST";
    plan.body = net::MakeBuffer(GrpcMessage(HealthRequest("db")));
    return plan;
  }

  FdLoop fds_{"fds", clock_};
  std::string sent_;
};

TEST_F(ExchangeTest, Http1) {
  const ExchangeAnswer answer =
      AskOne("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nsick", Http());
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "sick");
  EXPECT_EQ(answer.error, "");
  EXPECT_THAT(sent_, StartsWith("GET /healthz HTTP/1.1\r\nhost: 10.244.0.5:80\r\n"));
  EXPECT_EQ(AskOne("HTTP/1.0 200 OK\r\n\r\nto the end", Http()).body, "to the end");
  // A body without end is cut at what is asked for.
  const ExchangeAnswer big = AskOne(
      "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n" + std::string(500, 'x'), Http(), false);
  EXPECT_EQ(big.status, 200);
  EXPECT_EQ(big.body.size(), 100);
}

TEST_F(ExchangeTest, WhatIsNoAnswer) {
  struct Case {
    std::string bytes;
    std::string error;
  };
  const std::string malformed =
      "net/http: HTTP/1.x transport connection broken: malformed HTTP response";
  for (const Case& c : {Case{"", "EOF"}, Case{"HTTP/1.1 200 OK\r\nco", "unexpected EOF"},
                        Case{"SSH-2.0-OpenSSH\r\n", malformed + " \"SSH-2.0-OpenSSH\""},
                        Case{"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", malformed},
                        Case{"HTTP/1.1 2x0 OK\r\n\r\n", malformed}}) {
    const ExchangeAnswer answer = AskOne(c.bytes, Http());
    EXPECT_EQ(answer.status, 0) << c.bytes;
    EXPECT_EQ(answer.error, c.error) << c.bytes;
  }
}

TEST_F(ExchangeTest, TlsWithAnyCertificate) {
  Serve([](const net::Request& request, const std::shared_ptr<net::ResponseWriter>& writer) {
    EXPECT_TRUE(request.peer->tls);
    writer->SendResponse(request.path == "/healthz" ? 204 : 404, {}, std::string());
  });
  ExchangePlan plan = Http();
  plan.tls = true;
  const ExchangeAnswer answer = Ask(Connect(), plan);
  EXPECT_EQ(answer.status, 204) << answer.error;
  const ExchangeAnswer plain = AskOne("HTTP/1.1 400 Bad Request\r\n\r\n", plan);
  EXPECT_EQ(plain.status, 0);
  EXPECT_EQ(plain.error, "http: server gave HTTP response to HTTPS client");
  EXPECT_THAT(AskOne("nothing like TLS", plan).error, StartsWith("tls: "));
}

// A frame of HTTP/2 (RFC 9113 section 4.1) on stream `stream`.
std::string Frame(char type, char flags, char stream, std::string_view payload) {
  std::string out = {0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream};
  return out += payload;
}
// A header field that stands for itself (RFC 7541 section 6.2.2).
std::string Field(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  for (std::string_view word : {name, value}) {
    out += static_cast<char>(word.size());
    out += word;
  }
  return out;
}
constexpr char kData = 0, kHeaders = 1, kSettings = 4;
constexpr char kEndStream = 1, kEndHeaders = 4;
const std::string kStatus200 = "\x88";

TEST_F(ExchangeTest, Http2WithTrailers) {
  const std::string hello = Frame(kSettings, 0, 0, "");
  const std::string body = GrpcMessage("\x08\x02");
  const ExchangeAnswer answer =
      AskOne(hello + Frame(kHeaders, kEndHeaders, 1, kStatus200) + Frame(kData, 0, 1, body) +
                 Frame(kHeaders, kEndHeaders | kEndStream, 1, Field("grpc-status", "0")),
             Grpc(), false);
  EXPECT_EQ(answer.status, 200) << answer.error;
  EXPECT_EQ(answer.trailers.Get("grpc-status"), "0");
  EXPECT_EQ(StatusOf(answer).code, 0);
  EXPECT_EQ(HealthOf(answer.body), "NOT_SERVING");
  EXPECT_THAT(sent_, HasSubstr(std::string("\0\0\0\0\x04\x0a\x02"
                                           "db",
                                           9)));
  const ExchangeAnswer refused =
      AskOne(hello + Frame(kHeaders, kEndHeaders | kEndStream, 1,
                           kStatus200 + Field("grpc-status", "5") +
                               Field("grpc-message", "unknown%20service")),
             Grpc(), false);
  EXPECT_EQ(StatusOf(refused).code, 5);
  EXPECT_EQ(StatusOf(refused).message, "unknown service");
  EXPECT_EQ(GrpcCodeName(5), "NotFound");
  EXPECT_EQ(AskOne("HTTP/1.1 400 Bad Request\r\n\r\n", Grpc()).status, 0);
}

TEST(GrpcHealth, StatesByName) {
  EXPECT_EQ(HealthOf(GrpcMessage("\x08\x01")), "SERVING");
  EXPECT_EQ(HealthOf(GrpcMessage("\x08\x03")), "SERVICE_UNKNOWN");
  EXPECT_EQ(HealthOf(GrpcMessage("")), "UNKNOWN");
  EXPECT_EQ(HealthOf(GrpcMessage("\x08\x63")), "99");
  EXPECT_EQ(HealthOf(GrpcMessage("\x08\xff\xff")), "UNKNOWN");  // cut off
  EXPECT_EQ(HealthOf("x"), "UNKNOWN");
  EXPECT_EQ(HealthRequest(""), "");
  EXPECT_EQ(HealthRequest(std::string(300, 's')).substr(0, 3), "\x0a\xac\x02");
}

}  // namespace
}  // namespace sextant::kubelet
