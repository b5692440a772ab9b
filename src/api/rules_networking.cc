// Network policies, ingresses and addresses. Source: pkg/apis/networking/validation.
#include <fmt/format.h>

#include <algorithm>

#include "api/regex.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

// --- network policies

// Networks that the old object has stay allowed in the new one, whatever they are.
Names OldNetworks(Value old) {
  Names out;
  for (const auto& [list, peers] : {std::pair{"ingress", "from"}, std::pair{"egress", "to"}}) {
    for (Value rule : old["spec"][list].items()) {
      for (Value peer : rule[peers].items()) {
        const Value block = peer["ipBlock"];
        if (!block) continue;
        out.emplace(block["cidr"].AsString());
        for (Value except : block["except"].items()) out.emplace(except.AsString());
      }
    }
  }
  return out;
}

void ValidateBlock(Value block, const Names& known, const At& at, FieldErrors& errors) {
  const std::string_view cidr = block["cidr"].AsString();
  const At cidr_at = at / "cidr";
  if (cidr.empty()) return errors.Required(cidr_at, "");
  if (!known.contains(cidr)) ValidateCidr(cidr, cidr_at, errors);
  size_t i = 0;
  for (Value except : block["except"].items()) {
    const std::string_view text = except.AsString();
    const At here = at.Item("except", i++);
    if (!known.contains(text)) ValidateCidr(text, here, errors);
    if (!IsStrictSubnet(text, cidr)) {
      errors.InvalidText(here, text, "must be a strict subset of `cidr`");
    }
  }
}

void ValidatePolicyPort(Value port, const At& at, FieldErrors& errors) {
  OneOf(port, "protocol", {"TCP", "UDP", "SCTP"}, at, errors);
  const Value number = port["port"];
  const Value end = port["endPort"];
  const At number_at = at / "port";
  const At end_at = at / "endPort";
  if (!number) {
    if (end) errors.Invalid(end_at, end, "may not be specified when `port` is not specified");
    return;
  }
  if (!number.IsInt()) {
    if (end) errors.Invalid(end_at, end, "may not be specified when `port` is non-numeric");
    Complain(IsPortName(number.AsString()), number.AsString(), number_at, errors);
    return;
  }
  for (std::string& why : IsPortNumber(number.AsInt())) {
    errors.Invalid(number_at, number, std::move(why));
  }
  if (!end) return;
  if (end.AsInt() < number.AsInt()) {
    errors.Invalid(end_at, number, "must be greater than or equal to `port`");
  }
  for (std::string& why : IsPortNumber(end.AsInt())) errors.Invalid(end_at, end, std::move(why));
}

void ValidatePeer(Value peer, const Names& known, bool old_selectors, const At& at,
                  FieldErrors& errors) {
  size_t peers = 0;
  for (const char* name : {"podSelector", "namespaceSelector"}) {
    if (!peer[name]) continue;
    ++peers;
    ValidateLabelSelector(peer[name], at / name, errors, old_selectors);
  }
  if (peer["ipBlock"]) {
    ++peers;
    ValidateBlock(peer["ipBlock"], known, at / "ipBlock", errors);
  }
  if (peers == 0) {
    errors.Required(at, "must specify a peer");
  } else if (peers > 1 && peer["ipBlock"]) {
    errors.Forbidden(at, "may not specify both ipBlock and another peer");
  }
}

void ValidatePolicy(Value o, Value old, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  const Names known = OldNetworks(old);
  FieldErrors before;
  ValidateLabelSelector(old["spec"]["podSelector"], at, before);
  const bool old_selectors = !before.empty();
  ValidateLabelSelector(spec["podSelector"], at / "podSelector", errors, old_selectors);
  for (const auto& [list, peers] : {std::pair{"ingress", "from"}, std::pair{"egress", "to"}}) {
    size_t i = 0;
    for (Value rule : spec[list].items()) {
      const At here = at.Item(list, i++);
      size_t j = 0;
      for (Value port : rule["ports"].items()) {
        ValidatePolicyPort(port, here.Item("ports", j++), errors);
      }
      j = 0;
      for (Value peer : rule[peers].items()) {
        ValidatePeer(peer, known, old_selectors, here.Item(peers, j++), errors);
      }
    }
  }
  const Value types = spec["policyTypes"];
  if (types.size() > 2) {
    return errors.Invalid(at / "policyTypes", types, "may not specify more than two policyTypes");
  }
  size_t i = 0;
  for (Value type : types.items()) {
    const std::string_view text = type.AsString();
    const At here = at.Item("policyTypes", i++);
    if (text != "Ingress" && text != "Egress") {
      NotSupported(here, text, {"Ingress", "Egress"}, errors);
    }
  }
}

