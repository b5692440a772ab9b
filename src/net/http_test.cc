#include "net/http.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sextant::net {
namespace {

TEST(Headers, IgnoreCaseAndKeepOrder) {
  Headers h{{"Content-Type", "a"}, {"X-Remote-Group", "g1"}, {"x-remote-group", "g2"}};
  EXPECT_EQ(h.Get("CONTENT-type"), "a");
  EXPECT_EQ(h.begin()->name, "content-type");
  EXPECT_EQ(h.GetAll("X-Remote-GROUP"), (std::vector<std::string_view>{"g1", "g2"}));
  h.Set("x-remote-group", "g3");
  EXPECT_EQ(h.size(), 2u);
  EXPECT_FALSE(h.Has("none"));
  EXPECT_EQ(h.Get("none"), "");
}

TEST(Headers, TokensOfSeveralLines) {
  const Headers h{{"connection", "keep-alive , Upgrade"}, {"connection", "x"}};
  EXPECT_TRUE(h.HasToken("connection", "upgrade"));
  EXPECT_TRUE(h.HasToken("connection", "X"));
  EXPECT_FALSE(h.HasToken("connection", "keep"));
}

TEST(Request, KnowsAWebSocketUpgrade) {
  Request r{.method = "GET",
            .headers = {{"connection", "Upgrade"},
                        {"upgrade", "websocket"},
                        {"sec-websocket-version", "13"},
                        {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="},
                        {"sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io"}}};
  EXPECT_TRUE(r.IsWebSocketUpgrade());
  EXPECT_EQ(r.WebSocketProtocols(),
            (std::vector<std::string>{"v5.channel.k8s.io", "v4.channel.k8s.io"}));
  Request bad = r;
  bad.headers.Set("sec-websocket-key", "short");
  EXPECT_FALSE(bad.IsWebSocketUpgrade());
  bad = r;
  bad.http_major = 2;
  EXPECT_FALSE(bad.IsWebSocketUpgrade());
  bad = r;
  bad.headers.Set("sec-websocket-version", "8");
  EXPECT_FALSE(bad.IsWebSocketUpgrade());
}

TEST(Url, Parses) {
  struct Case {
    const char* text;
    const char* host_port;
    const char* path;
    const char* query;
  };
  const Case cases[] = {{"https://127.0.0.1:6443", "127.0.0.1:6443", "", ""},
                        {"https://host/a/b?c=d#e", "host:443", "/a/b", "c=d"},
                        {"HTTP://[::1]:80/x", "[::1]:80", "/x", ""},
                        {"wss://h?q", "h:443", "", "q"}};
  for (const Case& c : cases) {
    const auto url = ParseUrl(c.text);
    ASSERT_TRUE(url) << c.text;
    EXPECT_EQ(url->HostPort(), c.host_port);
    EXPECT_EQ(url->path, c.path);
    EXPECT_EQ(url->query, c.query);
  }
  EXPECT_EQ(ParseUrl("unix:///run/a.sock")->path, "/run/a.sock");
  for (const char* bad :
       {"", "host:1", "ftp://h", "https://", "https://h:0", "https://h:65536", "https://h:1x",
        "https://[::1", "https://u@h", "https://[::1]x", "unix://", "https://a\r\nb/"}) {
    EXPECT_FALSE(ParseUrl(bad)) << bad;
  }
}

TEST(Percent, RefusesBadEscapes) {
  for (const char* bad : {"%", "%1", "%zz", "a%2"}) EXPECT_FALSE(PercentDecode(bad)) << bad;
  EXPECT_EQ(PercentDecode("a%2Fb+c"), "a/b+c");
  EXPECT_EQ(PercentDecode("a%2fb+c", true), "a/b c");
}

RC_GTEST_PROP(Percent, GoesRound, (const std::string& bytes)) {
  RC_ASSERT(*PercentDecode(PercentEncode(bytes)) == bytes);
}

TEST(Query, KeepsOrderAndRepeats) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(*ParseQuery("a=1&b&a=%202&&c=+x%3D"),
            (Pairs{{"a", "1"}, {"b", ""}, {"a", " 2"}, {"c", " x="}}));
  EXPECT_FALSE(ParseQuery("a=%"));
}

}  // namespace
}  // namespace sextant::net
