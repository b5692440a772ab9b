#include "in_process_server.h"

#include <future>

#include "base/check.h"
#include "base/version.h"
#include "lab/bootstrap.h"
#include "net/tls.h"
#include "server/api_server.h"
#include "server/served.h"
#include "store/store.h"

namespace sextant::recorded {

Answer Pending::Wait(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return ended_; });
  return answer_;
}

bool Pending::WaitForHeaders(Duration limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return started_ || ended_; });
}

std::string Pending::TakeBytes(Duration limit, bool& ended) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return ended_ || taken_ < answer_.body.size(); });
  std::string bytes = answer_.body.substr(taken_);
  taken_ = answer_.body.size();
  ended = ended_;
  return bytes;
}

void Pending::Close() {
  std::vector<Task> tasks;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    tasks = std::exchange(on_closed_, {});
  }
  changed_.notify_all();
  for (Task& task : tasks) task();
}

Answer Pending::head() {
  std::lock_guard lock(mutex_);
  return {answer_.status, answer_.headers, ""};
}

void Pending::SendResponse(int status, net::Headers headers, net::Buffer body) {
  std::lock_guard lock(mutex_);
  if (ended_) return;
  answer_ = {status, std::move(headers), *body};
  ended_ = true;
  changed_.notify_all();
}

void Pending::StartStream(int status, net::Headers headers) {
  std::lock_guard lock(mutex_);
  answer_.status = status;
  answer_.headers = std::move(headers);
  started_ = true;
  changed_.notify_all();
}

bool Pending::Write(net::Buffer piece) {
  std::lock_guard lock(mutex_);
  if (ended_) return false;
  answer_.body += *piece;
  changed_.notify_all();
  return true;
}

void Pending::Finish() { Close(); }
void Pending::Abort() { Close(); }

bool Pending::closed() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

void Pending::OnClosed(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (!ended_) {
      on_closed_.push_back(std::move(task));
      return;
    }
  }
  task();
}

void Pending::OnWritable(Task task) { task(); }

void Pending::UpgradeWebSocket(
    std::string, std::move_only_function<void(std::shared_ptr<net::WebSocket>)> done) {
  done(nullptr);
}

void Pending::Hijack(net::Headers,
                     std::move_only_function<void(std::shared_ptr<net::ByteStream>)> done) {
  done(nullptr);
}

struct InProcessServer::Parts {
  RealClock clock;
  EventLoop core{"core", clock};
  ThreadPool workers{"worker", 2};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<server::Authorizer> authorizer = server::DefaultAuthorizer();
  std::unique_ptr<server::Pipeline> pipeline;
  std::unique_ptr<server::TokenIssuer> tokens;
  std::unique_ptr<server::Authenticator> authenticator;
  std::unique_ptr<server::RegistrySource> registries;
  std::unique_ptr<server::ApiServer> api;
  std::unique_ptr<client::Client> admin;
};

InProcessServer::InProcessServer() : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  auto store = store::Store::Open({}, p.core);
  CHECK(store.has_value());
  p.store = *std::move(store);
  p.pipeline = std::make_unique<server::Pipeline>(server::PipelineParts{
      *p.store, p.core, p.workers, *p.authorizer, server::DefaultAdmission()});
  // Of the kind that the recorded server signed with; a lab's own is EC P-256.
  auto tokens = server::MakeTokenIssuer(net::Key::Generate(net::KeyKind::kRsa2048).PrivatePem(),
                                        "https://kubernetes.default.svc.cluster.local");
  CHECK(tokens.has_value());
  p.tokens = *std::move(tokens);
  p.authenticator = std::make_unique<server::Authenticator>(*p.tokens, *p.pipeline);
  p.registries = std::make_unique<server::RegistrySource>(
      server::ServedRegistry(api::Registry::Builtin(), [](const api::Resource& resource) {
        return server::ServedByDefault(resource.group_version);
      }));
  p.api = std::make_unique<server::ApiServer>(
      server::ServerParts{*p.pipeline, *p.authenticator, *p.registries, nullptr,
                          std::string(version::kKubernetes), "", "", "127.0.0.1:6443"});
  p.admin = p.api->Client({"system:apiserver", "", {"system:masters"}, {}}, p.core);
  std::promise<Status> done;
  p.core.Post([&] {
    // The server that was recorded has no class of storage; a lab has kind's.
    std::vector<api::Object> objects = lab::SystemObjects();
    for (api::Object& object : lab::FirstObjects(lab::LabConfig())) {
      objects.push_back(std::move(object));
    }
    std::erase_if(objects, [](const api::Object& o) { return o.kind() == "StorageClass"; });
    lab::Bootstrap(*p.admin, std::move(objects),
                   [&](Status status) { done.set_value(std::move(status)); });
  });
  const Status status = done.get_future().get();
  CHECK(status.has_value());
  p.api->SetReady(true);
}

InProcessServer::~InProcessServer() {
  parts_->workers.Stop();
  parts_->store->Close();
  parts_->core.Stop();
}

std::shared_ptr<Pending> InProcessServer::Ask(net::Request request, const Asker& asker) {
  auto peer = std::make_shared<net::Peer>();
  peer->address = "127.0.0.1";
  peer->tls = true;
  if (!asker.name.empty()) {
    net::ClientCert cert;
    cert.common_name = asker.name;
    cert.organizations = asker.groups;
    cert.fingerprint_sha256 = std::string(64, '0');
    peer->client_cert = std::move(cert);
  }
  request.peer = std::move(peer);
  auto pending = std::make_shared<Pending>();
  parts_->api->Handle(std::move(request), pending);
  return pending;
}

}  // namespace sextant::recorded