// --- ingresses

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";

void ValidateTypedReference(Value ref, const At& at, FieldErrors& errors) {
  if (ref["apiGroup"]) {
    const std::string_view group = ref["apiGroup"].AsString();
    Complain(IsDns1123Subdomain(group), group, at / "apiGroup", errors);
  }
  for (const char* name : {"kind", "name"}) {
    const std::string_view text = ref[name].AsString();
    if (text.empty()) {
      errors.Required(at / name, "");
    } else {
      Complain(IsPathSegmentName(text), text, at / name, errors);
    }
  }
}

void ValidateServiceBackend(Value service, const At& backend, FieldErrors& errors) {
  const At at = backend / "service";
  const std::string_view name = service["name"].AsString();
  if (name.empty()) {
    errors.Required(at / "name", "");
  } else {
    Complain(NameIsDnsLabel(name, false), name, at / "name", errors);
  }
  const At port = at / "port";
  const std::string_view port_name = service["port"]["name"].AsString();
  const Value number = service["port"]["number"];
  const bool has_number = number.AsInt() != 0;
  if (!port_name.empty() && has_number) {
    errors.InvalidText(backend, "", "cannot set both port name & port number");
  } else if (!port_name.empty()) {
    Complain(IsPortName(port_name), port_name, port / "name", errors);
  } else if (has_number) {
    for (std::string& why : IsPortNumber(number.AsInt())) {
      errors.Invalid(port / "number", number, std::move(why));
    }
  } else {
    errors.Required(backend, "port name or number is required");
  }
}

void ValidateBackend(Value backend, const At& at, FieldErrors& errors) {
  const Value resource = backend["resource"];
  const Value service = backend["service"];
  if (resource && service) {
    errors.InvalidText(at, "", "cannot set both resource and service backends");
  } else if (resource) {
    ValidateTypedReference(resource, at / "resource", errors);
  } else if (service) {
    ValidateServiceBackend(service, at, errors);
  } else {
    errors.InvalidText(at, "", "resource or service backend is required");
  }
}

void ValidateExactPath(std::string_view path, const At& at, FieldErrors& errors) {
  for (std::string_view part : {"//", "/./", "/../", "%2f", "%2F"}) {
    if (path.find(part) == std::string_view::npos) continue;
    errors.InvalidText(at, path, fmt::format("must not contain '{}'", part));
  }
  for (std::string_view end : {"/..", "/."}) {
    if (path.ends_with(end)) {
      errors.InvalidText(at, path, fmt::format("cannot end with '{}'", end));
    }
  }
}

void ValidateHttpPath(Value item, const At& at, FieldErrors& errors) {
  const At type_at = at / "pathType";
  if (!item["pathType"]) return errors.Required(type_at, "pathType must be specified");
  const std::string_view type = item["pathType"].AsString();
  const std::string_view path = item["path"].AsString();
  const At path_at = at / "path";
  const bool free = type == "ImplementationSpecific";
  if (!free && type != "Exact" && type != "Prefix") {
    NotSupported(type_at, type, {"Exact", "ImplementationSpecific", "Prefix"}, errors);
  } else {
    if (!path.starts_with('/') && !(free && path.empty())) {
      errors.InvalidText(path_at, path, "must be an absolute path");
    }
    if (!free) ValidateExactPath(path, path_at, errors);
  }
  ValidateBackend(item["backend"], at / "backend", errors);
}

void ValidateHost(std::string_view host, const At& at, FieldErrors& errors) {
  const bool wild = host.find('*') != std::string_view::npos;
  Complain(wild ? IsWildcardDns1123Subdomain(host) : IsDns1123Subdomain(host), host, at, errors);
}

void ValidateRule(Value rule, const At& at, FieldErrors& errors) {
  const Value http = rule["http"];
  if (!http) return;
  const At here = at / "http";
  if (http["paths"].empty()) errors.Required(here / "paths", "");
  size_t i = 0;
  for (Value path : http["paths"].items()) {
    ValidateHttpPath(path, here.Item("paths", i++), errors);
  }
}

// What the old object had wrong in these two places, the new one may have as well.
struct Leniency {
  bool secret_names = false;
  bool wildcard_rules = false;
};

Complaints SecretNameComplaints(Value tls) {
  const std::string_view name = tls["secretName"].AsString();
  return name.empty() ? Complaints() : NameIsDnsSubdomain(name, false);
}

bool IsWild(Value rule) { return rule["host"].AsString().find('*') != std::string_view::npos; }

