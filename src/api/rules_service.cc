// Services, endpoints and endpoint slices. Source: pkg/apis/core and discovery validation.
// Addresses and node ports are given out elsewhere.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr int64_t kMaxAffinityS = 86400;
constexpr int kMaxEndpoints = 1000;
constexpr int kMaxAddresses = 100;
constexpr int kMaxSlicePorts = 20000;
constexpr int kMaxHints = 8;

bool IsHeadless(Value spec) {
  return spec["clusterIPs"].size() == 1 && spec["clusterIPs"].at(0).AsString() == "None";
}

bool IsReachableFromOutside(Value spec) {
  const std::string_view type = spec["type"].AsString();
  return type == "LoadBalancer" || type == "NodePort" ||
         (type == "ClusterIP" && !spec["externalIPs"].empty());
}

void ValidateNumber(Value port, const At& at, FieldErrors& errors) {
  for (const std::string& why : IsPortNumber(port.AsInt())) {
    errors.InvalidRaw(at, std::to_string(port.AsInt()), why);
  }
}

void ValidateProtocol(Value port, const At& at, FieldErrors& errors) {
  if (port["protocol"].AsString().empty()) {
    errors.Required(at / "protocol", "");
  } else {
    OneOf(port, "protocol", {"SCTP", "TCP", "UDP"}, at, errors);
  }
}

void ValidateAppProtocol(Value port, const At& at, FieldErrors& errors) {
  if (const Value protocol = port["appProtocol"]) {
    Complain(IsQualifiedName(protocol.AsString()), protocol.AsString(), at / "appProtocol", errors);
  }
}

void ValidateServicePort(Value port, bool named, Names& names, const At& at, FieldErrors& errors) {
  const std::string_view name = port["name"].AsString();
  if (name.empty()) {
    if (named) errors.Required(at / "name", "");
  } else {
    Complain(IsDns1123Label(name), name, at / "name", errors);
    if (!names.emplace(name).second) errors.Duplicate(at / "name", name);
  }
  ValidateNumber(port["port"], at / "port", errors);
  ValidateProtocol(port, at, errors);
  const Value target = port["targetPort"];
  if (target.IsString()) {
    Complain(IsPortName(target.AsString()), target.AsString(), at / "targetPort", errors);
  } else {
    ValidateNumber(target, at / "targetPort", errors);
  }
  ValidateAppProtocol(port, at, errors);
}

// What the type asks of the rest.
void ValidateType(Value spec, const At& at, FieldErrors& errors) {
  const std::string_view type = spec["type"].AsString();
  if ((type == "LoadBalancer" || type == "NodePort") && IsHeadless(spec)) {
    errors.InvalidText(at.Item("clusterIPs", 0), "None",
                       fmt::format("may not be set to 'None' for {} services", type));
  }
  if (type != "ExternalName") return;
  constexpr const char* kNot = "may not be set for ExternalName services";
  if (!spec["clusterIPs"].empty()) errors.Forbidden(at / "clusterIPs", kNot);
  if (!spec["ipFamilies"].empty()) errors.Forbidden(at / "ipFamilies", kNot);
  if (spec["ipFamilyPolicy"]) errors.Forbidden(at / "ipFamilyPolicy", kNot);
  std::string_view name = spec["externalName"].AsString();
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) {
    errors.Required(at / "externalName", "");
  } else {
    Complain(IsDns1123Subdomain(name), name, at / "externalName", errors);
  }
}

void ValidateSessionAffinity(Value spec, const At& at, FieldErrors& errors) {
  const std::string_view affinity = spec["sessionAffinity"].AsString();
  const Value config = spec["sessionAffinityConfig"];
  const At here = at / "sessionAffinityConfig";
  if (affinity.empty()) {
    errors.Required(at / "sessionAffinity", "");
  } else {
    OneOf(spec, "sessionAffinity", {"ClientIP", "None"}, at, errors);
  }
  if (affinity == "ClientIP") {
    const Value timeout = config["clientIP"]["timeoutSeconds"];
    const At timeout_at = here / "clientIP.timeoutSeconds";
    if (!timeout) {
      errors.Required(timeout_at, "when session affinity type is ClientIP");
    } else if (timeout.AsInt() <= 0 || timeout.AsInt() > kMaxAffinityS) {
      errors.Invalid(timeout_at, timeout,
                     fmt::format("must be greater than 0 and less than {}", kMaxAffinityS));
    }
  } else if (affinity == "None" && config) {
    errors.Forbidden(here, "must not be set when session affinity is None");
  }
}

