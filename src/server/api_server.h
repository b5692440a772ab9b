// The API server's HTTP side: from a request's bytes to the pipeline and back.
//
// One request: authenticate (certificate, token, anonymous) → RequestInfo → authorize → decode →
// Pipeline, WatchStream, a subresource handler or a fixed path (discovery, OpenAPI, health,
// version) → encode in the negotiated form.
//
// Ownership: made by lab/ with everything it needs; must outlive the net::Server that calls Handle.
// Threads: Handle from I/O threads; it hands on at once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "net/http.h"
#include "net/server.h"
#include "server/authenticator.h"
#include "server/local_client.h"
#include "server/negotiate.h"
#include "server/node_dialer.h"
#include "server/pipeline.h"
#include "server/registry_source.h"

namespace sextant::server {

struct ServerParts {
  Pipeline& pipeline;
  const Authenticator& authenticator;
  RegistrySource& registries;
  // How logs, exec, attach and port-forward reach a node. Null where there are no nodes.
  NodeDialer* nodes = nullptr;
  // "v1.36.3+sextant.1"
  std::string git_version;
  std::string git_commit;
  std::string build_date;
  // Where discovery's APIVersions say the server is: "127.0.0.1:6443".
  std::string address;
};

// What the HTTP listener answers by itself, before Handle: a body that is too large gets the Status
// that the real server's handlers give, all else the words of its HTTP library.
net::ErrorAnswer RenderListenerError(const Error& error);

class ApiServer : public LocalExtras {
 public:
  explicit ApiServer(ServerParts parts);
  ~ApiServer() override;

  void Handle(net::Request request, std::shared_ptr<net::ResponseWriter> writer);

  // A client of this server for `user`, whose completions run on `executor`.
  std::unique_ptr<client::Client> Client(User user, Loop& executor);

  // /readyz says ok from here on, if the store does (before: 500 with what is missing).
  void SetReady(bool ready);

  // LocalExtras
  void PodLog(const User& user, client::ObjectName pod, std::string container, int64_t limit_bytes,
              client::Callback<std::string> done) override;
  void Raw(const User& user, std::string path, client::Callback<std::string> done) override;
  bool ExecuteSubresource(Operation& op, Respond& done) override;

 private:
  struct Call;
  void OnWorker(const std::shared_ptr<Call>& call);
  void Fixed(const std::shared_ptr<Call>& call);
  void Resource(const std::shared_ptr<Call>& call);
  void Health(const std::shared_ptr<Call>& call);
  void Version(const std::shared_ptr<Call>& call);
  void OpenId(const std::shared_ptr<Call>& call);
  void Index(const std::shared_ptr<Call>& call);
  void Watch(const std::shared_ptr<Call>& call);
  void Answer(const std::shared_ptr<Call>& call, Result<Outcome> outcome);
  static std::string ManagerOf(const net::Request& request);

  struct Rooms;
  ServerParts parts_;
  std::unique_ptr<Rooms> rooms_;
  std::atomic<bool> ready_ = false;
};

}  // namespace sextant::server