Leniency LeniencyFor(Value old) {
  Leniency lenient;
  for (Value tls : old["spec"]["tls"].items()) {
    if (!SecretNameComplaints(tls).empty()) lenient.secret_names = true;
  }
  for (Value rule : old["spec"]["rules"].items()) {
    FieldErrors errors;
    if (IsWild(rule)) ValidateRule(rule, At(), errors);
    if (!errors.empty()) lenient.wildcard_rules = true;
  }
  return lenient;
}

void ValidateIngressSpec(Value spec, const Leniency& lenient, FieldErrors& errors) {
  const At at("spec");
  const Value rules = spec["rules"];
  if (rules.empty() && !spec["defaultBackend"]) {
    errors.Invalid(at, rules, "either `defaultBackend` or `rules` must be specified");
  }
  if (spec["defaultBackend"]) {
    ValidateBackend(spec["defaultBackend"], at / "defaultBackend", errors);
  }
  size_t i = 0;
  for (Value rule : rules.items()) {
    const At here = at.Item("rules", i++);
    const std::string_view host = rule["host"].AsString();
    if (!host.empty()) {
      if (IsIp(host)) {
        errors.InvalidText(here / "host", host, "must be a DNS name, not an IP address");
      }
      ValidateHost(host, here / "host", errors);
    }
    if (!IsWild(rule) || !lenient.wildcard_rules) ValidateRule(rule, here, errors);
  }
  i = 0;
  for (Value tls : spec["tls"].items()) {
    const At here = at.Item("tls", i++);
    size_t j = 0;
    for (Value host : tls["hosts"].items()) {
      ValidateHost(host.AsString(), here.Item("hosts", j++), errors);
    }
    if (lenient.secret_names) continue;
    Complain(SecretNameComplaints(tls), tls["secretName"].AsString(), here / "secretName", errors);
  }
  if (spec["ingressClassName"]) {
    const std::string_view name = spec["ingressClassName"].AsString();
    Complain(NameIsDnsSubdomain(name, false), name, at / "ingressClassName", errors);
  }
}

}  // namespace

void ValidateNetworkPolicyCreate(Value o, FieldErrors& errors) { ValidatePolicy(o, {}, errors); }

void ValidateNetworkPolicyUpdate(Value o, Value old, FieldErrors& errors) {
  ValidatePolicy(o, old, errors);
}

void ValidateIngressCreate(Value o, FieldErrors& errors) {
  ValidateIngressSpec(o["spec"], {}, errors);
  const Value annotation = o["metadata"]["annotations"][kClassAnnotation];
  const Value name = o["spec"]["ingressClassName"];
  if (annotation && name && annotation.AsString() != name.AsString()) {
    errors.Invalid(fmt::format("annotations.{}", kClassAnnotation), annotation,
                   "must match `ingressClassName` when both are specified");
  }
}

void ValidateIngressUpdate(Value o, Value old, FieldErrors& errors) {
  ValidateIngressSpec(o["spec"], LeniencyFor(old), errors);
}

void ValidateIngressStatus(Value o, Value old, FieldErrors& errors) {
  Names known;
  for (Value entry : old["status"]["loadBalancer"]["ingress"].items()) {
    known.emplace(entry["ip"].AsString());
  }
  const At at("status.loadBalancer");
  size_t i = 0;
  for (Value entry : o["status"]["loadBalancer"]["ingress"].items()) {
    const At here = at.Item("ingress", i++);
    const std::string_view ip = entry["ip"].AsString();
    if (!ip.empty() && !known.contains(ip)) ValidateIp(ip, here / "ip", errors);
    const std::string_view host = entry["hostname"].AsString();
    if (host.empty()) continue;
    Complain(IsDns1123Subdomain(host), host, here / "hostname", errors);
    if (IsIp(host)) {
      errors.InvalidText(here / "hostname", host, "must be a DNS name, not an IP address");
    }
  }
}

// The annotation that ingressClassName replaced.
void WarnOfIngress(Value o, Value old, Warnings& out) {
  if (old || o["spec"]["ingressClassName"]) return;
  if (!o["metadata"]["annotations"][kClassAnnotation]) return;
  out.push_back(
      fmt::format("annotation \"{}\" is deprecated, please use 'spec.ingressClassName' instead",
                  kClassAnnotation));
}

// --- ingress classes

