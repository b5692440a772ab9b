#include "controllers/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/json.h"
#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kPerSlice = 100;    // endpoints in one slice
constexpr size_t kPerSubset = 1000;  // addresses in Endpoints, all in all
constexpr std::string_view kServiceName = "kubernetes.io/service-name";
constexpr std::string_view kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kSliceManager = "endpointslice-controller.k8s.io";
constexpr std::string_view kHeadless = "service.kubernetes.io/headless";

struct Port {
  std::string name;
  std::string protocol;
  std::string app_protocol;
  int64_t number = 0;
  auto operator<=>(const Port&) const = default;
};
using Ports = std::vector<Port>;

// The number of a targetPort in this Pod; 0 where it has no port of that name.
int64_t ResolvePort(Value service_port, const Object& pod) {
  const Value target = service_port["targetPort"];
  if (target.IsInt() && target.AsInt() != 0) return target.AsInt();
  if (!target.IsString() || target.AsString().empty()) return service_port["port"].AsInt();
  for (const char* list : {"containers", "initContainers"})
    for (Value container : pod["spec"][list].items())
      for (Value port : container["ports"].items())
        if (port["name"].AsString() == target.AsString() &&
            port["protocol"].AsString("TCP") == service_port["protocol"].AsString("TCP")) {
          return port["containerPort"].AsInt();
        }
  return 0;
}

Ports PortsOf(const Object& service, const Object& pod) {
  Ports ports;
  for (Value port : service["spec"]["ports"].items()) {
    const int64_t number = ResolvePort(port, pod);
    if (number == 0) continue;
    ports.push_back({std::string(port["name"].AsString()),
                     std::string(port["protocol"].AsString("TCP")),
                     std::string(port["appProtocol"].AsString()), number});
  }
  return ports;
}

bool IsHeadless(const Object& service) { return service["spec"]["clusterIP"].AsString() == "None"; }

// Pods that count: with an address, and not ended.
std::vector<Object> PodsBehind(client::Informer& pods, const Object& service) {
  std::vector<Object> behind;
  const api::LabelSelector selector = api::LabelSelector::FromMap(service["spec"]["selector"]);
  for (Object& pod : pods.List(service.ns())) {
    if (pod["status"]["podIP"].AsString().empty() || IsPodTerminal(pod)) continue;
    if (selector.Matches(pod["metadata"]["labels"])) behind.push_back(std::move(pod));
  }
  return behind;
}

void SetTarget(Mut reference, const Object& pod) {
  reference.Set("kind", "Pod");
  reference.Set("namespace", pod.ns());
  reference.Set("name", pod.name());
  reference.Set("uid", pod.uid());
}

void SetPorts(Mut list, const Ports& ports, bool app_protocol_last) {
  list.SetNull();  // what was there goes
  list.SetList();
  for (const Port& port : ports) {
    Mut entry = list.Append();
    // A slice's port always has a name, be it empty; an Endpoints' only where there is one.
    if (app_protocol_last || !port.name.empty()) entry.Set("name", port.name);
    entry.Set("port", port.number);
    entry.Set("protocol", port.protocol);
    if (!port.app_protocol.empty()) entry.Set("appProtocol", port.app_protocol);
  }
}

// Changes of Pods that a Service does not see need no work.
bool PodMatters(const Change& change) {
  if (change.added() || change.deleted()) return true;
  const Object& a = change.before;
  const Object& b = change.after;
  return IsPodReady(a) != IsPodReady(b) || IsDeleting(a) != IsDeleting(b) ||
         IsPodTerminal(a) != IsPodTerminal(b) ||
         a["status"]["podIP"].AsString() != b["status"]["podIP"].AsString() ||
         a["spec"]["nodeName"].AsString() != b["spec"]["nodeName"].AsString() ||
         !Equal(a["metadata"]["labels"], b["metadata"]["labels"]);
}

// What both kinds share: which Services are touched by what.
class ServiceReconciler : public Reconciler {
 public:
  ServiceReconciler(Deps deps, std::string component)
      : Reconciler(deps, {.component = std::move(component)}),
        services_(Use(client::kServices)),
        pods_(Use(client::kPods)) {
    Hear(services_, [this](const Change& change) { Enqueue(change.name()); });
    Hear(pods_, [this](const Change& change) {
      if (!PodMatters(change)) return;
      for (const Object& service : services_.List(change.object().ns())) {
        if (service["spec"]["selector"].empty()) continue;
        const auto selector = api::LabelSelector::FromMap(service["spec"]["selector"]);
        if (selector.Matches(change.before["metadata"]["labels"]) ||
            selector.Matches(change.after["metadata"]["labels"])) {
          Enqueue(NameOf(service));
        }
      }
    });
  }

