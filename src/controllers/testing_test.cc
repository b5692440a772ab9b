#include "controllers/testing.h"

#include <fmt/format.h>

#include "api/json.h"
#include "base/file.h"
#include "controllers/objects.h"

namespace sextant::controllers::testing {
namespace {

using api::Object;

class NoTokens : public server::TokenIssuer {
 public:
  std::string Issue(const server::TokenClaims&) const override { return ""; }
  Result<server::TokenClaims> Verify(std::string_view, Time) const override {
    return Fail(Unauthorized());
  }
  std::string_view issuer() const override { return ""; }
  std::string Jwks() const override { return ""; }
  std::string Configuration(std::string_view) const override { return ""; }
};

Object Parse(std::string_view json) {
  auto parsed = api::ParseJson(json);
  EXPECT_TRUE(parsed) << json;
  return parsed ? *parsed : Object();
}

constexpr int kMaxRounds = 200;  // of Play: more means that something never ends

}  // namespace

std::string WidgetsIn(std::string_view version) {
  return fmt::format(R"({{"metadata":{{"name":"widgets.x.io"}},"spec":{{"group":"x.io",
    "scope":"Namespaced","names":{{"plural":"widgets","singular":"widget","kind":"Widget",
    "listKind":"WidgetList"}},"versions":[{{"name":"{}","served":true,"storage":true,
    "schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}]}}}})",
                     version);
}

Cluster::Cluster(std::vector<std::string> without)
    : authorizer_(server::DefaultAuthorizer()), tokens_(std::make_unique<NoTokens>()) {
  auto opened = store::Store::Open({}, loop);
  CHECK(opened);
  store_ = *std::move(opened);
  pipeline_ = std::make_unique<server::Pipeline>(
      server::PipelineParts{*store_, loop, loop, *authorizer_, server::DefaultAdmission()});
  authenticator_ = std::make_unique<server::Authenticator>(*tokens_, *pipeline_);
  subresources_ = std::make_unique<server::Subresources>(*pipeline_, *authenticator_);
  registries_ = std::make_unique<server::RegistrySource>(
      server::ServedRegistry(api::Registry::Builtin(), [](const api::Resource& resource) {
        return server::ServedByDefault(resource.group_version);
      }));
  custom_kinds_ = server::CustomKinds::Start(*pipeline_, *registries_);
  LoadRoles();
  for (const char* ns : {"default", "kube-system", "kube-node-lease"}) {
    Create(client::kNamespaces, fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns));
  }
  ControllersOptions options;
  options.client_for = [this](const std::string& user) -> client::Client& {
    return ClientFor(user);
  };
  options.ca_pem = "CA";
  options.without = std::move(without);
  options.registries = [this] { return Served(); };
  controllers_ = std::make_unique<Controllers>(std::move(options));
  controllers_->Start();
  Settle();
}

Cluster::~Cluster() {
  controllers_.reset();
  loop.RunReady();
  clients_.clear();
}

void Cluster::StopAfter(int turns) {
  if (turns == 0) return controllers_.reset();
  loop.Post([this, turns] { StopAfter(turns - 1); });
}

void Cluster::LoadRoles() {
  const auto text =
      ReadFile(std::string(SEXTANT_SOURCE_DIR) + "/src/lab/bootstrap_objects.json", 16 << 20);
  ASSERT_TRUE(text);
  const Object all = Parse(*text);
  const api::Value items = all.root().IsList() ? all.root() : all["items"];
  for (api::Value item : items.items()) {
    const std::string_view kind = item["kind"].AsString();
    const Object object = CopyOf(item);
    if (kind != "ClusterRole" && kind != "ClusterRoleBinding") continue;
    const Gvr gvr{"rbac.authorization.k8s.io", "v1",
                  kind == "ClusterRole" ? "clusterroles" : "clusterrolebindings"};
    Create(gvr, api::ToJson(object.root()));
  }
}

client::Client& Cluster::ClientFor(const std::string& user) {
  std::unique_ptr<client::Client>& made = clients_[user];
  if (made) return *made;
  server::User who;
  who.name = user;
  who.groups = {"system:authenticated"};
  if (user == "admin") who.groups.emplace_back("system:masters");
  if (user.starts_with("system:serviceaccount:")) {
    who.groups.emplace_back("system:serviceaccounts");
    who.groups.emplace_back("system:serviceaccounts:kube-system");
  }
  made = server::MakeLocalClient(*pipeline_, *this, who, loop, [this] { return Served(); });
  return *made;
}

void Cluster::PodLog(const server::User&, ObjectName, std::string, int64_t,
                     client::Callback<std::string> done) {
  done(Fail(NotFound({}, "log")));
}
void Cluster::Raw(const server::User&, std::string, client::Callback<std::string> done) {
  done(Fail(NotFound({}, "raw")));
}
bool Cluster::ExecuteSubresource(server::Operation& op, server::Respond& done) {
  return subresources_->Execute(op, done);
}

Object Cluster::Wait(std::string_view what, std::function<void(client::Callback<Object>)> call,
                     bool may_fail) {
  std::optional<Result<Object>> answer;
  call([&](Result<Object> result) { answer = std::move(result); });
  Settle();
  if (!answer) {
    ADD_FAILURE() << what << ": no answer";
    return {};
  }
  if (!*answer) {
    EXPECT_TRUE(may_fail) << what << ": " << answer->error().message;
    return {};
  }
  return **answer;
}

Object Cluster::Create(Gvr gvr, std::string_view json) {
  Object parsed = Parse(json);
  api::Editor edit(parsed);
  const std::shared_ptr<const api::Registry> served = Served();
  const api::Resource* resource = served->Find({gvr.group, gvr.version}, gvr.resource);
  CHECK(resource != nullptr);
  edit.Root().Set("apiVersion", resource->group_version.ToString());
  edit.Root().Set("kind", resource->kind);
  if (resource->namespaced && parsed.ns().empty()) edit["metadata"].Set("namespace", "default");
  Object object = std::move(edit).Finish();
  auto decoded = api::DecodeTree(object.root(), *resource->message);
  if (!decoded) {
    ADD_FAILURE() << decoded.error().message;
    return {};
  }
  return Wait(json, [&](client::Callback<Object> done) {
    ClientFor("admin").Create(gvr, {std::string(decoded->ns()), ""}, *decoded, {}, std::move(done));
  });
}

Object Cluster::Get(Gvr gvr, const ObjectName& name) {
  return Wait(
      name.ToString(),
      [&](client::Callback<Object> done) { ClientFor("admin").Get(gvr, name, std::move(done)); },
      true);
}

std::vector<Object> Cluster::List(Gvr gvr, const std::string& ns) {
  std::vector<Object> items;
  client::ListOptions options;
  options.ns = ns;
  ClientFor("admin").List(gvr, options, [&](Result<client::List> list) {
    ASSERT_TRUE(list) << list.error().message;
    items = std::move(list->items);
  });
  Settle();
  return items;
}

Object Cluster::Patch(Gvr gvr, const ObjectName& name, std::string_view merge_patch,
                      std::string subresource) {
  client::WriteOptions options;
  options.subresource = std::move(subresource);
  return Wait(merge_patch, [&](client::Callback<Object> done) {
    ClientFor("admin").Patch(gvr, name, client::PatchType::kMerge, Parse(merge_patch), options,
                             std::move(done));
  });
}

void Cluster::Delete(Gvr gvr, const ObjectName& name, std::string propagation) {
  client::DeleteOptions options;
  options.propagation = std::move(propagation);
  Wait("delete " + name.ToString(), [&](client::Callback<Object> done) {
    ClientFor("admin").Delete(gvr, name, options, std::move(done));
  });
}

void Cluster::AddNode(const std::string& name, std::string_view spec) {
  Create(client::kNodes,
         fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"kubernetes.io/hostname":"{}"}}}},)"
                     R"("spec":{}}})",
                     name, name, spec));
  Patch(client::kNodes, {"", name},
        fmt::format(
            R"({{"status":{{"conditions":[{{"type":"Ready","status":"True",)"
            R"("reason":"KubeletReady","lastHeartbeatTime":"{}","lastTransitionTime":"{}"}}]}}}})",
            FormatTime(loop.Now()), FormatTime(loop.Now())),
        "status");
  Create(client::kLeases,
         fmt::format(
             R"({{"metadata":{{"name":"{}","namespace":"kube-node-lease"}},)"
             R"("spec":{{"holderIdentity":"{}","leaseDurationSeconds":40,"renewTime":"{}"}}}})",
             name, name, FormatMicroTime(loop.Now())));
}

