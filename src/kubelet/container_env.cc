#include "kubelet/container_env.h"

#include <fmt/format.h>

#include "api/json.h"
#include "api/quantity.h"
#include "kubelet/pod_model.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Quantity;
using api::Value;

// Go's %q of a map's "key=value" lines, as fieldpath.FormatMap prints them: sorted, quoted values.
std::string FormatMap(Value map) {
  std::map<std::string, std::string> sorted;
  for (auto [key, value] : map.members()) sorted[std::string(key)] = value.AsString();
  std::string out;
  for (const auto& [key, value] : sorted) {
    if (!out.empty()) out += '\n';
    out += key + '=';
    api::WriteJsonString(value, out, false);
  }
  return out;
}

int64_t Ceiling(int64_t amount, int64_t divisor) {
  if (divisor <= 0) return 0;
  return amount / divisor + (amount % divisor > 0);
}

Status AddFrom(Value from, const Sources& sources, Env& env) {
  const std::string prefix(from["prefix"].AsString());
  if (const Value ref = from["configMapRef"]) {
    ASSIGN_OR_RETURN(const Object map,
                     FindSource(sources.config_maps, std::string(ref["name"].AsString()),
                                ref["optional"].AsBool()));
    for (auto [key, value] : map["data"].members())
      env[prefix + std::string(key)] = value.AsString();
  }
  if (const Value ref = from["secretRef"]) {
    ASSIGN_OR_RETURN(
        const Object secret,
        FindSource(sources.secrets, std::string(ref["name"].AsString()), ref["optional"].AsBool()));
    for (auto [key, value] : secret["data"].members())
      env[prefix + std::string(key)] = DecodeSecret(value);
  }
  return {};
}

// The value of one key; nullopt where it may be missing and is.
Result<std::optional<std::string>> KeyValue(Value ref, bool secret, const Sources& sources,
                                            std::string_view ns) {
  const std::string name(ref["name"].AsString());
  const std::string_view key = ref["key"].AsString();
  const bool optional = ref["optional"].AsBool();
  ASSIGN_OR_RETURN(const Object object,
                   FindSource(secret ? sources.secrets : sources.config_maps, name, optional));
  const Value value = object["data"][key];
  if (value) return secret ? DecodeSecret(value) : std::string(value.AsString());
  if (optional) return std::nullopt;
  return Fail(TextError(fmt::format("couldn't find key {} in {} {}/{}", key,
                                    secret ? "Secret" : "ConfigMap", ns, name)));
}

Result<std::optional<std::string>> FromSource(Value from, const EnvFacts& facts,
                                              const Sources& sources) {
  if (const Value ref = from["fieldRef"]) return FieldValue(ref["fieldPath"].AsString(), facts);
  if (const Value ref = from["resourceFieldRef"]) return ResourceValue(ref, facts);
  if (const Value ref = from["configMapKeyRef"]) {
    return KeyValue(ref, false, sources, facts.pod.ns());
  }
  if (const Value ref = from["secretKeyRef"]) return KeyValue(ref, true, sources, facts.pod.ns());
  if (from["fileKeyRef"]) {
    return Fail(TextError("fileKeyRef is not supported by this simulated kubelet"));
  }
  return std::string();
}

}  // namespace

SourceNames EnvSources(Value container) {
  SourceNames names;
  const auto add = [](std::set<std::string>& to, Value ref) {
    if (ref) to.emplace(ref["name"].AsString());
  };
  for (Value from : container["envFrom"].items()) {
    add(names.config_maps, from["configMapRef"]);
    add(names.secrets, from["secretRef"]);
  }
  for (Value variable : container["env"].items()) {
    add(names.config_maps, variable["valueFrom"]["configMapKeyRef"]);
    add(names.secrets, variable["valueFrom"]["secretKeyRef"]);
  }
  return names;
}

std::map<std::string, std::string> ApiServerEnv(const std::string& host, uint16_t port) {
  const std::string number = std::to_string(port);
  const std::string url = fmt::format("tcp://{}:{}", host, number);
  const std::string prefix = fmt::format("KUBERNETES_PORT_{}_TCP", number);
  return {{"KUBERNETES_SERVICE_HOST", host},
          {"KUBERNETES_SERVICE_PORT", number},
          {"KUBERNETES_SERVICE_PORT_HTTPS", number},
          {"KUBERNETES_PORT", url},
          {prefix, url},
          {prefix + "_PROTO", "tcp"},
          {prefix + "_PORT", number},
          {prefix + "_ADDR", host}};
}

