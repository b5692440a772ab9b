// The HTTPS API with a real listener: who may come in, which node is meant, logs and exec.
#include "kubelet/kubelet_server.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "kubelet/container_files.h"
#include "kubelet/test_api.h"
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

class EchoRuntime : public ScriptedRuntime {
 public:
  explicit EchoRuntime(Loop& loop) : ScriptedRuntime(loop), loop_(loop) {}
  std::shared_ptr<Session> Exec(ExecSpec, SessionCallbacks callbacks) override {
    return std::make_shared<EchoSession>(loop_, std::move(callbacks));
  }

 private:
  Loop& loop_;
};

class KubeletServerTest : public net::NetTest {
 protected:
  KubeletServerTest() : dir_(*TempDir::Make("kubelet-server")) {
    OnLoop([this] {
      api_ = std::make_unique<TestApi>(loop_);
      informers_ = std::make_unique<client::SharedInformers>(*api_);
      feed_ = std::make_unique<NodeFeed>(*informers_);
      runtime_ = std::make_unique<EchoRuntime>(loop_);
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

}  // namespace
}  // namespace sextant::kubelet