void Cluster::RenewLease(const std::string& name) {
  Patch(client::kLeases, {"kube-node-lease", name},
        fmt::format(R"({{"spec":{{"renewTime":"{}"}}}})", FormatMicroTime(loop.Now())));
}

// True if there was something to do for this Pod.
bool Cluster::PlayPod(const Object& pod) {
  const ObjectName name = NameOf(pod);
  const std::string bound(pod["spec"]["nodeName"].AsString());
  if (IsDeleting(pod)) {
    if (pod["metadata"]["deletionGracePeriodSeconds"].AsInt() == 0) return false;
    client::DeleteOptions now;
    now.grace_period_s = 0;
    Wait(
        "end",
        [&](client::Callback<Object> done) {
          ClientFor("admin").Delete(client::kPods, name, now, std::move(done));
        },
        true);
    return true;
  }
  if (bound.empty()) {
    std::string target = "node-1";
    const api::Value terms = pod.Path(
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms");
    const api::Value pinned = terms.at(0)["matchFields"].at(0)["values"].at(0);
    if (pinned) target = pinned.AsString();
    api::Editor edit;
    edit.Root().Set("apiVersion", "v1");
    edit.Root().Set("kind", "Binding");
    edit["metadata"].Set("name", name.name);
    edit["metadata"].Set("namespace", name.ns);
    edit["target"].Set("kind", "Node");
    edit["target"].Set("name", target);
    client::WriteOptions options;
    options.subresource = "binding";
    Object binding = std::move(edit).Finish();
    Wait("bind", [&](client::Callback<Object> done) {
      ClientFor("admin").Create(client::kPods, name, binding, options, std::move(done));
    });
    return true;
  }
  std::string phase = "Running";
  for (const auto& [prefix, wanted] : phases)
    if (name.name.starts_with(prefix)) phase = wanted;
  if (pod["status"]["phase"].AsString() == phase || IsPodTerminal(pod)) return false;
  const bool ready = phase == "Running";
  Patch(client::kPods, name,
        fmt::format(R"({{"status":{{"phase":"{}","conditions":[{{"type":"Ready","status":"{}",)"
                    R"("lastTransitionTime":"{}"}}]}}}})",
                    phase, ready ? "True" : "False", FormatTime(loop.Now())),
        "status");
  return true;
}

void Cluster::Play() {
  Settle();
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = false;
    for (const Object& pod : List(client::kPods))
      if (!deaf && PlayPod(pod)) changed = true;
    Settle();
    if (!changed) return;
  }
  ADD_FAILURE() << "the cluster does not come to rest";
}

std::vector<Object> Cluster::Pods(std::string_view prefix, const std::string& ns) {
  std::vector<Object> pods;
  for (const Object& pod : List(client::kPods, ns))
    if (pod.name().starts_with(prefix) && !IsDeleting(pod)) pods.push_back(pod);
  return pods;
}

std::vector<std::string> Cluster::Events(std::string_view name) {
  std::vector<std::string> told;
  for (const Object& event : List(client::kCoreEvents)) {
    if (event["involvedObject"]["name"].AsString() != name) continue;
    told.push_back(fmt::format("{}: {}", event["reason"].AsString(), event["message"].AsString()));
  }
  return told;
}

}  // namespace sextant::controllers::testing