std::string Expand(std::string_view text,
                   const std::function<std::optional<std::string>(std::string_view)>& lookup) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c != '$' || at + 1 == text.size()) {
      out += c;
      ++at;
      continue;
    }
    const char next = text[at + 1];
    if (next == '$') {
      out += '$';
      at += 2;
      continue;
    }
    const size_t end = next == '(' ? text.find(')', at + 2) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += c;
      out += next;
      at += 2;
      continue;
    }
    const std::string_view name = text.substr(at + 2, end - at - 2);
    if (const auto value = lookup(name)) {
      out += *value;
    } else {
      out += text.substr(at, end - at + 1);
    }
    at = end + 1;
  }
  return out;
}

std::vector<std::string> ExpandAll(Value list, const Env& env) {
  std::vector<std::string> out;
  for (Value item : list.items()) {
    out.push_back(Expand(item.AsString(), [&](std::string_view name) -> std::optional<std::string> {
      const auto found = env.find(std::string(name));
      if (found == env.end()) return std::nullopt;
      return found->second;
    }));
  }
  return out;
}

Result<std::string> FieldValue(std::string_view path, const EnvFacts& facts) {
  const Value metadata = facts.pod["metadata"];
  if (path.ends_with("']")) {
    const size_t open = path.find("['");
    if (open != std::string_view::npos && open > 0) {
      const std::string_view of = path.substr(0, open);
      const std::string_view key = path.substr(open + 2, path.size() - open - 4);
      if (of == "metadata.annotations") return std::string(metadata["annotations"][key].AsString());
      if (of == "metadata.labels") return std::string(metadata["labels"][key].AsString());
      return Fail(TextError(fmt::format("field label does not support subscript: {}", path)));
    }
  }
  if (path == "metadata.annotations" || path == "metadata.labels") {
    return FormatMap(metadata[path.substr(path.find('.') + 1)]);
  }
  if (path == "spec.host") path = "spec.nodeName";
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  for (std::string_view known :
       {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
        "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase"}) {
    if (path == known) return std::string(facts.pod.Path(path).AsString());
  }
  return Fail(TextError(fmt::format("field label not supported: {}", path)));
}

Result<std::string> ResourceValue(Value ref, const EnvFacts& facts) {
  Value container = facts.container;
  if (const std::string_view name = ref["containerName"].AsString(); !name.empty()) {
    container = FindContainerSpec(facts.pod, name);
    if (!container) return Fail(TextError(fmt::format("container {} not found", name)));
  }
  const std::string_view resource = ref["resource"].AsString();
  const size_t dot = resource.find('.');
  const std::string_view kind = resource.substr(0, dot);
  const std::string_view name =
      dot == std::string_view::npos ? std::string_view() : resource.substr(dot + 1);
  const bool known = name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
                     name.starts_with("hugepages-");
  if (!known || (kind != "limits" && kind != "requests")) {
    return Fail(TextError(fmt::format("unsupported container resource : {}", resource)));
  }
  Quantity divisor = Quantity::ParseOrZero(ref["divisor"].AsString());
  if (divisor.IsZero()) divisor = Quantity(1);
  Value amount = container["resources"][kind][name];
  if (kind == "limits" && !amount) amount = facts.node["status"]["allocatable"][name];
  const Quantity quantity = Quantity::ParseOrZero(amount.AsString());
  return std::to_string(name == "cpu" ? Ceiling(quantity.MilliValue(), divisor.MilliValue())
                                      : Ceiling(quantity.Value(), divisor.Value()));
}

Result<Env> BuildEnv(const EnvFacts& facts, const Sources& sources) {
  Env env;
  for (Value from : facts.container["envFrom"].items()) {
    RETURN_IF_ERROR(AddFrom(from, sources, env));
  }
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    if (const auto found = env.find(std::string(name)); found != env.end()) return found->second;
    const auto service = facts.services.find(std::string(name));
    if (service == facts.services.end()) return std::nullopt;
    return service->second;
  };
  for (Value variable : facts.container["env"].items()) {
    const std::string name(variable["name"].AsString());
    const std::string_view literal = variable["value"].AsString();
    if (!literal.empty()) {
      env[name] = Expand(literal, lookup);
    } else if (variable["valueFrom"]) {
      ASSIGN_OR_RETURN(auto value, FromSource(variable["valueFrom"], facts, sources));
      if (value) env[name] = *std::move(value);
    } else {
      env[name] = "";
    }
  }
  env.insert(facts.services.begin(), facts.services.end());
  return env;
}

}  // namespace sextant::kubelet