 protected:
  client::Informer& services_;
  client::Informer& pods_;
};

class EndpointSliceController : public ServiceReconciler {
 public:
  explicit EndpointSliceController(Deps deps)
      : ServiceReconciler(deps, "endpoint-slice-controller"),
        nodes_(Use(client::kNodes)),
        slices_(*this, client::kEndpointSlices) {
    slices_.cache().AddIndex("service",
                             [](const Object& slice) { return std::vector{ServiceOf(slice)}; });
    Hear(slices_.cache(), [this](const Change& change) {
      const std::string_view name = change.object()["metadata"]["labels"][kServiceName].AsString();
      if (!name.empty()) Enqueue({std::string(change.object().ns()), std::string(name)});
    });
  }

 protected:
  void Reconcile(const ObjectName& key, Done done) override {
    const auto join = JoinThen(std::move(done));
    const Object service = services_.Get(key);
    std::vector<Object> have;
    for (Object& slice : slices_.cache().ByIndex("service", key.ToString()))
      if (slice["metadata"]["labels"][kManagedBy].AsString() == kSliceManager &&
          !IsDeleting(slice)) {
        have.push_back(std::move(slice));
      }
    if (!service || service["spec"]["type"].AsString() == "ExternalName") {
      for (const Object& slice : have) slices_.Delete(slice, join->Piece());
      return;
    }
    if (service["spec"]["selector"].empty() || IsDeleting(service)) return;
    std::map<Ports, std::vector<Object>> groups;
    for (Object& pod : PodsBehind(pods_, service))
      groups[PortsOf(service, pod)].push_back(std::move(pod));
    // Every Service has at least one slice, be it empty.
    if (groups.empty()) groups[{}] = {};
    for (const auto& [ports, pods] : groups) {
      for (size_t i = 0; i == 0 || i < pods.size(); i += kPerSlice) {
        const size_t end = std::min(pods.size(), i + kPerSlice);
        Put(service, ports,
            {pods.begin() + static_cast<long>(i), pods.begin() + static_cast<long>(end)}, have,
            join);
      }
    }
    for (const Object& slice : have) slices_.Delete(slice, join->Piece());
  }

 private:
  static std::string ServiceOf(const Object& slice) {
    return ObjectName{std::string(slice.ns()),
                      std::string(slice["metadata"]["labels"][kServiceName].AsString())}
        .ToString();
  }

  // Into the first slice that is left and has these ports, else into a new one.
  void Put(const Object& service, const Ports& ports, const std::vector<Object>& pods,
           std::vector<Object>& have, const std::shared_ptr<Join>& join) {
    Editor wanted;
    SetPorts(wanted["ports"], ports, true);
    const Object list = std::move(wanted).Finish();
    auto at = std::find_if(have.begin(), have.end(), [&](const Object& slice) {
      return Equal(slice["ports"], list["ports"]) || slice["endpoints"].empty();
    });
    const Object old = at == have.end() ? Object() : *at;
    if (old) have.erase(at);
    Editor edit = old ? Editor(old) : Editor();
    Fill(edit.Root(), service, ports, pods);
    if (!old) {
      edit["metadata"].Set("generateName", fmt::format("{}-", service.name()));
      edit["metadata"].Set("namespace", service.ns());
      AddControllerRef(edit["metadata"], service);
    }
    Object next = slices_.Finish(std::move(edit));
    if (!old) return slices_.Create(std::move(next), join->Piece());
    if (!Equal(next.root(), old.root())) slices_.Update(std::move(next), join->Piece());
  }

  void Fill(Mut slice, const Object& service, const Ports& ports, const std::vector<Object>& pods) {
    slice.Set("apiVersion", "discovery.k8s.io/v1");
    slice.Set("kind", "EndpointSlice");
    slice.Set("addressType", "IPv4");
    Mut labels = slice["metadata"]["labels"];
    for (auto [key, value] : service["metadata"]["labels"].members())
      labels.Set(key, value.AsString());
    labels.Set(kServiceName, service.name());
    labels.Set(kManagedBy, kSliceManager);
    if (IsHeadless(service)) {
      labels.Set(kHeadless, "");
    } else {
      labels.Erase(kHeadless);
    }
    SetPorts(slice["ports"], ports, true);
    Mut endpoints = slice["endpoints"];
    endpoints.SetNull();  // what was there goes
    endpoints.SetList();
    for (const Object& pod : pods) FillEndpoint(endpoints.Append(), service, pod);
  }

