// The HTTPS API with a real listener: who may come in, which node is meant, logs and exec.
#include "kubelet/kubelet_server.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "kubelet/container_files.h"
#include "kubelet/test_api.h"
#include "net/spdy_codec.h"
#include "net/test_util.h"

namespace sextant::kubelet {
namespace {

using net::Awaited;
using testing::ScriptedRuntime;
using testing::TestApi;
using testing::TestComponents;

// Repeats what it is fed, then ends with 3.
class EchoSession : public Session {
 public:
  EchoSession(Loop& loop, SessionCallbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {}
  bool Write(std::string_view data) override {
    loop_.Post([callbacks = callbacks_, data = std::string(data)] { callbacks.on_stdout(data); });
    return true;
  }
  void CloseStdin() override {
    loop_.Post([callbacks = callbacks_] { callbacks.on_exit(3); });
  }
  void Resize(uint16_t, uint16_t) override {}
  void Consumed(size_t) override {}
  void Cancel() override {}

 private:
  Loop& loop_;
  const SessionCallbacks callbacks_;
};

// Its containers repeat what they hear, on exec and on port 7; nothing else listens.
class EchoRuntime : public ScriptedRuntime {
 public:
  EchoRuntime(Loop& loop, net::IoThread& io) : ScriptedRuntime(loop), loop_(loop), io_(io) {}
  void DialPort(std::string, uint16_t port, std::function<void(Result<int>)> done) override {
    int pair[2];
    if (port != 7 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      return loop_.Post([done] { done(Fail(ServiceUnavailable("connection refused"))); });
    }
    const auto echo = net::AdoptSocket(io_, pair[1]);
    echo->Start({[echo](std::string_view bytes) { echo->Send(std::string(bytes)); },
                 [echo] { echo->Close(); }, [echo](const Status&) {}});
    loop_.Post([done, fd = pair[0]] { done(fd); });
  }
  std::shared_ptr<Session> Exec(ExecSpec, SessionCallbacks callbacks) override {
    return std::make_shared<EchoSession>(loop_, std::move(callbacks));
  }

 private:
  Loop& loop_;
  net::IoThread& io_;
};

// The client's side of SPDY: keeps what came of each stream.
class SpdyPeer {
 public:
  struct Stream {
    std::string text;
    bool ended = false;
    bool reset = false;
  };

  explicit SpdyPeer(std::shared_ptr<net::ByteStream> wire) : wire_(std::move(wire)) {
    wire_->Start(
        {[seen = seen_](std::string_view bytes) { seen->Take(bytes); }, {}, [](const Status&) {}});
  }
  void Open(uint32_t id, const net::Headers& headers) {
    wire_->Send(encoder_.SynStream(id, headers, false));
  }
  void Send(uint32_t id, std::string_view bytes, bool fin = false) {
    wire_->Send(net::SpdyEncoder::Data(id, bytes, fin));
  }
  void Send(std::string frame) { wire_->Send(std::move(frame)); }
  // Waits until the stream has ended in one way or the other.
  Stream End(uint32_t id) {
    std::unique_lock lock(seen_->mutex);
    const bool came = seen_->changed.wait_for(lock, net::kPatience, [&] {
      const Stream& stream = seen_->streams[id];
      return stream.ended || stream.reset;
    });
    EXPECT_TRUE(came) << "stream " << id;
    return seen_->streams[id];
  }

 private:
  // Outlives the peer on the I/O thread.
  struct Seen {
    void Take(std::string_view bytes) {
      const std::lock_guard lock(mutex);
      decoder.Feed(bytes);
      for (auto next = decoder.Next(); next && *next; next = decoder.Next()) {
        Stream& stream = streams[(*next)->id];
        stream.text += (*next)->data;
        stream.ended |= (*next)->fin;
        stream.reset |= (*next)->type == net::SpdyType::kRstStream;
      }
      changed.notify_all();
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::map<uint32_t, Stream> streams;
    net::SpdyDecoder decoder;
  };