void ValidateClusterIps(Value spec, const At& at, FieldErrors& errors) {
  if (spec["type"].AsString() == "ExternalName") return;
  const Value ips = spec["clusterIPs"];
  const std::string_view first = spec["clusterIP"].AsString();
  const At here = at / "clusterIPs";
  if (!first.empty() && ips.empty()) {
    errors.Required(here, "");
  } else if (!first.empty() && ips.at(0).AsString() != first) {
    errors.Invalid(here, ips, "first value must match `clusterIP`");
  } else if (first.empty() && !ips.empty()) {
    errors.Invalid(here, ips, "must be empty when `clusterIP` is not specified");
  }
  Names families;
  size_t i = 0;
  for (Value family : spec["ipFamilies"].items()) {
    const At item = at.Item("ipFamilies", i++);
    const std::string_view name = family.AsString();
    if (name != "IPv4" && name != "IPv6") NotSupported(item, name, {"IPv4", "IPv6"}, errors);
    if (!families.emplace(name).second) errors.Duplicate(item, name);
  }
  OneOf(spec, "ipFamilyPolicy", {"PreferDualStack", "RequireDualStack", "SingleStack"}, at, errors);
  i = 0;
  for (Value ip : ips.items()) {
    const size_t index = i++;
    if (index == 0 && ip.AsString() == "None") {
      if (ips.size() > 1) {
        errors.Invalid(here, ips, "'None' must be the first and only value");
      }
      continue;
    }
    ValidateIp(ip.AsString(), at.Item("clusterIPs", index), errors);
  }
  if (ips.size() > 2) errors.Invalid(here, ips, "may only hold up to 2 values");
}

