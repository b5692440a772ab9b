#include "lab/lab.h"

#include <fmt/format.h>

#include <future>
#include <map>

#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "client/informer.h"
#include "controllers/controllers.h"
#include "lab/api_service.h"
#include "lab/bootstrap.h"
#include "lab/node_set.h"
#include "lab/pools.h"
#include "lab/ready.h"
#include "net/server.h"
#include "scheduler/scheduler.h"
#include "server/api_server.h"
#include "server/served.h"

namespace sextant::lab {
namespace {

constexpr std::string_view kIssuer = "https://kubernetes.default.svc.cluster.local";
// In the store's meta: the objects of a new lab have been made.
constexpr std::string_view kBootstrapped = "bootstrapped";
constexpr Duration kStartLimit = std::chrono::seconds(30);
constexpr Duration kWaitStep = std::chrono::milliseconds(100);
constexpr Duration kStopGrace = std::chrono::seconds(2);
constexpr int kWorkers = 2;

server::User SystemUser(std::string name, std::vector<std::string> groups) {
  groups.emplace_back("system:authenticated");
  return {std::move(name), "", std::move(groups), {}};
}

// Waits for one answer that comes on another thread.
template <typename T>
class Answer {
 public:
  void Set(T value) { promise_.set_value(std::move(value)); }
  Result<T> Wait(Duration limit, std::string_view what) {
    auto future = promise_.get_future();
    if (future.wait_for(limit) != std::future_status::ready) {
      return Fail(Timeout(fmt::format("{}: no answer within {}", what, FormatDuration(limit)), 0));
    }
    return future.get();
  }

