#include "net/h1_parser.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace sextant::net {
namespace {

struct Sink : H1Parser::Events {
  bool OnHead(H1Head& h) override {
    head = h;
    ++heads;
    return true;
  }
  void OnBody(std::string_view bytes) override { body.append(bytes); }
  H1Head head;
  int heads = 0;
  std::string body;
};

struct Outcome {
  int code = 0;  // 0: complete, -1: wants more
  H1Head head;
  std::string body;
  std::string rest;
};

Outcome Parse(const std::string& wire, H1Parser::Limits limits = {},
              H1Parser::Side side = H1Parser::Side::kRequests, size_t step = SIZE_MAX) {
  Sink sink;
  H1Parser parser(side, limits, sink);
  size_t at = 0;
  while (at < wire.size() && !parser.complete()) {
    const auto used = parser.Feed(std::string_view(wire).substr(at, step));
    if (!used) return {.code = used.error().code};
    at += *used;
  }
  return {parser.complete() ? 0 : -1, sink.head, sink.body, wire.substr(at)};
}

TEST(H1Parser, Requests) {
  const auto o = Parse(
      "\r\nPOST /a?b=c HTTP/1.1\r\nHost: h\r\nX-Y:  v w \t\r\nContent-Length: 3\r\n\r\nabcGET");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.head.method, "POST");
  EXPECT_EQ(o.head.target, "/a?b=c");
  EXPECT_EQ(o.head.headers.Get("x-y"), "v w");
  EXPECT_EQ(o.body, "abc");
  EXPECT_EQ(o.rest, "GET");
  EXPECT_TRUE(o.head.keep_alive);
}

TEST(H1Parser, AnEmptyLineBeforeARequestMayComeInPieces) {
  const std::string request = "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n";
  for (const size_t step : {1u, 2u, 3u, 100u})
    EXPECT_EQ(Parse(request, {}, H1Parser::Side::kRequests, step).code, 0) << step;
  EXPECT_EQ(Parse("\rGET / HTTP/1.1\r\nHost: h\r\n\r\n").code, 400);
}

TEST(H1Parser, ChunkedRequests) {
  const auto o = Parse(
      "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\nrest");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.body, "abc0123456789");
  EXPECT_EQ(o.rest, "rest");
}