  const std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  net::SpdyEncoder encoder_;
  const std::shared_ptr<net::ByteStream> wire_;
};

net::Headers ForwardHeaders(std::string_view type, std::string_view port, std::string_view id) {
  return {{"streamtype", type}, {"port", port}, {"requestid", id}};
}

class KubeletServerTest : public net::NetTest {
 protected:
  KubeletServerTest() : dir_(*TempDir::Make("kubelet-server")) {
    OnLoop([this] {
      api_ = std::make_unique<TestApi>(loop_);
      informers_ = std::make_unique<client::SharedInformers>(*api_);
      feed_ = std::make_unique<NodeFeed>(*informers_);
      runtime_ = std::make_unique<EchoRuntime>(loop_, io_);
      machine_ = std::make_unique<host::SimulatedMachine>(loop_);
      components_ = std::make_unique<TestComponents>(loop_);
      KubeletOptions options;
      options.node = "worker";
      options.state_directory = dir_.path();
      kubelet_ = std::make_unique<Kubelet>(
          KubeletParts{*api_, *feed_, *runtime_, *machine_, files_, *components_}, options);
      kubelets_ = std::make_unique<KubeletServer>(loop_, io_);
      kubelets_->Add(*kubelet_);
      kubelet_->Start();
      api_->Put("pods", R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web",
        "namespace":"default","uid":"web"},"spec":{"nodeName":"worker",
        "containers":[{"name":"c","image":"x","command":["sh"]}]},"status":{"phase":"Pending"}})");
    });
    net::ServerOptions options{.listen = {.address = "127.0.0.1"}};
    options.tls = net::ServerTls{.certificate = net::Pki().ServerCert("worker"),
                                 .client_ca_pem = net::Pki().ca.ToPem()};
    Serve(std::move(options), kubelets_->Handler());
  }
  ~KubeletServerTest() override {
    server_.reset();
    OnLoop([this] {
      kubelets_.reset();
      kubelet_.reset();
      runtime_.reset();
      feed_.reset();
      informers_.reset();
    });
    files_.Stop();
  }

  void OnLoop(Task task) {
    Awaited<bool> done;
    loop_.Post([task = std::move(task), set = done.Setter()]() mutable {
      task();
      set(true);
    });
    done.Get();
  }
  // The test's Pod runs when its container has been asked to start.
  void WaitUntilRunning() {
    for (bool runs = false; !runs;) {
      OnLoop([&] { runs = kubelet_->FindRunning("default", "web", "c").has_value(); });
    }
  }
  net::ClientOptions As(std::string name, std::vector<std::string> groups = {},
                        std::string node = "worker") {
    net::ClientOptions options;
    options.base_url = "https://" + node;
    options.connect_to = fmt::format("127.0.0.1:{}", server_->endpoint().port);
    options.tls.ca_pem = net::Pki().ca.ToPem();
    if (name.empty()) return options;
    const net::CertificateAndKey mine = net::Pki().ClientCertificate(name, groups);
    options.tls.cert_pem = mine.chain_pem;
    options.tls.key_pem = mine.key_pem;
    return options;
  }
  net::ClientResponse Ask(const net::ClientOptions& options, std::string target) {
    net::HttpClient client(io_, loop_, options);
    auto answer = Get(client, {.target = std::move(target)});
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : net::ClientResponse();
  }