  void FillEndpoint(Mut endpoint, const Object& service, const Object& pod) {
    const bool serving = IsPodReady(pod);
    const bool all = service["spec"]["publishNotReadyAddresses"].AsBool();
    endpoint["addresses"].Append().SetString(pod["status"]["podIP"].AsString());
    endpoint["conditions"].Set("ready", all || (serving && !IsDeleting(pod)));
    endpoint["conditions"].Set("serving", serving);
    endpoint["conditions"].Set("terminating", IsDeleting(pod));
    SetTarget(endpoint["targetRef"], pod);
    const std::string node(pod["spec"]["nodeName"].AsString());
    if (!node.empty()) endpoint.Set("nodeName", node);
    const Object at = nodes_.Get({"", node});
    const std::string_view zone =
        at["metadata"]["labels"]["topology.kubernetes.io/zone"].AsString();
    if (!zone.empty()) endpoint.Set("zone", zone);
    const std::string_view host = pod["spec"]["hostname"].AsString();
    if (!host.empty() && pod["spec"]["subdomain"].AsString() == service.name()) {
      endpoint.Set("hostname", host);
    }
  }

  client::Informer& nodes_;
  Writer slices_;
};

class EndpointsController : public ServiceReconciler {
 public:
  explicit EndpointsController(Deps deps)
      : ServiceReconciler(deps, "endpoint-controller"), endpoints_(*this, client::kEndpoints) {
    Hear(endpoints_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  }

 protected:
  void Reconcile(const ObjectName& key, Done done) override {
    const auto join = JoinThen(std::move(done));
    const Object service = services_.Get(key);
    const Object have = endpoints_.cache().Get(key);
    if (!service) {
      // Only what this controller made.
      if (have["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"].AsString() ==
          "endpoint-controller") {
        endpoints_.Delete(have, join->Piece());
      }
      return;
    }
    if (service["spec"]["selector"].empty()) return;
    std::map<Ports, std::pair<std::vector<Object>, std::vector<Object>>> subsets;
    size_t count = 0;
    for (Object& pod : PodsBehind(pods_, service)) {
      if (++count > kPerSubset) break;
      const bool all = service["spec"]["publishNotReadyAddresses"].AsBool();
      if (IsDeleting(pod) && !all) continue;
      auto& subset = subsets[PortsOf(service, pod)];
      (all || IsPodReady(pod) ? subset.first : subset.second).push_back(std::move(pod));
    }
    Editor edit = have ? Editor(have) : Editor();
    edit.Root().Set("apiVersion", "v1");
    edit.Root().Set("kind", "Endpoints");
    Mut metadata = edit["metadata"];
    metadata.Set("name", service.name());
    metadata.Set("namespace", service.ns());
    Mut labels = metadata["labels"];
    for (auto [label, value] : service["metadata"]["labels"].members())
      labels.Set(label, value.AsString());
    labels.Set("endpoints.kubernetes.io/managed-by", "endpoint-controller");
    if (IsHeadless(service)) labels.Set(kHeadless, "");
    Mut list = edit["subsets"];
    list.SetNull();
    for (const auto& [ports, pods] : subsets) {
      Mut subset = list.Append();
      for (const Object& pod : pods.first) FillAddress(subset["addresses"].Append(), pod);
      for (const Object& pod : pods.second) FillAddress(subset["notReadyAddresses"].Append(), pod);
      if (!ports.empty()) SetPorts(subset["ports"], ports, false);
    }
    Object next = endpoints_.Finish(std::move(edit));
    if (!have) return endpoints_.Create(std::move(next), join->Piece());
    if (!Equal(next["subsets"], have["subsets"]) ||
        !Equal(next["metadata"]["labels"], have["metadata"]["labels"])) {
      endpoints_.Update(std::move(next), join->Piece());
    }
  }

 private:
  static void FillAddress(Mut address, const Object& pod) {
    address.Set("ip", pod["status"]["podIP"].AsString());
    const std::string_view node = pod["spec"]["nodeName"].AsString();
    if (!node.empty()) address.Set("nodeName", node);
    SetTarget(address["targetRef"], pod);
  }

  Writer endpoints_;
};

}  // namespace

std::unique_ptr<Controller> MakeEndpointSliceController(Deps deps) {
  return std::make_unique<EndpointSliceController>(deps);
}

std::unique_ptr<Controller> MakeEndpointsController(Deps deps) {
  return std::make_unique<EndpointsController>(deps);
}

}  // namespace sextant::controllers
