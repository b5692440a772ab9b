// Cluster IPs and node ports. What is taken is read from the Services themselves: there is no
// second book that could disagree with them. What was given out by chance a moment ago is
// remembered until it is visible.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "api/json.h"
#include "base/random.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::FieldErrors;
using api::Mut;
using api::Value;

constexpr uint32_t kNetwork = 0x0a600000;  // 10.96.0.0
constexpr uint32_t kAddresses = 1 << 16;
// The lower part of a range is left to those who choose (ipallocator's and portallocator's bands).
constexpr uint32_t kFirstDynamic = 257;
constexpr int kFirstPort = 30000;
constexpr int kLastPort = 32767;
constexpr int kFirstDynamicPort = 30086;
constexpr int kAttempts = 64;  // by chance, before looking one by one
constexpr size_t kRecentAddresses = 4096;
constexpr size_t kRecentPorts = 256;  // ports are few and come back into use
constexpr std::string_view kNone = "None";

// IPv4 only, in host order.
std::optional<uint32_t> ParseV4(std::string_view text) {
  in_addr parsed{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

bool IsV6(std::string_view text) {
  in6_addr parsed{};
  return inet_pton(AF_INET6, std::string(text).c_str(), &parsed) == 1;
}

std::string PrintV4(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

struct Taken {
  std::set<std::string, std::less<>> addresses;
  std::set<int64_t> ports;
};

void AddTo(Taken& taken, Value spec) {
  for (Value ip : spec["clusterIPs"].items()) taken.addresses.emplace(ip.AsString());
  taken.addresses.emplace(spec["clusterIP"].AsString());
  for (Value port : spec["ports"].items()) taken.ports.insert(port["nodePort"].AsInt());
  taken.ports.insert(spec["healthCheckNodePort"].AsInt());
}

Taken TakenByOthers(const AdmissionRequest& request, std::string_view uid) {
  Taken taken;
  const auto services = request.view.Snapshot("services");
  for (const auto& entry : services->Range("", "", "", 0)) {
    if (entry->object.uid() != uid) AddTo(taken, entry->object["spec"]);
  }
  return taken;
}

// What was given out by chance lately: the last `held` of it. Threads: any.
class Recent {
 public:
  explicit Recent(size_t held) : held_(held) {}

  // False if it is among them; else it is now.
  bool Add(int64_t what) {
    std::lock_guard lock(mutex_);
    if (!known_.insert(what).second) return false;
    order_.push_back(what);
    if (order_.size() > held_) {
      known_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }

 private:
  const size_t held_;
  std::mutex mutex_;
  std::set<int64_t> known_;
  std::deque<int64_t> order_;
};

bool WantsAddress(Value spec) { return spec["type"].AsString() != "ExternalName"; }
bool Headless(Value spec) { return spec["clusterIP"].AsString() == kNone; }

bool WantsPorts(Value spec) {
  const std::string_view type = spec["type"].AsString();
  return type == "NodePort" || type == "LoadBalancer";
}

bool PortsByChance(Value spec) {
  return spec["type"].AsString() == "NodePort" ||
         spec["allocateLoadBalancerNodePorts"].AsBool(true);
}

bool WantsHealthPort(Value spec) {
  return spec["type"].AsString() == "LoadBalancer" &&
         spec["externalTrafficPolicy"].AsString() == "Local";
}

// The families of what was given, as far as the list says nothing.
void InferFamilies(Mut spec, FieldErrors& errors) {
  const Value now = spec.Snapshot();
  for (size_t i = now["ipFamilies"].size(); i < now["clusterIPs"].size(); ++i) {
    const std::string_view ip = now["clusterIPs"].at(i).AsString();
    if (ip == kNone) break;
    if (IsV6(ip)) {
      errors.Invalid(fmt::format("spec.clusterIPs[{}]", i), now["clusterIPs"],
                     "IPv6 is not configured on this cluster");
    } else if (ParseV4(ip)) {
      spec["ipFamilies"].Append().SetString("IPv4");
    }
  }
}

// Headless without a selector: others say what is behind it, so any family goes.
void FreeFamilies(Mut spec) {
  Mut families = spec["ipFamilies"];
  if (families.size() == 0) families.Append().SetString("IPv4");
  if (families.size() > 1 || spec["ipFamilyPolicy"].AsString() == "SingleStack") return;
  const bool v4 = families.at(0).AsString() == "IPv4";
  families.Append().SetString(v4 ? "IPv6" : "IPv4");
}

void SetFamilies(Mut spec, Value old, FieldErrors& errors) {
  const bool selects = spec.Has("selector") && spec["selector"].size() > 0;
  const bool free = Headless(spec.Snapshot()) && !selects;
  if (spec["ipFamilyPolicy"].AsString().empty()) {
    const std::string_view before = old["ipFamilyPolicy"].AsString();
    spec.Set("ipFamilyPolicy", !before.empty() ? before
                               : free          ? std::string_view("RequireDualStack")
                                               : std::string_view("SingleStack"));
  }
  const std::string policy(spec["ipFamilyPolicy"].AsString());
  const Value now = spec.Snapshot();
  if (policy == "SingleStack") {
    for (const auto& [list, what] :
         {std::pair{"clusterIPs", "cluster IPs"}, std::pair{"ipFamilies", "IP families"}}) {
      if (now[list].size() != 2) continue;
      errors.InvalidText("spec.ipFamilyPolicy", policy,
                         fmt::format("must be 'RequireDualStack' or 'PreferDualStack' when "
                                     "multiple {} are specified",
                                     what));
    }
  }
  InferFamilies(spec, errors);
  if (!errors.empty()) return;
  if (free) return FreeFamilies(spec);
  if (policy == "RequireDualStack") {
    errors.InvalidText("spec.ipFamilyPolicy", policy,
                       "this cluster is not configured for dual-stack services");
  }
  for (size_t i = 0; i < now["ipFamilies"].size(); ++i) {
    const std::string_view family = now["ipFamilies"].at(i).AsString();
    if (family == "IPv6") {
      errors.InvalidText(fmt::format("spec.ipFamilies[{}]", i), family,
                         "not configured on this cluster");
    }
  }
  if (errors.empty() && spec["ipFamilies"].size() == 0) {
    spec["ipFamilies"].Append().SetString("IPv4");
  }
}

class ServiceAddresses : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "ServiceAddresses"; }

  Status Allocate(const AdmissionRequest& request, Mut service) const override {
    const api::Resource& resource = *request.op.resource;
    if (resource.plural != "services" || !resource.group_version.group.empty()) return {};
    if (request.op.subresource) return {};
    const Mut spec = service["spec"];
    const Value old = request.old["spec"];
    FieldErrors errors;
    if (WantsAddress(spec.Snapshot())) SetFamilies(spec, old, errors);
    const Taken taken = TakenByOthers(request, service["metadata"]["uid"].AsString());
    if (errors.empty()) SetAddress(spec, old, taken, errors);
    if (errors.empty() && WantsPorts(spec.Snapshot())) {
      RETURN_IF_ERROR(SetPorts(spec, old, taken, errors));
    }
    if (errors.empty()) RETURN_IF_ERROR(SetHealthPort(spec, old, taken));
    if (errors.empty()) return {};
    return Fail(Invalid("", resource.kind, service["metadata"]["name"].AsString(), errors.Take()));
  }

 private:
  // Given by the client, or by chance. What stood there before is the Service's own.
  void SetAddress(Mut spec, Value old, const Taken& taken, FieldErrors& errors) const {
    const Value now = spec.Snapshot();
    if (!WantsAddress(now) || Headless(now)) return;
    const std::string ip(now["clusterIP"].AsString());
    if (ip.empty()) {
      const std::string given = AddressByChance(taken);
      if (given.empty()) {
        errors.Internal("spec.clusterIPs", "failed to allocate a serviceIP: range is full");
        return;
      }
      spec.Set("clusterIP", given);
      spec["clusterIPs"].SetList();
      spec["clusterIPs"].Append().SetString(given);
      return;
    }
    const bool had = old && WantsAddress(old);
    const auto address = ParseV4(ip);
    if (had || !address) return;  // validation speaks of these
    std::string_view why;
    if (*address < kNetwork || *address >= kNetwork + kAddresses) {
      why = "the provided network does not match the current range";
    } else if (taken.addresses.contains(ip)) {
      why = "provided IP is already allocated";
    }
    if (why.empty()) return;
    errors.Invalid("spec.clusterIPs", now["clusterIPs"],
                   fmt::format("failed to allocate IP {}: {}", ip, why));
  }

  std::string AddressByChance(const Taken& taken) const {
    thread_local Random random(RandomSeed());
    const uint32_t usable = kAddresses - 1 - kFirstDynamic;  // without the broadcast address
    for (int i = 0; i < kAttempts; ++i) {
      const uint32_t n = kFirstDynamic + static_cast<uint32_t>(random.Below(usable));
      std::string ip = PrintV4(kNetwork + n);
      if (!taken.addresses.contains(ip) && recent_addresses_.Add(n)) return ip;
    }
    for (uint32_t i = 1; i < kAddresses - 1; ++i) {
      std::string ip = PrintV4(kNetwork + i);
      if (!taken.addresses.contains(ip) && recent_addresses_.Add(i)) return ip;
    }
    return {};
  }

  Result<int64_t> PortByChance(const Taken& taken, std::string_view what) const {
    thread_local Random random(RandomSeed());
    for (int i = 0; i < kAttempts; ++i) {
      const int64_t port =
          kFirstDynamicPort + static_cast<int64_t>(random.Below(kLastPort + 1 - kFirstDynamicPort));
      if (!taken.ports.contains(port) && recent_ports_.Add(port)) return port;
    }
    for (int64_t port = kFirstPort; port <= kLastPort; ++port) {
      if (!taken.ports.contains(port) && recent_ports_.Add(port)) return port;
    }
    return Fail(InternalError(fmt::format("failed to allocate a {}: range is full", what)));
  }

  static std::string WhyNotPort(const Taken& taken, int64_t port) {
    if (port < kFirstPort || port > kLastPort) {
      return fmt::format(
          "provided port is not in the valid range. The range of valid ports is {}-{}", kFirstPort,
          kLastPort);
    }
    return taken.ports.contains(port) ? "provided port is already allocated" : "";
  }

  // Ports of one number (TCP and UDP) share a node port.
  Status SetPorts(Mut spec, Value old, const Taken& taken, FieldErrors& errors) const {
    const Value now = spec.Snapshot();
    std::set<int64_t> own;
    for (Value port : old["ports"].items()) own.insert(port["nodePort"].AsInt());
    std::map<int64_t, int64_t> given;  // by port
    for (size_t i = 0; i < now["ports"].size(); ++i) {
      const Value port = now["ports"].at(i);
      const int64_t asked = port["nodePort"].AsInt();
      if (asked == 0) continue;
      given.emplace(port["port"].AsInt(), asked);
      if (own.contains(asked)) continue;
      const std::string why = WhyNotPort(taken, asked);
      if (why.empty()) continue;
      errors.Invalid(fmt::format("spec.ports[{}].nodePort", i), port["nodePort"], why);
      return {};
    }
    if (!PortsByChance(now)) return {};
    for (size_t i = 0; i < now["ports"].size(); ++i) {
      const Value port = now["ports"].at(i);
      if (port["nodePort"].AsInt() != 0) continue;
      int64_t& number = given[port["port"].AsInt()];
      if (number == 0) {
        ASSIGN_OR_RETURN(number, PortByChance(taken, "nodePort"));
      }
      spec["ports"].at(i).Set("nodePort", number);
    }
    return {};
  }

  Status SetHealthPort(Mut spec, Value old, const Taken& taken) const {
    const Value now = spec.Snapshot();
    if (!WantsHealthPort(now) || (old && WantsHealthPort(old))) return {};
    const int64_t asked = now["healthCheckNodePort"].AsInt();
    if (asked == 0) {
      ASSIGN_OR_RETURN(const int64_t port, PortByChance(taken, "HealthCheck NodePort 0"));
      spec.Set("healthCheckNodePort", port);
      return {};
    }
    const std::string why = WhyNotPort(taken, asked);
    if (why.empty()) return {};
    return Fail(InternalError(
        fmt::format("failed to allocate requested HealthCheck NodePort {}: {}", asked, why)));
  }

  mutable Recent recent_addresses_{kRecentAddresses};
  mutable Recent recent_ports_{kRecentPorts};
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeServiceAddresses() {
  return std::make_unique<ServiceAddresses>();
}

}  // namespace sextant::server
