// The tables of networking.k8s.io, autoscaling, admissionregistration.k8s.io, certificates.k8s.io
// and resource.k8s.io: their columns and the cells that only they have.
//
// Source: k8s.io/kubernetes pkg/printers/internalversion/printers.go at v1.36.3.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/conversion.h"
#include "api/lists.h"
#include "base/ascii.h"
#include "server/table_cells.h"
#include "server/tables.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Value;
using namespace cells;

constexpr char kCreated[] = "metadata.creationTimestamp";
constexpr char kName[] = "metadata.name";
constexpr char kSpecController[] = "spec.controller";
constexpr char kSpecDriver[] = "spec.driver";
constexpr char kSpecIngressClass[] = "spec.ingressClassName";
constexpr char kSpecMutations[] = "spec.mutations";
constexpr char kSpecNode[] = "spec.nodeName";
constexpr char kSpecPolicy[] = "spec.policyName";
constexpr char kSpecPool[] = "spec.pool.name";
constexpr char kSpecUser[] = "spec.username";
constexpr char kSpecValidations[] = "spec.validations";
constexpr char kStatusCurrentReplicas[] = "status.currentReplicas";
constexpr char kSpecMaxReplicas[] = "spec.maxReplicas";
constexpr char kWebhooks[] = "webhooks";

constexpr size_t kHostsShown = 3;
constexpr size_t kMetricsShown = 2;
constexpr std::string_view kDefaultIngressClass = "ingressclass.kubernetes.io/is-default-class";

void PolicySelector(Value o, Time, Mut out) {
  out.SetString(SelectorText(o["spec"]["podSelector"]));
}

void IngressHosts(Value o, Time, Mut out) {
  const Value rules = o["spec"]["rules"];
  std::vector<std::string_view> hosts;
  bool more = false;
  for (Value rule : rules.items()) {
    const std::string_view host = rule["host"].AsString();
    if (hosts.size() == kHostsShown) more = true;
    if (!more && !host.empty()) hosts.push_back(host);
  }
  if (hosts.empty()) return out.SetString("*");
  std::string text = fmt::format("{}", fmt::join(hosts, ","));
  if (more) text += fmt::format(" + {} more...", rules.size() - kHostsShown);
  out.SetString(text);
}

void IngressAddress(Value o, Time, Mut out) {
  std::set<std::string_view> addresses;
  for (Value point : o["status"]["loadBalancer"]["ingress"].items()) {
    const std::string_view ip = point["ip"].AsString();
    const std::string_view address = ip.empty() ? point["hostname"].AsString() : ip;
    if (!address.empty()) addresses.insert(address);
  }
  out.SetString(fmt::format("{}", fmt::join(addresses, ",")));
}

void IngressPorts(Value o, Time, Mut out) {
  out.SetString(o["spec"]["tls"].empty() ? "80" : "80, 443");
}

void IngressClassName(Value o, Time, Mut out) {
  std::string name(o["metadata"]["name"].AsString());
  const bool is_default = o["metadata"]["annotations"][kDefaultIngressClass].AsString() == "true";
  out.SetString(is_default ? name + " (default)" : name);
}

void IngressClassParameters(Value o, Time, Mut out) {
  const Value given = o["spec"]["parameters"];
  if (!given) return out.SetString("<none>");
  std::string text(given["kind"].AsString());
  if (given["apiGroup"]) text += fmt::format(".{}", given["apiGroup"].AsString());
  out.SetString(fmt::format("{}/{}", text, given["name"].AsString()));
}

void AddressParent(Value o, Time, Mut out) {
  const Value parent = o["spec"]["parentRef"];
  if (!parent) return out.SetString("<none>");
  std::string text(parent["resource"].AsString());
  const std::string_view group = parent["group"].AsString();
  if (!group.empty()) text += fmt::format(".{}", group);
  text = AsciiLower(text);
  if (parent["namespace"]) text += fmt::format("/{}", parent["namespace"].AsString());
  out.SetString(fmt::format("{}/{}", text, parent["name"].AsString()));
}

void ServiceCidrs(Value o, Time, Mut out) {
  std::vector<std::string_view> ranges;
  for (Value range : o["spec"]["cidrs"].items()) ranges.push_back(range.AsString());
  out.SetString(fmt::format("{}", fmt::join(ranges, ",")));
}

void ScaleReference(Value o, Time, Mut out) {
  const Value target = o["spec"]["scaleTargetRef"];
  out.SetString(fmt::format("{}/{}", target["kind"].AsString(), target["name"].AsString()));
}