  TempDir dir_;
  ThreadPool files_{"files", 1};
  std::unique_ptr<TestApi> api_;
  std::unique_ptr<client::SharedInformers> informers_;
  std::unique_ptr<NodeFeed> feed_;
  std::unique_ptr<EchoRuntime> runtime_;
  std::unique_ptr<host::SimulatedMachine> machine_;
  std::unique_ptr<TestComponents> components_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<KubeletServer> kubelets_;
};

TEST_F(KubeletServerTest, OnlyTheApiServerMayEnter) {
  EXPECT_EQ(Ask(As(""), "/pods").status, 401);
  EXPECT_EQ(Ask(As("somebody", {"system:authenticated"}), "/pods").status, 401);
  EXPECT_EQ(Ask(As("system:node:worker", {"system:nodes"}), "/pods").status, 401);
  EXPECT_EQ(Ask(As(kApiServerClientName), "/healthz").body, "ok");
  EXPECT_EQ(Ask(As("admin", {"system:masters"}), "/pods").status, 200);
}

TEST_F(KubeletServerTest, LogsAndTheirRefusals) {
  WaitUntilRunning();
  const net::ClientOptions api = As(kApiServerClientName);
  const std::string log = dir_.path() + "/pods/web/logs/c/0.log";
  ASSERT_TRUE(AppendLogLine(log, "one", clock_.Now()));
  ASSERT_TRUE(AppendLogLine(log, "two", clock_.Now()));
  EXPECT_EQ(Ask(api, "/containerLogs/default/web/c").body, "one\ntwo\n");
  EXPECT_EQ(Ask(api, "/containerLogs/default/web/c?tailLines=1").body, "two\n");
  const auto previous = Ask(api, "/containerLogs/default/web/c?previous=true");
  EXPECT_EQ(previous.status, 400);
  EXPECT_EQ(previous.body, "previous terminated container \"c\" in pod \"web\" not found");
  EXPECT_EQ(Ask(api, "/containerLogs/default/none/c").status, 404);
  EXPECT_EQ(Ask(api, "/containerLogs/default/web/c?tailLines=x").status, 400);
  EXPECT_EQ(Ask(api, "/nothing").status, 404);
  EXPECT_EQ(Ask(api, "/exec/default/web/c?command=sh&output=1").status, 400);  // no upgrade
}

TEST_F(KubeletServerTest, ExecSpeaksChannels) {
  WaitUntilRunning();
  net::HttpClient client(io_, loop_, As(kApiServerClientName));
  Awaited<Result<std::shared_ptr<net::WebSocket>>> opened;
  client.OpenWebSocket({.target = "/exec/default/web/c?command=cat&input=1&output=1",
                        .protocols = {"v5.channel.k8s.io", "v4.channel.k8s.io"}},
                       opened.Setter());
  auto socket = opened.Get();
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ((*socket)->protocol(), "v5.channel.k8s.io");
  auto output = std::make_shared<std::map<char, std::string>>();
  Awaited<net::WsClose> closed;
  (*socket)->Start(
      {[output](bool, std::string message) { (*output)[message[0]] += message.substr(1); },
       [set = closed.Setter()](net::WsClose code, std::string) { set(code); }});
  (*socket)->Send(true, std::string("\0hello", 6));
  (*socket)->Send(true, std::string("\xff\0", 2));  // no more input
  EXPECT_EQ(closed.Get(), net::WsClose::kNormal);
  EXPECT_EQ((*output)[1], "hello");
  auto status = api::ParseJson((*output)[3]);
  ASSERT_TRUE(status);
  EXPECT_EQ((*status)["reason"].AsString(), "NonZeroExitCode");
  EXPECT_EQ((*status)["details"]["causes"].at(0)["message"].AsString(), "3");
}

class PortForwardTest : public KubeletServerTest {
 protected:
  PortForwardTest() { WaitUntilRunning(); }
  net::HttpClient client_{io_, loop_, As(kApiServerClientName)};

