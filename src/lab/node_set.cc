#include "lab/node_set.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>

#include "agent/feature_discovery.h"
#include "agent/node_agent.h"
#include "api/names.h"
#include "base/log.h"
#include "base/version.h"
#include "client/events.h"
#include "kubelet/kubelet.h"
#include "kubelet/kubelet_server.h"
#include "kubelet/process_runtime.h"
#include "kubelet/runtime_simulated.h"
#include "lab/address_plan.h"
#include "net/client.h"

namespace sextant::lab {
namespace {

using api::Object;
using api::Value;

constexpr std::string_view kAgentCommand = "sextant-node-agent";
constexpr std::string_view kAgentUser = "system:serviceaccount:kube-system:nvidia-device-plugin";

server::User NodeUser(const std::string& node) {
  return {"system:node:" + node, "", {"system:nodes", "system:authenticated"}, {}};
}

server::User AgentUser() {
  return {std::string(kAgentUser),
          "",
          {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
          {}};
}

// The kubelets' common certificate: which node is meant is said by the TLS server name.
constexpr std::string_view kKubeletsName = "kubelets.sextant.internal";

class SimulatedNodes : public NodeSet, public kubelet::Components {
 public:
  explicit SimulatedNodes(NodeSetParts parts)
      : parts_(parts), places_(parts.config.nodes), kubelets_(parts.core, parts.io) {}

  ~SimulatedNodes() override { listener_.reset(); }

  Status Bind() {
    ASSIGN_OR_RETURN(const KeyAndCert cert, ServerCertificate());
    net::ServerOptions options;
    options.listen = {.address = "127.0.0.1", .port = 0, .path = {}};
    options.tls = net::ServerTls{{cert.cert_pem, cert.key_pem}, parts_.pki.ca.cert_pem};
    ASSIGN_OR_RETURN(listener_,
                     net::Server::Start({&parts_.io}, std::move(options), kubelets_.Handler()));
    net::CertificateSpec client;
    client.common_name = kubelet::kApiServerClientName;
    client.organizations = {"system:masters"};
    client.client_auth = true;
    ASSIGN_OR_RETURN(client_cert_, parts_.pki.Issue(client, parts_.clock.Now()));
    return {};
  }

  void Start(server::ApiServer& api, client::SharedInformers& informers) override {
    api_ = &api;
    lab_informers_ = &informers;
    MakeRuntime();
    node_client_ = api.Client({"system:sextant-kubelets", "", {"system:masters"}, {}}, parts_.core);
    node_informers_ = std::make_unique<client::SharedInformers>(*node_client_);
    feed_ = std::make_unique<kubelet::NodeFeed>(*node_informers_);
    agent_client_ = api.Client(AgentUser(), parts_.core);
    events_ = std::make_unique<client::EventRecorder>(
        informers.client(), client::EventSource{.component = "sextant-lab", .host = {}});
    nodes_watch_ =
        informers.For({.gvr = client::kNodes}).Subscribe([this](const client::Change& c) {
          c.deleted() ? NodeDeleted(std::string(c.before.name())) : NodeSeen(c.after);
        });
    for (const NodeConfig& node : parts_.config.nodes) AddNode(node, "");
  }

  void Stop() override {
    nodes_watch_.reset();
    events_.reset();
    for (auto& [name, node] : nodes_) {
      Switch(*node, false);
      kubelets_.Remove(name);
    }
    nodes_.clear();
    feed_.reset();
    node_informers_.reset();
    agent_client_.reset();
    runtime_.reset();
  }

  host::SimulatedMachine* Machine(const std::string& node) override {
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? nullptr : &found->second->machine;
  }

  std::string runtime_level() const override { return runtime_ ? runtime_->Level() : ""; }
  std::string runtime_explanation() const override {
    return runtime_ ? runtime_->Explanation() : "";
  }

  // kubelet::Components: the device plugin's Pod runs the node's agent in this process.
  std::shared_ptr<void> Start(std::string_view command, const std::string& node,
                              plugin::Registrar& registrar) override {
    const auto found = nodes_.find(node);
    if (command != kAgentCommand || found == nodes_.end()) return nullptr;
    auto agent = std::make_shared<agent::NodeAgent>(
        agent::NodeAgentParts{*agent_client_, found->second->machine, parts_.files},
        agent::NodeAgentOptions{node, NodeDirectory(node) + "/device-plugin"});
    agent->Start(registrar);
    return agent;
  }

  // server::NodeDialer
  Task Get(const std::string& node, const std::string& path, Answer answer) override {
    auto shared = std::make_shared<Answer>(std::move(answer));
    auto call = ClientFor(node)->Stream(
        {.target = path},
        {[shared](int status, const net::Headers& headers) { shared->on_headers(status, headers); },
         [shared](std::string bytes) { shared->on_data(std::move(bytes)); },
         [shared](Status end) { shared->on_done(std::move(end)); }});
    return [call] { call->Cancel(); };
  }

  void OpenWebSocket(
      const std::string& node, const std::string& path, std::vector<std::string> protocols,
      std::move_only_function<void(Result<std::shared_ptr<net::WebSocket>>)> done) override {
    net::WebSocketRequest request;
    request.target = path;
    request.protocols = std::move(protocols);
    ClientFor(node)->OpenWebSocket(std::move(request), std::move(done));
  }

  void OpenUpgrade(const std::string& node, net::UpgradeRequest request,
                   net::HttpClient::UpgradeDone done) override {
    ClientFor(node)->OpenUpgrade(std::move(request), std::move(done));
  }

 private:
  struct Node {
    explicit Node(Loop& loop) : machine(loop) {}
    host::SimulatedMachine machine;
    std::unique_ptr<client::Client> client;
    std::unique_ptr<kubelet::Kubelet> kubelet;
    std::unique_ptr<agent::FeatureDiscovery> discovery;  // while it is on
    std::string name;
    std::string pod_cidr;
    bool control_plane = false;
  };

  Result<KeyAndCert> ServerCertificate() const {
    net::CertificateSpec spec;
    spec.common_name = "system:nodes";
    spec.server_auth = true;
    spec.dns_names = {std::string(kKubeletsName)};
    return parts_.pki.Issue(spec, parts_.clock.Now());
  }

  std::string NodeDirectory(const std::string& node) const {
    return fmt::format("{}/nodes/{}", parts_.paths.directory, node);
  }

  void MakeRuntime() {
    const bool many = parts_.config.nodes.size() > kMaxProcessNodes;
    const RuntimeMode mode = parts_.config.runtime;
    if (mode == RuntimeMode::kSimulated || (mode == RuntimeMode::kAuto && many)) {
      runtime_ = std::make_unique<kubelet::SimulatedRuntime>(parts_.core);
      return;
    }
    kubelet::ProcessRuntimeOptions options;
    options.toolbox.directory = parts_.paths.directory + "/runtime";
    runtime_ =
        std::make_unique<kubelet::ProcessRuntime>(std::move(options), parts_.clock, parts_.core);
    materialise_ = true;
  }

  // `pod_cidr` is what the Node object says, or empty.
  void AddNode(const NodeConfig& config, std::string_view pod_cidr) {
    const std::optional<size_t> place = places_.Take(config.name, pod_cidr);
    if (!place) {
      log::Error("lab", "node {} stays off: all {} places are taken", config.name,
                 AddressPlan::kPlaces);
      return;
    }
    auto node = std::make_unique<Node>(parts_.core);
    node->name = config.name;
    node->control_plane = config.control_plane;
    node->client = api_->Client(NodeUser(config.name), parts_.core);
    kubelet::KubeletOptions options;
    options.node = config.name;
    options.labels = config.labels;
    // A lab of one node has no taint, as kind takes it away there (kubeadminit/init.go).
    options.control_plane = config.control_plane && parts_.config.nodes.size() > 1;
    options.version = version::kKubernetes;
    options.state_directory = NodeDirectory(config.name);
    options.internal_ip = AddressPlan::NodeIp(*place);
    options.pod_cidr = AddressPlan::PodCidr(*place);
    node->pod_cidr = options.pod_cidr;
    options.port = listener_->endpoint().port;
    options.materialise = materialise_;
    node->kubelet = std::make_unique<kubelet::Kubelet>(
        kubelet::KubeletParts{*node->client, *feed_, *runtime_, node->machine, parts_.files, *this},
        std::move(options));
    kubelets_.Add(*node->kubelet);
    Switch(*node, true);
    nodes_.emplace(config.name, std::move(node));
  }

  // What runs on a machine whatever Pods it has: the kubelet, and what tells its hardware.
  void Switch(Node& node, bool on) {
    kubelet::Kubelet& kubelet = *node.kubelet;
    if (on == kubelet.running()) return;
    if (!on) {
      node.discovery.reset();
      return kubelet.Stop();
    }
    kubelet.Start();
    node.discovery =
        std::make_unique<agent::FeatureDiscovery>(*agent_client_, node.machine, node.name);
  }

  // A kubelet could not give its node the label of its host's name; told once.
  bool CanRegister(const Object& node) {
    if (node.name().size() <= api::kLabelValueMax) return true;
    if (!refused_.insert(std::string(node.uid())).second) return false;
    const std::string why = fmt::format(
        "no machine is run for this node: its name is the value of its label "
        "kubernetes.io/hostname, at most {} characters",
        api::kLabelValueMax);
    log::Warning("lab", "node {}: {}", node.name(), why);
    events_->Warning(node, "InvalidNodeName", why);
    return false;
  }

  // A node that was added through the API, or switched on or off.
  void NodeSeen(const Object& object) {
    const std::string name(object.name());
    const Value metadata = object["metadata"];
    if (!nodes_.contains(name)) {
      if (metadata["labels"][kSimulatedLabel].AsString() != "true" || !CanRegister(object)) return;
      // Its labels stand in the Node: not all of them are such that a kubelet could bring along.
      AddNode({.name = name}, object["spec"]["podCIDR"].AsString());
    }
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return;
    Switch(*found->second, metadata["annotations"][kPowerAnnotation].AsString() != "off");
    CompleteNode(object, *found->second);
  }

  // Deleting the Node takes the machine away until the lab starts again.
  void NodeDeleted(const std::string& name) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return;
    Switch(*found->second, false);
    kubelets_.Remove(name);
    nodes_.erase(found);
    places_.Give(name);
  }

  // What a node may not give itself: kubeadm's administrator gives the role labels, the node IPAM
  // controller the Pods' range (a kubelet that registers its own Node has brought it along).
  void CompleteNode(const Object& object, const Node& node) {
    const std::string name(object.name());
    api::Editor edit;
    bool missing = false;
    if (!object["spec"]["podCIDR"]) {
      edit.Root()["spec"].Set("podCIDR", node.pod_cidr);
      edit.Root()["spec"]["podCIDRs"].Append().SetString(node.pod_cidr);
      missing = true;
    }
    for (const auto& [key, value] : kubelet::RoleLabels(node.control_plane)) {
      if (object["metadata"]["labels"].Has(key)) continue;
      edit.Root()["metadata"]["labels"].Set(key, value);
      missing = true;
    }
    if (!missing) return;
    lab_informers_->client().Patch(
        client::kNodes, {"", name}, client::PatchType::kMerge, std::move(edit).Finish(),
        {.field_manager = "sextant"}, [name](Result<Object> result) {
          if (!result) log::Warning("lab", "completing node {}: {}", name, result.error().message);
        });
  }

  std::shared_ptr<net::HttpClient> ClientFor(const std::string& node) {
    std::lock_guard lock(mutex_);
    auto& client = clients_[node];
    if (!client) {
      net::ClientOptions options;
      options.base_url = "https://" + node;
      options.connect_to = listener_->endpoint().ToString();
      options.tls.ca_pem = parts_.pki.ca.cert_pem;
      options.tls.cert_pem = client_cert_.cert_pem;
      options.tls.key_pem = client_cert_.key_pem;
      options.tls.server_name = node;
      options.tls.verify_name = kKubeletsName;
      client = std::make_shared<net::HttpClient>(parts_.io, parts_.io, std::move(options));
    }
    return client;
  }

  NodeSetParts parts_;
  AddressPlan places_;
  kubelet::KubeletServer kubelets_;
  std::unique_ptr<net::Server> listener_;
  KeyAndCert client_cert_;
  server::ApiServer* api_ = nullptr;
  client::SharedInformers* lab_informers_ = nullptr;
  std::unique_ptr<kubelet::Runtime> runtime_;
  bool materialise_ = false;
  std::unique_ptr<client::Client> node_client_;
  std::unique_ptr<client::SharedInformers> node_informers_;
  std::unique_ptr<kubelet::NodeFeed> feed_;
  std::unique_ptr<client::Client> agent_client_;
  std::unique_ptr<client::EventRecorder> events_;
  std::set<std::string> refused_;  // uids of nodes that no machine is run for
  std::unique_ptr<client::Subscription> nodes_watch_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // core loop

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<net::HttpClient>> clients_;  // guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<NodeSet>> NodeSet::Make(NodeSetParts parts) {
  auto nodes = std::make_unique<SimulatedNodes>(parts);
  RETURN_IF_ERROR(nodes->Bind());
  return nodes;
}

}  // namespace sextant::lab
