// Helpers of net's tests: a PKI, a server with a client, waiting for what happens on other threads.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "base/executor.h"
#include "net/client.h"
#include "net/server.h"

namespace sextant::net {

// Long enough for a loaded machine; never waited for in full by a test that passes.
inline constexpr auto kPatience = std::chrono::seconds(60);

// Something that another thread will give.
template <typename T>
class Awaited {
 public:
  Awaited() : promise_(std::make_shared<std::promise<T>>()), future_(promise_->get_future()) {}
  // Copyable: for callbacks. The first value counts.
  auto Setter() {
    return [promise = promise_](T value) {
      try {
        promise->set_value(std::move(value));
      } catch (const std::future_error&) {  // set before
      }
    };
  }
  bool Ready() const { return future_.wait_for(kPatience) == std::future_status::ready; }
  T Get() {
    if (!Ready()) {
      ADD_FAILURE() << "nothing came";
      std::abort();
    }
    return future_.get();
  }

 private:
  std::shared_ptr<std::promise<T>> promise_;
  std::future<T> future_;
};

struct TestPki {
  Key ca_key = Key::Generate();
  Certificate ca = *IssueCertificate({.common_name = "test-ca", .is_ca = true}, ca_key, nullptr,
                                     ca_key, RealClock().Now());

  CertificateAndKey Issue(CertificateSpec spec) const {
    const Key key = Key::Generate();
    return {IssueCertificate(spec, key, &ca, ca_key, RealClock().Now())->ToPem(), key.PrivatePem()};
  }
  CertificateAndKey ServerCert(std::string name = "server") const {
    return Issue({.common_name = name,
                  .dns_names = {"localhost", name},
                  .ip_addresses = {"127.0.0.1"},
                  .server_auth = true});
  }
  CertificateAndKey ClientCertificate(std::string name, std::vector<std::string> groups) const {
    return Issue({.common_name = name, .organizations = groups, .client_auth = true});
  }
};

inline const TestPki& Pki() {
  static const TestPki* const pki = new TestPki;
  return *pki;
}

inline ServerTls TestServerTls() {
  return {.certificate = Pki().ServerCert(), .client_ca_pem = Pki().ca.ToPem()};
}

// An I/O thread, a loop for results, a server on a free port.
class NetTest : public ::testing::Test {
 protected:
  RealClock clock_;
  EventLoop loop_{"results", clock_};
  IoThread io_{"io", clock_};
  std::unique_ptr<Server> server_;

  void Serve(Handler handler, bool tls = true, ServerLimits limits = {}) {
    ServerOptions options{.listen = {.address = "127.0.0.1"}, .limits = limits};
    if (tls) options.tls = TestServerTls();
    Serve(std::move(options), std::move(handler));
  }
  void Serve(ServerOptions options, Handler handler) {
    auto server = Server::Start({&io_}, std::move(options), std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  ClientOptions Options(bool tls = true, bool http2 = true) const {
    return {.base_url =
                fmt::format("{}://127.0.0.1:{}", tls ? "https" : "http", server_->endpoint().port),
            .tls = {.ca_pem = Pki().ca.ToPem()},
            .http2 = http2};
  }
  Result<ClientResponse> Get(HttpClient& client, ClientRequest request) {
    Awaited<Result<ClientResponse>> got;
    client.Do(std::move(request), got.Setter());
    return got.Get();
  }
};

}  // namespace sextant::net