TEST(H1Parser, KeepAlive) {
  EXPECT_FALSE(Parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n").head.keep_alive);
  EXPECT_FALSE(Parse("GET / HTTP/1.0\r\n\r\n").head.keep_alive);
  EXPECT_TRUE(Parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").head.keep_alive);
  EXPECT_EQ(Parse("GET http://h/p?q HTTP/1.1\r\nHost: h\r\n\r\n").head.target, "/p?q");
  EXPECT_EQ(Parse("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").head.target, "*");
}

TEST(H1Parser, RefusesWhatCouldBeReadTwoWays) {
  struct Case {
    const char* what;
    std::string wire;
    int code;
  };
  const std::string host = "Host: h\r\n";
  const std::string post = "POST / HTTP/1.1\r\n" + host;
  const Case cases[] = {
      {"length and chunked",
       post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
      {"two equal lengths", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"length list", post + "Content-Length: 3, 3\r\n\r\nabc", 400},
      {"signed length", post + "Content-Length: +3\r\n\r\nabc", 400},
      {"negative length", post + "Content-Length: -3\r\n\r\nabc", 400},
      {"hex length", post + "Content-Length: 0x3\r\n\r\nabc", 400},
      {"empty length", post + "Content-Length:\r\n\r\n", 400},
      {"length over 64 bits", post + "Content-Length: 18446744073709551616\r\n\r\n", 400},
      {"coding before chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"chunked twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
       501},
      {"not quite chunked", post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {"chunked with a vertical tab", post + "Transfer-Encoding: \vchunked\r\n\r\n", 400},
      {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n",
       400},
      {"blank before the colon", post + "Content-Length : 3\r\n\r\nabc", 400},
      {"folded header", post + "X: a\r\n b\r\n\r\n", 400},
      {"folded length", post + "Content-Length:\r\n 3\r\n\r\nabc", 400},
      {"bare line feeds", "GET / HTTP/1.1\nHost: h\n\n" + std::string(70'000, 'x'), 431},
      {"line feed within a value", post + "X: a\nContent-Length: 3\r\n\r\n", 400},
      {"carriage return within a value", post + "X: a\rb\r\n\r\n", 400},
      {"NUL within a value", post + std::string("X: a\0b\r\n\r\n", 10), 400},
      {"no name", post + ": v\r\n\r\n", 400},
      {"no colon", post + "Xyz\r\n\r\n", 400},
      {"bad name", post + "X(y): v\r\n\r\n", 400},
      {"name with a high byte", post + "X\xe4: v\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"no version", "GET /\r\n\r\n", 400},
      {"HTTP/2 in a request line", "GET / HTTP/2.0\r\n" + host + "\r\n", 505},
      {"lower-case version", "GET / http/1.1\r\n" + host + "\r\n", 400},
      {"extra blanks", "GET  /  HTTP/1.1\r\n" + host + "\r\n", 400},
      {"blank in the target", "GET /a b HTTP/1.1\r\n" + host + "\r\n", 400},
      {"target without a slash", "GET a HTTP/1.1\r\n" + host + "\r\n", 400},
      {"absolute target without a path", "GET http://h HTTP/1.1\r\n" + host + "\r\n", 400},
      {"CONNECT", "CONNECT h:1 HTTP/1.1\r\n" + host + "\r\n", 501},
      {"bad method", "G@T / HTTP/1.1\r\n" + host + "\r\n", 400},
  };
  for (const Case& c : cases) EXPECT_EQ(Parse(c.wire).code, c.code) << c.what;
}

TEST(H1Parser, RefusesBadChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* chunks : {"x\r\n", "-1\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", " 1\r\na\r\n",
                             "\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n", "10000000000000000\r\n",
                             "1\r\r\na\r\n", ";\r\n", "0\r\nbad trailer\r\n\r\n"}) {
    EXPECT_EQ(Parse(head + chunks).code, 400) << chunks;
  }
  EXPECT_EQ(Parse(head + "1;" + std::string(500, 'e')).code, 400);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 10'000; ++i) trailers += "a: bbbbbbbbbb\r\n";
  EXPECT_EQ(Parse(head + trailers).code, 431);
}

TEST(H1Parser, Limits) {
  const H1Parser::Limits limits{.max_header_bytes = 200, .max_body = 10};
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(Parse(head + "X: " + std::string(100, 'a') + "\r\n\r\n", limits).code, 0);
  EXPECT_EQ(Parse(head + "X: " + std::string(200, 'a') + "\r\n\r\n", limits).code, 431);
  EXPECT_EQ(Parse(head + "X: " + std::string(300, 'a'), limits, H1Parser::Side::kRequests, 1).code,
            431);
  EXPECT_EQ(Parse(head + "Content-Length: 10\r\n\r\n0123456789", limits).code, 0);
  EXPECT_EQ(Parse(head + "Content-Length: 11\r\n\r\n", limits).code, 413);
  EXPECT_EQ(Parse(head + "Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\n", limits).code,
            413);
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 600; ++i) many += "a: b\r\n";
  EXPECT_EQ(Parse(many + "\r\n").code, 431);
}

TEST(H1Parser, Responses) {
  const auto side = H1Parser::Side::kResponses;
  auto o = Parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", {}, side);
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.head.status, 200);
  EXPECT_EQ(o.body, "ok");
  EXPECT_EQ(Parse("HTTP/1.1 204\r\n\r\n", {}, side).code, 0);
  EXPECT_EQ(Parse("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", {}, side).code, 0);
  o = Parse("HTTP/1.1 200 OK\r\n\r\nuntil the end", {}, side);
  EXPECT_EQ(o.code, -1);
  EXPECT_EQ(o.body, "until the end");
  for (const char* bad :
       {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n", "ICY 200 OK\r\n\r\n"}) {
    EXPECT_EQ(Parse(bad, {}, side).code, 400) << bad;
  }
}

// However the bytes are cut, the same message is read.
RC_GTEST_PROP(H1Parser, CutsDoNotMatter, ()) {
  const auto body = *rc::gen::arbitrary<std::string>();
  const bool chunked = *rc::gen::arbitrary<bool>();
  const auto step = *rc::gen::inRange<size_t>(1, 20);
  std::string wire = "POST /x HTTP/1.1\r\nHost: h\r\n";
  if (chunked) {
    wire += "Transfer-Encoding: chunked\r\n\r\n";
    for (size_t at = 0; at < body.size(); at += 7) {
      const std::string piece = body.substr(at, 7);
      wire += fmt::format("{:X}\r\n{}\r\n", piece.size(), piece);
    }
    wire += "0\r\n\r\n";
  } else {
    wire += fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
  }
  const auto o = Parse(wire + "next", {}, H1Parser::Side::kRequests, step);
  RC_ASSERT(o.code == 0);
  RC_ASSERT(o.body == body);
  RC_ASSERT(o.rest == "next");
}

// Whatever comes, the parser neither crashes nor holds more than its limits.
RC_GTEST_PROP(H1Parser, AnyBytesAreSafe, ()) {
  auto wire = *rc::gen::container<std::string>(rc::gen::element(
      'G', 'E', 'T', ' ', '/', '\r', '\n', ':', 'H', '1', '.', '0', 'a', ',', ';', '\0', '\xff'));
  if (*rc::gen::arbitrary<bool>()) wire = "POST / HTTP/1.1\r\nHost: h\r\n" + wire;
  const auto o = Parse(wire, {.max_header_bytes = 100, .max_body = 10});
  RC_ASSERT(o.body.size() <= 10u);
}

}  // namespace
}  // namespace sextant::net