 private:
  std::promise<T> promise_;
};

// Runs `task` on the loop and waits for its end.
void RunOn(Loop& loop, std::function<void()> task) {
  std::promise<void> done;
  loop.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

// In the order of construction; destroyed the other way round by Stop.
struct Lab::Parts {
  LabConfig config;
  LabPaths paths;
  Access access;
  Pki pki;
  RealClock clock;
  EventLoop core{"core", clock};
  ThreadPool workers{"worker", kWorkers};
  ThreadPool files{"files", 1};
  net::IoThread io{"io", clock};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<server::Authorizer> authorizer = server::DefaultAuthorizer();
  std::unique_ptr<server::Pipeline> pipeline;
  std::unique_ptr<server::TokenIssuer> tokens;
  std::unique_ptr<server::Authenticator> authenticator;
  std::unique_ptr<server::RegistrySource> registries;
  std::unique_ptr<NodeSet> nodes;
  std::unique_ptr<server::ApiServer> api;
  std::unique_ptr<net::Server> listener;
  // What acts on the cluster, each as its own user; on the core loop.
  std::unique_ptr<client::Client> admin_client;
  std::unique_ptr<client::Client> scheduler_client;
  std::unique_ptr<client::Client> lab_client;
  std::unique_ptr<client::SharedInformers> scheduler_informers;
  std::unique_ptr<client::SharedInformers> lab_informers;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  std::map<std::string, std::unique_ptr<client::Client>> controller_clients;  // by user
  std::unique_ptr<controllers::Controllers> controllers;
  std::unique_ptr<Pools> pools;
  std::unique_ptr<ReadyWatch> ready;
  bool stopped = false;
  // On the core loop: why the store has stopped, and who wants to know.
  std::optional<Error> fatal;
  std::function<void(Error)> on_fatal;

  Status OpenStore();
  Status StartAll();
  Status LoadPki();
  Status StartServer();
  Status BootstrapCluster();
  Status StartActors();
  client::Client& ControllerClient(const std::string& user);
};

// As kube-controller-manager has it with --use-service-account-credentials.
client::Client& Lab::Parts::ControllerClient(const std::string& user) {
  auto& slot = controller_clients[user];
  if (!slot) {
    std::vector<std::string> groups;
    if (user.starts_with("system:serviceaccount:")) {
      groups = {"system:serviceaccounts", "system:serviceaccounts:kube-system"};
    }
    slot = api->Client(SystemUser(user, std::move(groups)), core);
  }
  return *slot;
}

Status Lab::Parts::OpenStore() {
  store::Options options;
  if (!paths.ephemeral) options.path = paths.directory + "/lab.db";
  options.registry = &api::Registry::Builtin();
  ASSIGN_OR_RETURN(store, store::Store::Open(options, core));
  RunOn(core, [this] {
    store->OnFatal([this](Error error) {
      fatal = std::move(error);
      if (on_fatal) on_fatal(*fatal);
    });
  });
  return {};
}

// From the store, or made and put there before anything is served.
Status Lab::Parts::LoadPki() {
  Result<std::string> saved = Fail(Error{});
  RunOn(core, [&] { saved = store->GetMeta("pki"); });
  if (saved) {
    ASSIGN_OR_RETURN(pki, ParsePki(*saved));
  } else {
    ASSIGN_OR_RETURN(pki, MakePki(config.name, clock.Now()));
    Answer<Status> put;
    core.Post([&] {
      store->PutMeta("pki", SerialisePki(pki), [&](Status status) { put.Set(std::move(status)); });
    });
    ASSIGN_OR_RETURN(Status status, put.Wait(kStartLimit, "writing the lab's keys"));
    RETURN_IF_ERROR(status);
  }
  access.ca_pem = pki.ca.cert_pem;
  ASSIGN_OR_RETURN(access.admin, pki.Issue(AdminSpec(), clock.Now()));
  return {};
}

Status Lab::Parts::StartServer() {
  pipeline = std::make_unique<server::Pipeline>(
      server::PipelineParts{*store, core, workers, *authorizer, server::DefaultAdmission()});
  ASSIGN_OR_RETURN(tokens, server::MakeTokenIssuer(pki.token_key_pem, std::string(kIssuer)));
  authenticator = std::make_unique<server::Authenticator>(*tokens, *pipeline);
  registries = std::make_unique<server::RegistrySource>(
      server::ServedRegistry(api::Registry::Builtin(), [](const api::Resource& resource) {
        return server::ServedByDefault(resource.group_version);
      }));
  ASSIGN_OR_RETURN(nodes, NodeSet::Make({core, files, io, clock, pki, config, paths}));
  ASSIGN_OR_RETURN(const KeyAndCert cert, pki.Issue(ApiServerSpec({config.name + "-control-plane"},
                                                                  {config.listen_address}),
                                                    clock.Now()));
  net::ServerOptions options;
  options.listen = {
      .address = config.listen_address, .port = static_cast<uint16_t>(config.port), .path = {}};
  options.tls = net::ServerTls{{cert.cert_pem + pki.ca.cert_pem, cert.key_pem}, pki.ca.cert_pem};
  options.render_error = server::RenderListenerError;
  // The server says its own port, which is known once it is bound; who connects before waits.
  std::promise<server::ApiServer*> made;
  ASSIGN_OR_RETURN(
      listener,
      net::Server::Start({&io}, std::move(options),
                         [server = made.get_future().share()](net::Request request, auto writer) {
                           server.get()->Handle(std::move(request), std::move(writer));
                         }));
  const net::Endpoint& at = listener->endpoint();
  const bool any = at.address == "0.0.0.0" || at.address == "::";
  net::Endpoint shown = at;
  if (any) shown.address = "127.0.0.1";
  api = std::make_unique<server::ApiServer>(server::ServerParts{
      *pipeline, *authenticator, *registries, nodes.get(), std::string(version::kKubernetes),
      std::string(version::kCommit), std::string(version::kBuildDate), shown.ToString()});
  made.set_value(api.get());
  access.server = fmt::format("https://{}", shown.ToString());
  return {};
}

Status Lab::Parts::BootstrapCluster() {
  admin_client = api->Client(SystemUser("system:apiserver", {"system:masters"}), core);
  Answer<Status> done;
  const auto end = [&](Status status) { done.Set(std::move(status)); };
  core.Post([&] {
    std::vector<api::Object> objects = SystemObjects();
    const bool first = !store->GetMeta(kBootstrapped);
    for (api::Object& object : first ? FirstObjects(config) : std::vector<api::Object>()) {
      objects.push_back(std::move(object));
    }
    Bootstrap(*admin_client, std::move(objects), [&, first](Status status) {
      if (!status) return end(std::move(status));
      PublishApiServer(*admin_client, ApiServerEndpoint(listener->endpoint()),
                       [&, first](Status published) {
                         if (!published || !first) return end(std::move(published));
                         store->PutMeta(std::string(kBootstrapped), "1", end);
                       });
    });
  });
  ASSIGN_OR_RETURN(Status status, done.Wait(kStartLimit, "bootstrapping the cluster"));
  return status;
}

Status Lab::Parts::StartActors() {
  scheduler_client = api->Client(SystemUser("system:kube-scheduler", {}), core);
  lab_client = api->Client(SystemUser("system:sextant-lab", {"system:masters"}), core);
  RunOn(core, [this] {
    scheduler_informers = std::make_unique<client::SharedInformers>(*scheduler_client);
    lab_informers = std::make_unique<client::SharedInformers>(*lab_client);
    scheduler = std::make_unique<scheduler::Scheduler>(*scheduler_client, *scheduler_informers,
                                                       scheduler::SchedulerOptions{}, RandomSeed());
    pools = std::make_unique<Pools>(
        *lab_client, *lab_informers,
        [this](const std::string& name) { return nodes->Machine(name); },
        PoolsOptions{config.name, FirstPools(config)});
    ready = std::make_unique<ReadyWatch>(
        *lab_informers, [this](const api::Object& node) { return pools->PoolOf(node); });
    nodes->Start(*api, *lab_informers);
    controllers = std::make_unique<controllers::Controllers>(controllers::ControllersOptions{
        .client_for = [this](const std::string& user) -> client::Client& {
          return ControllerClient(user);
        },
        .ca_pem = pki.ca.cert_pem,
        .without = {},
        .registries = [this] { return registries->Get(); }});
    controllers->Start();
    scheduler->Start();
    pools->Start();
  });
  return {};
}

Lab::Lab(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Lab::~Lab() { Stop(); }

Result<std::unique_ptr<Lab>> Lab::Start(LabConfig config, LabPaths paths) {
  auto parts = std::make_unique<Parts>();
  parts->config = std::move(config);
  parts->paths = std::move(paths);
  std::unique_ptr<Lab> lab(new Lab(std::move(parts)));
  Parts& p = *lab->parts_;
  if (Status started = p.StartAll(); !started) {
    // Where the disk refuses, whatever fails then does so for that reason.
    RunOn(p.core, [&] {
      if (p.fatal) started = Fail(*p.fatal);
    });
    return Fail(std::move(started).error());
  }
  return lab;
}

Status Lab::Parts::StartAll() {
  RETURN_IF_ERROR(OpenStore());
  RETURN_IF_ERROR(LoadPki());
  RETURN_IF_ERROR(StartServer());
  RETURN_IF_ERROR(BootstrapCluster());
  RETURN_IF_ERROR(StartActors());
  api->SetReady(true);
  return {};
}

const LabConfig& Lab::config() const { return parts_->config; }
const Access& Lab::access() const { return parts_->access; }
std::string Lab::runtime_level() const { return parts_->nodes->runtime_level(); }
std::string Lab::runtime_explanation() const { return parts_->nodes->runtime_explanation(); }

Status Lab::WaitReady(Duration timeout, const std::function<bool()>& give_up) {
  std::promise<void> ready;
  auto future = ready.get_future();
  std::atomic<bool> told = false;
  RunOn(parts_->core, [&] {
    parts_->ready->OnReady(parts_->config.nodes.size(), [&] {
      if (!told.exchange(true)) ready.set_value();
    });
  });
  const Duration end = parts_->clock.Monotonic() + timeout;
  bool in_time = false;
  bool given_up = false;
  while (!in_time && !given_up) {
    const Duration left = end - parts_->clock.Monotonic();
    in_time =
        future.wait_for(std::clamp(left, Duration{0}, kWaitStep)) == std::future_status::ready;
    given_up = left <= Duration{0} || (give_up && give_up());
  }
  std::string missing;
  RunOn(parts_->core, [&] {
    parts_->ready->Forget();
    if (!in_time) missing = parts_->ready->Missing(parts_->config.nodes.size());
  });
  if (in_time) return {};
  Error late = Timeout("", 0);
  late.message = fmt::format("not ready after {}: {}", FormatDuration(timeout), missing);
  return Fail(std::move(late));
}

void Lab::OnFatal(std::function<void(Error)> callback) {
  RunOn(parts_->core, [&] {
    parts_->on_fatal = std::move(callback);
    if (parts_->fatal) parts_->on_fatal(*parts_->fatal);
  });
}

void Lab::Stop() {
  Parts& p = *parts_;
  if (p.stopped) return;
  p.stopped = true;
  if (p.api) p.api->SetReady(false);
  if (p.listener) p.listener->Stop(kStopGrace);
  RunOn(p.core, [&p] {
    p.ready.reset();
    p.pools.reset();
    p.controllers.reset();
    p.scheduler.reset();
    if (p.nodes) p.nodes->Stop();
    p.scheduler_informers.reset();
    p.lab_informers.reset();
  });
  p.listener.reset();
  p.io.Stop();
  p.workers.Stop();
  p.files.Stop();
  if (p.store) p.store->Close();
  p.core.Stop();
}

}  // namespace sextant::lab