  Result<std::shared_ptr<net::WebSocket>> Tunnel(std::string protocol) {
    Awaited<Result<std::shared_ptr<net::WebSocket>>> opened;
    client_.OpenWebSocket(
        {.target = "/portForward/default/web", .headers = {}, .protocols = {protocol}},
        opened.Setter());
    return opened.Get();
  }
  Result<net::Upgraded> Upgrade(std::string target, const net::Headers& headers) {
    Awaited<Result<net::Upgraded>> opened;
    client_.OpenUpgrade({.target = std::move(target), .headers = headers, .to = "SPDY/3.1"},
                        opened.Setter());
    return opened.Get();
  }
};

// As kubectl's port-forward does since 1.31.
TEST_F(PortForwardTest, SpdyInAWebSocket) {
  const auto socket = Tunnel("SPDY/3.1+portforward.k8s.io");
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ((*socket)->protocol(), "SPDY/3.1+portforward.k8s.io");
  SpdyPeer peer(net::TunnelOver(*socket));
  for (uint32_t i = 0; i < 3; ++i) {  // connections side by side
    peer.Open(4 * i + 1, ForwardHeaders("error", "7", std::to_string(i)));
    peer.Send(4 * i + 1, "", true);
    peer.Open(4 * i + 3, ForwardHeaders("data", "7", std::to_string(i)));
    peer.Send(4 * i + 3, fmt::format("hello {}", i));
  }
  for (uint32_t i = 0; i < 3; ++i) {
    peer.Send(4 * i + 3, "!", true);
    const SpdyPeer::Stream data = peer.End(4 * i + 3);
    EXPECT_EQ(data.text, fmt::format("hello {}!", i));
    EXPECT_FALSE(data.reset);
    const SpdyPeer::Stream errors = peer.End(4 * i + 1);
    EXPECT_EQ(errors.text, "");
    EXPECT_FALSE(errors.reset);
  }
}

TEST_F(PortForwardTest, WhatFailsIsToldOnTheErrorStream) {
  auto upgraded =
      Upgrade("/portForward/default/web", {{"x-stream-protocol-version", "portforward.k8s.io"}});
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  EXPECT_EQ(upgraded->headers.Get("x-stream-protocol-version"), "portforward.k8s.io");
  SpdyPeer peer(upgraded->stream);
  // Without request ids, as very old clients: a data stream belongs to the error stream before it.
  peer.Open(1, {{"streamtype", "error"}, {"port", "9"}});
  peer.Open(3, {{"streamtype", "data"}, {"port", "9"}});
  EXPECT_EQ(peer.End(1).text, "error forwarding port 9 to pod web, uid : connection refused");
  EXPECT_TRUE(peer.End(1).reset);
  EXPECT_TRUE(peer.End(3).reset);
  // The connection goes on.
  peer.Open(5, ForwardHeaders("error", "7", "b"));
  peer.Open(7, ForwardHeaders("error", "7", "b"));
  EXPECT_TRUE(peer.End(7).reset);
  peer.Open(9, ForwardHeaders("data", "7", "b"));
  peer.Send(9, "x", true);
  EXPECT_EQ(peer.End(9).text, "x");
  EXPECT_EQ(peer.End(5).text,
            "error processing stream for request b: error stream already assigned");
  for (const net::Headers& bad :
       {net::Headers{{"streamtype", "data"}}, ForwardHeaders("data", "0", "c"),
        ForwardHeaders("data", "65536", "c"), ForwardHeaders("other", "7", "c"),
        ForwardHeaders("data", "7", std::string(65, 'c'))}) {
    static uint32_t id = 11;
    peer.Open(id, bad);
    EXPECT_TRUE(peer.End(id).reset);
    id += 2;
  }
}

TEST_F(PortForwardTest, ClientsThatGoAwayOrGiveUp) {
  auto upgraded =
      Upgrade("/portForward/default/web", {{"x-stream-protocol-version", "portforward.k8s.io"}});
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  SpdyPeer peer(upgraded->stream);
  peer.Open(1, ForwardHeaders("error", "7", "a"));
  peer.Open(3, ForwardHeaders("data", "7", "a"));
  peer.Send(net::SpdyEncoder::RstStream(3, net::SpdyReset::kCancel));
  EXPECT_TRUE(peer.End(1).ended);
  peer.Open(5, ForwardHeaders("error", "7", "b"));
  peer.Open(7, ForwardHeaders("data", "7", "b"));
  peer.Send(7, "x");
  peer.Send(net::SpdyEncoder::GoAway(0, false));
}

TEST_F(PortForwardTest, OnlyWhatIsSpokenIsAgreedOn) {
  const auto tunnel = Tunnel("SPDY/3.1+v9.portforward.k8s.io");
  ASSERT_FALSE(tunnel);
  EXPECT_EQ(tunnel.error().code, 403);
  EXPECT_EQ(tunnel.error().message,
            "unable to upgrade: unable to negotiate protocol: client supports "
            "[v9.portforward.k8s.io], server accepts [portforward.k8s.io]");
  const auto nothing = Upgrade("/portForward/default/web", {});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, 400);
  const auto plain = Tunnel("v4.channel.k8s.io");  // which needs ?port=
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, 400);
}

// As kubectl up to 1.29 and many a library.
TEST_F(PortForwardTest, ExecOverSpdy) {
  auto upgraded = Upgrade("/exec/default/web/c?command=cat&input=1&output=1",
                          {{"x-stream-protocol-version", "v5.channel.k8s.io, v4.channel.k8s.io"},
                           {"x-stream-protocol-version", "v3.channel.k8s.io"}});
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  EXPECT_EQ(upgraded->headers.Get("x-stream-protocol-version"), "v4.channel.k8s.io");
  SpdyPeer peer(upgraded->stream);
  peer.Open(1, {{"streamtype", "error"}});
  peer.Open(3, {{"streamtype", "stdin"}});
  peer.Send(3, "hel");
  peer.Open(5, {{"streamtype", "stdout"}});
  peer.Send(3, "lo", true);
  EXPECT_EQ(peer.End(5).text, "hello");
  auto status = api::ParseJson(peer.End(1).text);
  ASSERT_TRUE(status);
  EXPECT_EQ((*status)["reason"].AsString(), "NonZeroExitCode");
  EXPECT_EQ((*status)["details"]["causes"].at(0)["message"].AsString(), "3");
}

}  // namespace
}  // namespace sextant::kubelet