void ValidateUniquePorts(Value spec, const At& at, FieldErrors& errors) {
  std::set<std::pair<std::string_view, int64_t>> node_ports;
  std::set<std::pair<std::string_view, int64_t>> ports;
  const Value list = spec["ports"];
  size_t i = 0;
  for (Value port : list.items()) {
    const At here = at.Item("ports", i++);
    const int64_t number = port["nodePort"].AsInt();
    if (number == 0) continue;
    if (spec["type"].AsString() == "ClusterIP") {
      errors.Forbidden(here / "nodePort", "may not be used when `type` is 'ClusterIP'");
    }
    if (!node_ports.emplace(port["protocol"].AsString(), number).second) {
      errors.DuplicateRaw(here / "nodePort", std::to_string(number));
    }
  }
  i = 0;
  for (Value port : list.items()) {
    const At here = at.Item("ports", i++);
    const int64_t number = port["port"].AsInt();
    const std::string_view protocol = port["protocol"].AsString();
    if (ports.emplace(protocol, number).second) continue;
    errors.DuplicateRaw(here,
                        fmt::format("{{\"Name\":\"\",\"Protocol\":\"{}\",\"AppProtocol\":null,"
                                    "\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                                    protocol, number));
  }
}

void ValidateTraffic(Value spec, const At& at, FieldErrors& errors) {
  const std::string_view external = spec["externalTrafficPolicy"].AsString();
  const std::string_view type = spec["type"].AsString();
  if (!IsReachableFromOutside(spec)) {
    if (!external.empty()) {
      errors.InvalidText(at / "externalTrafficPolicy", external,
                         "may only be set for externally-accessible services");
    }
  } else if (external.empty()) {
    errors.Required(at / "externalTrafficPolicy", "");
  } else {
    OneOf(spec, "externalTrafficPolicy", {"Cluster", "Local"}, at, errors);
  }
  const bool checked = type == "LoadBalancer" && external == "Local";
  if (!checked && spec["healthCheckNodePort"].AsInt() != 0) {
    errors.Invalid(at / "healthCheckNodePort", spec["healthCheckNodePort"],
                   "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                   "'Local'");
  }
  if (!spec["internalTrafficPolicy"]) {
    if (type == "NodePort" || type == "LoadBalancer" || type == "ClusterIP") {
      errors.Required(at / "internalTrafficPolicy", "");
    }
  } else {
    OneOf(spec, "internalTrafficPolicy", {"Cluster", "Local"}, at, errors);
  }
  OneOf(spec, "trafficDistribution", {"PreferClose", "PreferSameZone", "PreferSameNode"}, at,
        errors);
}

void ValidateBalancer(Value spec, const At& at, FieldErrors& errors) {
  const bool balanced = spec["type"].AsString() == "LoadBalancer";
  constexpr const char* kOnly = "may only be used when `type` is 'LoadBalancer'";
  const Value ranges = spec["loadBalancerSourceRanges"];
  const At ranges_at = at / "LoadBalancerSourceRanges";
  if (!ranges.empty() && !balanced) errors.Forbidden(ranges_at, kOnly);
  size_t i = 0;
  for (Value range : ranges.items()) {
    ValidateCidr(range.AsString(), ranges_at.Item("", i++), errors);
  }
  if (spec["allocateLoadBalancerNodePorts"] && !balanced) {
    errors.Forbidden(at / "allocateLoadBalancerNodePorts", kOnly);
  }
  const Value balancer = spec["loadBalancerClass"];
  if (!balancer) return;
  if (balanced) {
    Complain(IsQualifiedName(balancer.AsString()), balancer.AsString(), at / "loadBalancerClass",
             errors);
  } else {
    errors.Forbidden(at / "loadBalancerClass", kOnly);
  }
}

// An address that others can reach.
void ValidateReachable(std::string_view ip, const At& at, FieldErrors& errors) {
  FieldErrors shape;
  ValidateIp(ip, at, shape);
  for (const Cause& c : shape.causes()) {
    if (c.message.find("must be a valid IP address") == std::string::npos) continue;
    errors.InvalidText(at, ip, "must be a valid IP address");
    return;
  }
  if (ip == "0.0.0.0" || ip == "::") {
    errors.InvalidText(at, ip, fmt::format("may not be unspecified ({})", ip));
  }
  if (IsLoopbackIp(ip)) {
    errors.InvalidText(at, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  }
  if (ip.starts_with("169.254.") || ip.starts_with("fe8") || ip.starts_with("fe9") ||
      ip.starts_with("fea") || ip.starts_with("feb")) {
    errors.InvalidText(at, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (ip.starts_with("224.0.0.") || ip.starts_with("ff02:")) {
    errors.InvalidText(at, ip,
                       "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

}  // namespace

void ValidateService(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  const Value ports = spec["ports"];
  if (ports.empty() && !IsHeadless(spec) && spec["type"].AsString() != "ExternalName") {
    errors.Required(at / "ports", "");
  }
  ValidateType(spec, at, errors);
  Names names;
  size_t i = 0;
  for (Value port : ports.items()) {
    ValidateServicePort(port, ports.size() > 1, names, at.Item("ports", i++), errors);
  }
  ValidateLabels(spec["selector"], at / "selector", errors);
  ValidateSessionAffinity(spec, at, errors);
  ValidateClusterIps(spec, at, errors);
  i = 0;
  for (Value ip : spec["externalIPs"].items()) {
    const At here = at.Item("externalIPs", i++);
    const size_t before = errors.causes().size();
    ValidateIp(ip.AsString(), here, errors);
    if (errors.causes().size() == before) ValidateReachable(ip.AsString(), here, errors);
  }
  OneOf(spec, "type", {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, at, errors, false);
  ValidateUniquePorts(spec, at, errors);
  ValidateBalancer(spec, at, errors);
  ValidateTraffic(spec, at, errors);
}

void ValidateServiceUpdate(Value o, Value old, FieldErrors& errors) {
  const Value now = o["spec"];
  const Value before = old["spec"];
  const At at("spec");
  if (now["type"].AsString() == "ExternalName" || before["type"].AsString() == "ExternalName") {
    return;
  }
  const Value ips = now["clusterIPs"];
  const Value old_ips = before["clusterIPs"];
  if (!old_ips.empty() && !ips.empty() && !Equal(ips.at(0), old_ips.at(0))) {
    errors.Invalid(at.Item("clusterIPs", 0), ips, "may not change once set");
  }
  if (now["type"].AsString() == "LoadBalancer" && before["type"].AsString() == "LoadBalancer" &&
      !Same(now["loadBalancerClass"], before["loadBalancerClass"])) {
    errors.Invalid(at / "loadBalancerClass", now["loadBalancerClass"], "may not change once set");
  }
}

void ValidateEndpointsCreate(Value o, FieldErrors& errors) {
  const At root;
  size_t i = 0;
  for (Value subset : o["subsets"].items()) {
    const At at = root.Item("subsets", i++);
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty()) {
      errors.Required(at, "must specify `addresses` or `notReadyAddresses`");
    }
    for (const char* list : {"addresses", "notReadyAddresses"}) {
      size_t j = 0;
      for (Value address : subset[list].items()) {
        const At here = at.Item(list, j++);
        const std::string_view ip = address["ip"].AsString();
        const std::string_view host = address["hostname"].AsString();
        ValidateIp(ip, here / "ip", errors);
        if (!host.empty()) Complain(IsDns1123Label(host), host, here / "hostname", errors);
        if (const Value node = address["nodeName"]) {
          Complain(NameIsDnsSubdomain(node.AsString(), false), node.AsString(), here / "nodeName",
                   errors);
        }
        ValidateReachable(ip, here / "ip", errors);
      }
    }
    size_t j = 0;
    for (Value port : subset["ports"].items()) {
      const At here = at.Item("ports", j++);
      const std::string_view name = port["name"].AsString();
      if (name.empty()) {
        if (subset["ports"].size() > 1) errors.Required(here / "name", "");
      } else {
        Complain(IsDns1123Label(name), name, here / "name", errors);
      }
      ValidateNumber(port["port"], here / "port", errors);
      ValidateProtocol(port, here, errors);
      ValidateAppProtocol(port, here, errors);
    }
  }
}

// What was stored by older rules stays as it is.
void ValidateEndpointsUpdate(Value o, Value old, FieldErrors& errors) {
  if (!Same(o["subsets"], old["subsets"])) ValidateEndpointsCreate(o, errors);
}

namespace {

void ValidateSliceAddress(std::string_view address, std::string_view type, const At& list, size_t i,
                          FieldErrors& errors) {
  const At here = list.Item("", i);
  if (type == "FQDN") {
    Complain(IsDns1123Subdomain(address), address, here, errors);
    return;
  }
  if (type != "IPv4" && type != "IPv6") return;
  const size_t before = errors.causes().size();
  ValidateIp(address, here, errors);
  if (errors.causes().size() != before) return;
  if (IsIpV6(address) != (type == "IPv6")) {
    errors.InvalidText(list, address, fmt::format("must be an {} address", type));
  }
  ValidateReachable(address, here, errors);
}

void ValidateHints(Value hints, const At& at, FieldErrors& errors) {
  for (const char* list : {"forZones", "forNodes"}) {
    if (hints[list].size() > kMaxHints) {
      errors.TooMany(at / list, static_cast<int>(hints[list].size()), kMaxHints);
    }
    Names seen;
    size_t i = 0;
    for (Value hint : hints[list].items()) {
      const At here = at.Item(list, i++);
      const std::string_view name = hint["name"].AsString();
      if (!seen.emplace(name).second) errors.Duplicate(here / "name", name);
      const bool zones = std::string_view(list) == "forZones";
      Complain(zones ? IsLabelValue(name) : NameIsDnsSubdomain(name, false), name, here / "name",
               errors);
    }
  }
}

}  // namespace

namespace {

void ValidateSliceHead(Value o, FieldErrors& errors) {
  const At root;
  const std::string_view type = o["addressType"].AsString();
  if (type.empty()) {
    errors.Required("addressType", "");
  } else {
    OneOf(o, "addressType", {"FQDN", "IPv4", "IPv6"}, root, errors);
  }
  const Value ports = o["ports"];
  if (ports.size() > kMaxSlicePorts) {
    errors.TooMany("ports", static_cast<int>(ports.size()), kMaxSlicePorts);
  }
  Names names;
  size_t i = 0;
  for (Value port : ports.items()) {
    const At here = root.Item("ports", i++);
    const std::string_view name = port["name"].AsString();
    if (!name.empty()) Complain(IsDns1123Label(name), name, here / "name", errors);
    if (!names.emplace(name).second) errors.Duplicate(here / "name", name);
    ValidateProtocol(port, here, errors);
    ValidateAppProtocol(port, here, errors);
  }
}

void ValidateSliceEndpoints(Value o, FieldErrors& errors) {
  const At root;
  const std::string_view type = o["addressType"].AsString();
  const Value endpoints = o["endpoints"];
  if (endpoints.size() > kMaxEndpoints) {
    errors.TooMany("endpoints", static_cast<int>(endpoints.size()), kMaxEndpoints);
  }
  size_t i = 0;
  for (Value endpoint : endpoints.items()) {
    const At here = root.Item("endpoints", i++);
    const At list = here / "addresses";
    const Value addresses = endpoint["addresses"];
    if (addresses.empty()) {
      errors.Required(list, "must contain at least 1 address");
    } else if (addresses.size() > kMaxAddresses) {
      errors.TooMany(list, static_cast<int>(addresses.size()), kMaxAddresses);
    }
    size_t j = 0;
    for (Value address : addresses.items()) {
      ValidateSliceAddress(address.AsString(), type, list, j++, errors);
    }
    if (const Value node = endpoint["nodeName"]) {
      Complain(NameIsDnsSubdomain(node.AsString(), false), node.AsString(), here / "nodeName",
               errors);
    }
    ValidateLabels(endpoint["deprecatedTopology"], here / "deprecatedTopology", errors);
    if (const Value host = endpoint["hostname"]) {
      Complain(IsDns1123Label(host.AsString()), host.AsString(), here / "hostname", errors);
    }
    ValidateHints(endpoint["hints"], here / "hints", errors);
  }
}

}  // namespace

void ValidateEndpointSliceCreate(Value o, FieldErrors& errors) {
  ValidateSliceHead(o, errors);
  ValidateSliceEndpoints(o, errors);
}

void ValidateEndpointSliceUpdate(Value o, Value old, FieldErrors& errors) {
  ValidateSliceHead(o, errors);
  if (!Same(o["endpoints"], old["endpoints"])) ValidateSliceEndpoints(o, errors);
  Immutable(o["addressType"], old["addressType"], At("addressType"), errors);
}

}  // namespace sextant::api