// The member of a metric that its type names: "ContainerResource" is under containerResource.
std::string MemberOf(std::string_view type) {
  std::string member(type);
  if (!member.empty()) member[0] = static_cast<char>(member[0] | 0x20);
  return member;
}

std::string UsageMetric(Value source, Value current) {
  const Value target = source["target"];
  const std::string name(source["name"].AsString());
  if (target["averageValue"]) {
    return fmt::format("{}: {}/{}", name, current["averageValue"].AsString("<unknown>"),
                       target["averageValue"].AsString());
  }
  const auto percent = [](Value value, std::string_view otherwise) {
    return value ? fmt::format("{}%", value.AsInt()) : std::string(otherwise);
  };
  return fmt::format("{}: {}/{}", name, percent(current["averageUtilization"], "<unknown>"),
                     percent(target["averageUtilization"], "<auto>"));
}

std::string MetricText(Value spec, Value status) {
  const std::string_view type = spec["type"].AsString();
  const std::string member = MemberOf(type);
  const Value source = spec[member];
  const Value target = source["target"];
  const Value current = status[member]["current"];
  if (type == "Resource" || type == "ContainerResource") return UsageMetric(source, current);
  if (type == "Pods") {
    return fmt::format("{}/{}", current["averageValue"].AsString("<unknown>"),
                       target["averageValue"].AsString("0"));
  }
  if (type != "External" && type != "Object") return "<unknown type>";
  if (target["averageValue"]) {
    return fmt::format("{}/{} (avg)", current["averageValue"].AsString("<unknown>"),
                       target["averageValue"].AsString());
  }
  return fmt::format("{}/{}", current["value"].AsString("<unknown>"),
                     target["value"].AsString("0"));
}

// Shown as of autoscaling/v2 whatever version was asked for.
void ScaleTargets(Value o, Time, Mut out) {
  const api::Object stored = api::AutoscalerToStored(o);
  const Value metrics = stored ? stored["spec"]["metrics"] : o["spec"]["metrics"];
  const Value current = stored ? stored["status"]["currentMetrics"] : o["status"]["currentMetrics"];
  if (metrics.empty()) return out.SetString("<none>");
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(metrics.size(), kMetricsShown); ++i) {
    texts.push_back(MetricText(metrics.at(i), current.at(i)));
  }
  std::string text = fmt::format("{}", fmt::join(texts, ", "));
  if (metrics.size() > kMetricsShown) {
    text += fmt::format(" + {} more...", metrics.size() - kMetricsShown);
  }
  out.SetString(text);
}

void ScaleMinimum(Value o, Time, Mut out) {
  const Value least = o["spec"]["minReplicas"];
  out.SetString(least ? fmt::format("{}", least.AsInt()) : "<unset>");
}

void RequestSigner(Value o, Time, Mut out) {
  const std::string_view signer = o["spec"]["signerName"].AsString();
  out.SetString(signer.empty() ? "<none>" : signer);
}

void RequestDuration(Value o, Time, Mut out) {
  const Value seconds = o["spec"]["expirationSeconds"];
  out.SetString(seconds ? HumanDuration(std::chrono::seconds(seconds.AsInt())) : "<none>");
}

void RequestCondition(Value o, Time, Mut out) {
  const auto has = [o](std::string_view type) {
    return static_cast<bool>(api::FindBy(o["status"]["conditions"], "type", type));
  };
  std::string text = has("Denied") ? "Denied" : has("Approved") ? "Approved" : "Pending";
  if (has("Failed")) text += ",Failed";
  if (!o["status"]["certificate"].AsString().empty()) text += ",Issued";
  out.SetString(text);
}

void PolicyParamKind(Value o, Time, Mut out) {
  const Value kind = o["spec"]["paramKind"];
  if (!kind) return out.SetString("<unset>");
  out.SetString(fmt::format("{}/{}", kind["apiVersion"].AsString(), kind["kind"].AsString()));
}

void BindingParam(Value o, Time, Mut out) {
  const Value param = o["spec"]["paramRef"];
  const std::string_view name = param["name"].AsString();
  if (name.empty()) return out.SetString("<unset>");
  out.SetString(fmt::format("{}/{}", param["namespace"].AsString("*"), name));
}