namespace {

constexpr int kMaxController = 250;

void ValidateController(std::string_view text, const At& at, FieldErrors& errors) {
  if (text.size() > kMaxController) errors.TooLong(at, kMaxController);
  if (text.empty()) return errors.Required(at, "");
  const size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size()) {
    return errors.InvalidText(at, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  const std::string_view host = text.substr(0, slash);
  Complain(IsDns1123Subdomain(host), host, at, errors);
  const std::string_view path = text.substr(slash + 1);
  static constexpr const char* kPath = R"([A-Za-z0-9/\-._~%!$&'()*+,;=:]+)";
  static const re2::RE2 kPattern(kPath);
  if (!re2::RE2::FullMatch(Re2Text(path), kPattern)) {
    errors.InvalidText(at, path,
                       fmt::format("Invalid path (regex used for validation is '{}')", kPath));
  }
}

}  // namespace

void ValidateIngressClass(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidateController(spec["controller"].AsString(), at / "controller", errors);
  const Value parameters = spec["parameters"];
  if (!parameters) return;
  const At here = at / "parameters";
  ValidateTypedReference(parameters, here, errors);
  if (!parameters["scope"]) return errors.Required(here / "scope", "");
  OneOf(parameters, "scope", {"Cluster", "Namespace"}, here, errors);
  const Value ns = parameters["namespace"];
  const std::string_view scope = parameters["scope"].AsString();
  if (scope == "Namespace" && !ns) {
    errors.Required(here / "namespace", "`parameters.scope` is set to 'Namespace'");
  } else if (scope == "Namespace") {
    Complain(NameIsDnsLabel(ns.AsString(), false), ns.AsString(), here / "namespace", errors);
  } else if (scope == "Cluster" && ns) {
    errors.Forbidden(here / "namespace", "`parameters.scope` is set to 'Cluster'");
  }
}

void ValidateIngressClassUpdate(Value o, Value old, FieldErrors& errors) {
  const At at("spec.controller");
  Immutable(o["spec"]["controller"], old["spec"]["controller"], at, errors);
}

// --- addresses of services

Complaints NameIsIp(std::string_view name, bool) { return IsCanonicalIp(name); }

void ValidateIpAddressCreate(Value o, FieldErrors& errors) {
  const Value parent = o["spec"]["parentRef"];
  const At at("spec.parentRef");
  if (!parent) return errors.Required(at, "");
  const std::string_view group = parent["group"].AsString();
  if (!group.empty()) Complain(IsDns1123Subdomain(group), group, at / "group", errors);
  for (const char* name : {"resource", "name", "namespace"}) {
    const std::string_view text = parent[name].AsString();
    if (!text.empty()) {
      Complain(IsPathSegmentName(text), text, at / name, errors);
    } else if (std::string_view(name) != "namespace") {
      errors.Required(at / name, "");
    }
  }
}

void ValidateIpAddressUpdate(Value o, Value old, FieldErrors& errors) {
  const At at("spec.parentRef");
  ImmutableMessage(o["spec"]["parentRef"], old["spec"]["parentRef"],
                   "io.k8s.api.networking.v1.ParentReference", at, errors);
}

void ValidateServiceCidrCreate(Value o, FieldErrors& errors) {
  const Value cidrs = o["spec"]["cidrs"];
  const At at("spec.cidrs");
  if (cidrs.empty()) return errors.Required(at, "at least one CIDR required");
  if (cidrs.size() > 2) {
    return errors.InvalidRaw(at,
                             InternalJson(o["spec"], "io.k8s.api.networking.v1.ServiceCIDRSpec"),
                             "may only hold up to 2 values");
  }
  size_t i = 0;
  FieldErrors found;
  for (Value cidr : cidrs.items()) {
    Complain(IsCanonicalCidr(cidr.AsString()), cidr.AsString(), at.Item("", i++), found);
  }
  const auto family = [cidrs](size_t at_index) {
    const std::string_view text = cidrs.at(at_index).AsString();
    return IsIpV6(text.substr(0, text.find('/')));
  };
  const bool same = found.empty() && cidrs.size() == 2 && family(0) == family(1);
  for (Cause& cause : found.Take()) errors.Add(std::move(cause));
  if (same) {
    errors.Invalid(at, cidrs,
                   "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                   "2001:db8::/64");
  }
}

// A second network may come later; the first stays.
void ValidateServiceCidrUpdate(Value o, Value old, FieldErrors& errors) {
  const Value now = o["spec"]["cidrs"];
  const Value before = old["spec"]["cidrs"];
  const At at("spec.cidrs");
  const bool grows = before.size() == 1 && now.size() == 2;
  if (now.size() != before.size() && !grows) {
    return errors.Invalid(at, now, std::string(kImmutable));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (now.at(i).AsString() == before.at(i).AsString()) continue;
    errors.Invalid(at.Item("", i), now.at(i), std::string(kImmutable));
  }
  if (grows) ValidateServiceCidrCreate(o, errors);
}

}  // namespace sextant::api