void ClaimState(Value o, Time, Mut out) {
  const bool deleted = static_cast<bool>(o["metadata"]["deletionTimestamp"]);
  std::string text = deleted ? "deleted" : "";
  if (!o["status"]["allocation"]) return out.SetString(deleted ? text : "pending");
  text += deleted ? ",allocated" : "allocated";
  if (!o["status"]["reservedFor"].empty()) text += ",reserved";
  out.SetString(text);
}

constexpr Column kPolicies[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Pod-Selector", "string", "", 0, PolicySelector},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kIngresses[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Class", "string", "", 0, TextOrNone<kSpecIngressClass>},
    {"Hosts", "string", "", 0, IngressHosts},
    {"Address", "string", "", 0, IngressAddress},
    {"Ports", "string", "", 0, IngressPorts},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kIngressClasses[] = {
    {"Name", "string", "name", 0, IngressClassName},
    {"Controller", "string", "", 0, Text<kSpecController>},
    {"Parameters", "string", "", 0, IngressClassParameters},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kAddresses[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"ParentRef", "string", "", 0, AddressParent},
    {"", "string", "", 0, Age<kCreated>},  // printIPAddress tells it, and no column names it
};
constexpr Column kServiceRanges[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"CIDRs", "string", "", 0, ServiceCidrs},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kAutoscalers[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Reference", "string", "", 0, ScaleReference},
    {"Targets", "string", "", 0, ScaleTargets},
    {"MinPods", "string", "", 0, ScaleMinimum},
    {"MaxPods", "string", "", 0, Number<kSpecMaxReplicas>},
    {"Replicas", "string", "", 0, Number<kStatusCurrentReplicas>},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kHooks[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Webhooks", "integer", "", 0, Count<kWebhooks>},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kValidatingPolicies[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Validations", "integer", "", 0, Count<kSpecValidations>},
    {"ParamKind", "string", "", 0, PolicyParamKind},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kMutatingPolicies[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Mutations", "integer", "", 0, Count<kSpecMutations>},
    {"ParamKind", "string", "", 0, PolicyParamKind},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kPolicyBindings[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"PolicyName", "string", "", 0, Text<kSpecPolicy>},
    {"ParamRef", "string", "", 0, BindingParam},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kRequests[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Age", "string", "", 0, Age<kCreated>},
    {"SignerName", "string", "", 0, RequestSigner},
    {"Requestor", "string", "", 0, Text<kSpecUser>},
    {"RequestedDuration", "string", "", 0, RequestDuration},
    {"Condition", "string", "", 0, RequestCondition},
};
constexpr Column kNameAndAge[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kClaims[] = {
    {"Name", "string", "name", 0, Text<kName>},
    {"State", "string", "", 0, ClaimState},
    {"Age", "string", "", 0, Age<kCreated>},
};
constexpr Column kSlices[] = {
    {"Name", "string", "name", 0, Text<kName>},     {"Node", "string", "", 0, Text<kSpecNode>},
    {"Driver", "string", "", 0, Text<kSpecDriver>}, {"Pool", "string", "", 0, Text<kSpecPool>},
    {"Age", "string", "", 0, Age<kCreated>},
};

constexpr std::string_view kNetworking = "networking.k8s.io";
constexpr std::string_view kAdmission = "admissionregistration.k8s.io";
constexpr std::string_view kResources = "resource.k8s.io";

constexpr std::array<TableKind, 17> kTables = {{
    {kNetworking, "networkpolicies", kPolicies},
    {kNetworking, "ingresses", kIngresses},
    {kNetworking, "ingressclasses", kIngressClasses},
    {kNetworking, "ipaddresses", kAddresses},
    {kNetworking, "servicecidrs", kServiceRanges},
    {"autoscaling", "horizontalpodautoscalers", kAutoscalers},
    {kAdmission, "mutatingwebhookconfigurations", kHooks},
    {kAdmission, "validatingwebhookconfigurations", kHooks},
    {kAdmission, "validatingadmissionpolicies", kValidatingPolicies},
    {kAdmission, "validatingadmissionpolicybindings", kPolicyBindings},
    {kAdmission, "mutatingadmissionpolicies", kMutatingPolicies},
    {kAdmission, "mutatingadmissionpolicybindings", kPolicyBindings},
    {"certificates.k8s.io", "certificatesigningrequests", kRequests},
    {kResources, "deviceclasses", kNameAndAge},
    {kResources, "resourceclaims", kClaims},
    {kResources, "resourceclaimtemplates", kNameAndAge},
    {kResources, "resourceslices", kSlices},
}};

}  // namespace

std::span<const TableKind> LaterGroupTables() { return kTables; }

}  // namespace sextant::server
