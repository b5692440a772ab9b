// Devices that Pods claim: claims, their templates, classes and slices. Expressions (CEL) are not
// looked into; of a slice's capacity policies only the shape is asked.
// Source: pkg/apis/resource/validation.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/json.h"
#include "api/regex.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr int kMaxRequests = 32;
constexpr int kMaxConstraints = 32;
constexpr int kMaxConfigs = 32;
constexpr int kMaxSelectors = 32;
constexpr int kMaxAlternatives = 8;
constexpr int kMaxExpression = 10 << 10;
constexpr int kMaxParameterBytes = 10 << 10;
constexpr int kMaxReservedFor = 256;
constexpr int kMaxResults = 32;
constexpr int kMaxDevices = 128;
constexpr int kMaxRichDevices = 64;  // with taints or counters
constexpr int kMaxCounterSets = 8;
constexpr int kMaxCounters = 32;
constexpr int kMaxConsumptions = 2;
constexpr int kMaxTaints = 16;
constexpr size_t kMaxAttributes = 32;
constexpr int kMaxIdentifier = 32;
constexpr int kMaxAttributeValue = 64;
constexpr int kMaxPoolName = 253;

// Names of the requests of a claim, each with those of its alternatives.
using Requests = std::map<std::string, Names, std::less<>>;

Requests RequestsOf(Value devices) {
  Requests out;
  for (Value request : devices["requests"].items()) {
    Names& below = out[std::string(request["name"].AsString())];
    for (Value alternative : request["firstAvailable"].items()) {
      below.emplace(alternative["name"].AsString());
    }
  }
  return out;
}

bool IsRequest(const Requests& requests, std::string_view name) {
  const size_t slash = name.find('/');
  const auto found = requests.find(name.substr(0, slash));
  if (found == requests.end()) return false;
  return slash == std::string_view::npos || found->second.contains(name.substr(slash + 1));
}

// False where there are too many: the items are not looked at then.
bool Fits(Value list, int most, const At& at, FieldErrors& errors) {
  if (list.size() <= static_cast<size_t>(most)) return true;
  errors.TooMany(at, static_cast<int>(list.size()), most);
  return false;
}

// Items of a list that must not repeat, by a member or by themselves.
void Unique(Value list, const char* key, const At& at, FieldErrors& errors) {
  Names seen;
  size_t i = 0;
  for (Value item : list.items()) {
    const std::string_view text = key ? item[key].AsString() : item.AsString();
    const At here = at.Item("", i++);
    if (!seen.emplace(text).second) errors.Duplicate(here, text);
  }
}

void Label(Value message, const char* name, const At& at, FieldErrors& errors) {
  const std::string_view text = message[name].AsString();
  Complain(IsDns1123Label(text), text, at / name, errors);
}

void ValidateIdentifier(std::string_view id, const At& at, FieldErrors& errors) {
  if (id.size() > kMaxIdentifier) errors.TooLong(at, kMaxIdentifier);
  Complain(IsCIdentifier(id), id, at, errors);
}

void ValidateQualified(std::string_view name, const At& at, FieldErrors& errors) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return ValidateIdentifier(name, at, errors);
  if (std::ranges::count(name, '/') > 1) return;
  const std::string_view domain = name.substr(0, slash);
  const std::string_view id = name.substr(slash + 1);
  if (domain.empty()) {
    errors.InvalidText(at, "", "the domain must not be empty");
  } else {
    ValidateCsiDriverName(domain, at, errors);
  }
  if (id.empty()) {
    errors.InvalidText(at, "", "the name must not be empty");
  } else {
    ValidateIdentifier(id, at, errors);
  }
}

void ValidateFullyQualified(std::string_view name, const At& at, FieldErrors& errors) {
  ValidateQualified(name, at, errors);
  if (name.find('/') == std::string_view::npos) {
    errors.InvalidText(at, name,
                       "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void ValidatePoolName(std::string_view name, const At& at, FieldErrors& errors) {
  if (name.empty()) return errors.Required(at, "");
  if (name.size() > kMaxPoolName) errors.TooLong(at, kMaxPoolName);
  for (std::string_view rest = name;;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    Complain(IsDns1123Subdomain(part), part, at, errors);
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

// --- what a claim asks for

void ValidateSelectors(Value selectors, const At& at, FieldErrors& errors) {
  if (!Fits(selectors, kMaxSelectors, at, errors)) return;
  size_t i = 0;
  for (Value selector : selectors.items()) {
    const At here = at.Item("", i++);
    const Value cel = selector["cel"];
    const At cel_at = here / "cel";
    if (!cel) {
      errors.Required(cel_at, "");
    } else if (cel["expression"].AsString().size() > kMaxExpression) {
      errors.TooLong(cel_at / "expression", kMaxExpression);
    }
  }
}

constexpr Words kEffects = {"NoExecute", "NoSchedule", "None"};

void ValidateDeviceToleration(Value toleration, const At& at, FieldErrors& errors) {
  const std::string_view key = toleration["key"].AsString();
  const std::string_view value = toleration["value"].AsString();
  const std::string_view op = toleration["operator"].AsString();
  if (!key.empty()) Complain(IsQualifiedName(key), key, at / "key", errors);
  if (op == "Exists") {
    if (!value.empty()) {
      errors.InvalidText(at / "value", value, "must be empty for operator `Exists`");
    }
  } else if (op == "Equal") {
    Complain(IsLabelValue(value), value, at / "value", errors);
  } else if (op.empty()) {
    errors.Required(at / "operator", "");
  } else {
    NotSupported(at / "operator", op, {"Equal", "Exists"}, errors);
  }
  if (!toleration["effect"].AsString().empty()) {
    OneOf(toleration, "effect", kEffects, at, errors);
  }
}

// An exact request, or one of the alternatives.
void ValidateAsked(Value asked, const At& at, FieldErrors& errors) {
  const std::string_view device_class = asked["deviceClassName"].AsString();
  const At class_at = at / "deviceClassName";
  if (device_class.empty()) {
    errors.Required(class_at, "");
  } else {
    Complain(IsDns1123Subdomain(device_class), device_class, class_at, errors);
  }
  ValidateSelectors(asked["selectors"], at / "selectors", errors);
  const std::string_view mode = asked["allocationMode"].AsString();
  const int64_t count = asked["count"].AsInt();
  const At count_at = at / "count";
  if (mode == "All") {
    if (count != 0) {
      errors.InvalidRaw(count_at, std::to_string(count),
                        "must not be specified when allocationMode is 'All'");
    }
  } else if (mode == "ExactCount") {
    if (count <= 0) errors.InvalidRaw(count_at, std::to_string(count), "must be greater than zero");
  } else {
    NotSupported(at / "allocationMode", mode, {"All", "ExactCount"}, errors);
  }
  size_t i = 0;
  for (Value toleration : asked["tolerations"].items()) {
    ValidateDeviceToleration(toleration, at.Item("tolerations", i++), errors);
  }
}

void ValidateRequest(Value request, const At& at, FieldErrors& errors) {
  Label(request, "name", at, errors);
  const Value exactly = request["exactly"];
  const Value alternatives = request["firstAvailable"];
  if (!exactly && alternatives.empty()) {
    return errors.Required(at, "exactly one of `exactly` or `firstAvailable` is required");
  }
  if (exactly && !alternatives.empty()) {
    return errors.InvalidRaw(at, "null",
                             "exactly one of `exactly` or `firstAvailable` is required, but "
                             "multiple fields are set");
  }
  if (exactly) return ValidateAsked(exactly, at / "exactly", errors);
  const At here = at / "firstAvailable";
  if (!Fits(alternatives, kMaxAlternatives, here, errors)) return;
  size_t i = 0;
  for (Value alternative : alternatives.items()) {
    const At item = here.Item("", i++);
    Label(alternative, "name", item, errors);
    ValidateAsked(alternative, item, errors);
  }
  Unique(alternatives, "name", here, errors);
}

void ValidateReferences(Value names, const Requests& requests, const At& at, FieldErrors& errors) {
  if (!Fits(names, kMaxRequests, at, errors)) return;
  constexpr const char* kWhy =
      "must be the name of a request in the claim or the name of a request and a subrequest "
      "separated by '/'";
  size_t i = 0;
  for (Value item : names.items()) {
    const At here = at.Item("", i++);
    const std::string_view name = item.AsString();
    const size_t slash = name.find('/');
    if (std::ranges::count(name, '/') > 1) {
      errors.InvalidText(here, name, kWhy);
      continue;
    }
    const std::string_view request = name.substr(0, slash);
    Complain(IsDns1123Label(request), request, here, errors);
    if (slash != std::string_view::npos) {
      const std::string_view sub = name.substr(slash + 1);
      Complain(IsDns1123Label(sub), sub, here, errors);
    }
    if (!IsRequest(requests, name)) errors.InvalidText(here, name, kWhy);
  }
  Unique(names, nullptr, at, errors);
}

void ValidateOpaque(Value config, const At& at, FieldErrors& errors) {
  const Value opaque = config["opaque"];
  const At here = at / "opaque";
  if (!opaque) return errors.Required(here, "");
  ValidateCsiDriverName(opaque["driver"].AsString(), here / "driver", errors);
  const Value parameters = opaque["parameters"];
  const At parameters_at = here / "parameters";
  if (!parameters) {
    errors.Required(parameters_at, "");
  } else if (ToJson(parameters).size() > kMaxParameterBytes) {
    errors.TooLong(parameters_at, kMaxParameterBytes);
  } else if (!parameters.IsMap()) {
    errors.InvalidText(parameters_at, "<value omitted>", "must be a valid JSON object");
  }
}

void ValidateClaimDevices(Value devices, const At& at, FieldErrors& errors) {
  const Requests known = RequestsOf(devices);
  const Value requests = devices["requests"];
  const At requests_at = at / "requests";
  size_t i = 0;
  if (Fits(requests, kMaxRequests, requests_at, errors)) {
    for (Value request : requests.items()) {
      ValidateRequest(request, requests_at.Item("", i++), errors);
    }
    Unique(requests, "name", requests_at, errors);
  }
  i = 0;
  const At constraints_at = at / "constraints";
  if (Fits(devices["constraints"], kMaxConstraints, constraints_at, errors)) {
    for (Value constraint : devices["constraints"].items()) {
      const At here = constraints_at.Item("", i++);
      ValidateReferences(constraint["requests"], known, here / "requests", errors);
      if (constraint["matchAttribute"]) {
        ValidateFullyQualified(constraint["matchAttribute"].AsString(), here / "matchAttribute",
                               errors);
      } else if (constraint["distinctAttribute"]) {
        ValidateFullyQualified(constraint["distinctAttribute"].AsString(),
                               here / "distinctAttribute", errors);
      } else {
        errors.Required(here,
                        "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, "
                        "but multiple fields are set");
      }
    }
  }
  i = 0;
  const At config_at = at / "config";
  if (!Fits(devices["config"], kMaxConfigs, config_at, errors)) return;
  for (Value config : devices["config"].items()) {
    const At here = config_at.Item("", i++);
    ValidateReferences(config["requests"], known, here / "requests", errors);
    ValidateOpaque(config, here, errors);
  }
}

// --- what a slice offers

// As the internal type prints it, which has other names than the API.
std::string PrintedAttribute(Value attribute) {
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"int", "IntValue"},         {"bool", "BoolValue"},        {"string", "StringValue"},
      {"version", "VersionValue"}, {"ints", "IntValues"},        {"bools", "BoolValues"},
      {"strings", "StringValues"}, {"versions", "VersionValues"}};
  std::string out;
  for (const auto& [name, shown] : kFields) {
    const Value value = attribute[name];
    out +=
        fmt::format("{}\"{}\":{}", out.empty() ? "{" : ",", shown, value ? ToJson(value) : "null");
  }
  return out + "}";
}

void ValidateAttribute(Value attribute, const At& at, FieldErrors& errors) {
  if (attribute.size() != 1) {
    if (attribute.empty()) return errors.InvalidText(at, "", "exactly one value must be specified");
    return errors.InvalidRaw(at, PrintedAttribute(attribute),
                             "exactly one value must be specified");
  }
  const auto [name, value] = *attribute.members().begin();
  if (name != "string" && name != "version") return;
  const At here = at / name;
  const std::string_view text = value.AsString();
  // The grammar of semver.org 2.0.0.
  static const re2::RE2 kVersion(
      R"((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*))"
      R"((-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?)"
      R"((\+([0-9a-zA-Z-]+)(\.([0-9a-zA-Z-]+))*)?)");
  if (name == "version" && !re2::RE2::FullMatch(Re2Text(text), kVersion)) {
    errors.InvalidText(here, text, "must be a string compatible with semver.org spec 2.0.0");
  }
  if (text.size() > kMaxAttributeValue) errors.TooLong(here, kMaxAttributeValue);
}

void ValidateTaint(Value taint, const At& at, FieldErrors& errors) {
  const std::string_view key = taint["key"].AsString();
  Complain(IsQualifiedName(key), key, at / "key", errors);
  const std::string_view value = taint["value"].AsString();
  if (!value.empty()) Complain(IsLabelValue(value), value, at / "value", errors);
  if (taint["effect"].AsString().empty()) {
    errors.Required(at / "effect", "");
  } else {
    OneOf(taint, "effect", kEffects, at, errors);
  }
}

void ValidateCounters(Value counters, const At& at, FieldErrors& errors) {
  if (counters.empty()) return errors.Required(at, "");
  if (!Fits(counters, kMaxCounters, at, errors)) return;
  for (auto [name, counter] : counters.members()) Complain(IsDns1123Label(name), name, at, errors);
}

void ValidateCounterName(Value message, const char* name, const At& at, FieldErrors& errors) {
  if (message[name].AsString().empty()) return errors.Required(at / name, "");
  Label(message, name, at, errors);
}

// Where a slice or a device of it is: exactly one of these.
std::vector<std::string> PlacesOf(Value message, const At& at, FieldErrors& errors) {
  std::vector<std::string> places;
  if (message["nodeName"]) {
    const std::string_view name = message["nodeName"].AsString();
    if (name.empty()) {
      errors.InvalidText(at / "nodeName", "", "must be either unset or set to a non-empty string");
    } else {
      places.emplace_back("`nodeName`");
      Complain(NameIsDnsSubdomain(name, false), name, at / "nodeName", errors);
    }
  }
  if (message["nodeSelector"]) {
    places.emplace_back("`nodeSelector`");
    ValidateNodeSelector(message["nodeSelector"], at / "nodeSelector", errors);
  }
  for (const char* name : {"allNodes", "perDeviceNodeSelection"}) {
    if (!message[name]) continue;
    if (message[name].AsBool()) {
      places.push_back(fmt::format("`{}`", name));
    } else {
      errors.Invalid(at / name, message[name], "must be either unset or set to true");
    }
  }
  return places;
}

void OnePlace(const std::vector<std::string>& places, const std::string& rule, bool say_multiple,
              const At& at, FieldErrors& errors) {
  if (places.empty()) return errors.Required(at, rule);
  if (places.size() == 1) return;
  std::string all;
  for (const std::string& place : places) all += (all.empty() ? "" : ", ") + place;
  errors.InvalidText(at, fmt::format("{{{}}}", all),
                     say_multiple ? rule + ", but multiple fields are set" : rule);
}

void ValidateDevice(Value device, bool placed, const At& at, FieldErrors& errors) {
  Label(device, "name", at, errors);
  const Value attributes = device["attributes"];
  const Value capacity = device["capacity"];
  if (attributes.size() + capacity.size() > kMaxAttributes) {
    errors.InvalidRaw(
        at, std::to_string(attributes.size() + capacity.size()),
        fmt::format("the total number of attributes and capacities must not exceed {}",
                    kMaxAttributes));
  }
  const At attributes_at = at / "attributes";
  for (auto [name, attribute] : attributes.members()) {
    ValidateQualified(name, attributes_at, errors);
    ValidateAttribute(attribute, at.Key("attributes", name), errors);
  }
  const At capacity_at = at / "capacity";
  for (auto [name, amount] : capacity.members()) {
    ValidateQualified(name, capacity_at, errors);
    const At here = at.Key("capacity", name);
    if (amount["requestPolicy"] && !device["allowMultipleAllocations"].AsBool()) {
      errors.Forbidden(here / "requestPolicy", "allowMultipleAllocations must be true");
    }
  }
  const At taints_at = at / "taints";
  size_t i = 0;
  if (Fits(device["taints"], kMaxTaints, taints_at, errors)) {
    for (Value taint : device["taints"].items()) {
      ValidateTaint(taint, taints_at.Item("", i++), errors);
    }
  }
  const Value consumes = device["consumesCounters"];
  const At consumes_at = at / "consumesCounters";
  i = 0;
  if (Fits(consumes, kMaxConsumptions, consumes_at, errors)) {
    for (Value item : consumes.items()) {
      const At here = consumes_at.Item("", i++);
      ValidateCounterName(item, "counterSet", here, errors);
      ValidateCounters(item["counters"], here / "counters", errors);
    }
    Unique(consumes, "counterSet", consumes_at, errors);
  }
  if (placed) {
    OnePlace(PlacesOf(device, at, errors),
             "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
             "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
             false, at, errors);
  } else if (device["nodeName"] || device["nodeSelector"] || device["allNodes"]) {
    errors.InvalidRaw(at, "null",
                      "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                      "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
  }
}

}  // namespace

void ValidateResourceClaimCreate(Value o, FieldErrors& errors) {
  ValidateClaimDevices(o["spec"]["devices"], At("spec.devices"), errors);
}

void ValidateResourceClaimUpdate(Value o, Value old, FieldErrors& errors) {
  ImmutableMessage(o["spec"], old["spec"], "io.k8s.api.resource.v1.ResourceClaimSpec", At("spec"),
                   errors);
}

void ValidateResourceClaimStatus(Value o, Value old, FieldErrors& errors) {
  const At at("status");
  const Value status = o["status"];
  const Value reserved = status["reservedFor"];
  const At reserved_at = at / "reservedFor";
  if (Fits(reserved, kMaxReservedFor, reserved_at, errors)) {
    size_t i = 0;
    for (Value consumer : reserved.items()) {
      const At here = reserved_at.Item("", i++);
      for (const char* name : {"resource", "name", "uid"}) {
        RequiredText(consumer, name, here, errors);
      }
    }
    Unique(reserved, "uid", reserved_at, errors);
  }
  const Value allocation = status["allocation"];
  if (!reserved.empty() && !allocation) {
    errors.Forbidden(reserved_at, "may not be specified when `allocated` is not set");
  }
  const Value before = old["status"]["allocation"];
  const At allocation_at = at / "allocation";
  if (before && allocation) {
    return ImmutableMessage(allocation, before, "io.k8s.api.resource.v1.AllocationResult",
                            allocation_at, errors);
  }
  const Requests known = RequestsOf(o["spec"]["devices"]);
  const Value results = allocation["devices"]["results"];
  const At results_at = allocation_at / "devices.results";
  if (!Fits(results, kMaxResults, results_at, errors)) return;
  size_t i = 0;
  for (Value result : results.items()) {
    const At here = results_at.Item("", i++);
    const std::string_view request = result["request"].AsString();
    if (!IsRequest(known, request)) {
      errors.InvalidText(here / "request", request,
                         "must be the name of a request in the claim or the name of a request and "
                         "a subrequest separated by '/'");
    }
    ValidateCsiDriverName(result["driver"].AsString(), here / "driver", errors);
    ValidatePoolName(result["pool"].AsString(), here / "pool", errors);
    Label(result, "device", here, errors);
  }
}

void ValidateClaimTemplateCreate(Value o, FieldErrors& errors) {
  const At metadata("spec.metadata");
  const Value said = o["spec"]["metadata"];
  ValidateAnnotations(said["annotations"], metadata / "annotations", errors);
  ValidateLabels(said["labels"], metadata / "labels", errors);
  for (auto [name, value] : said.members()) {
    if (name == "labels" || name == "annotations" || value.IsNull()) continue;
    errors.Forbidden(metadata / name, "cannot be set");
  }
  ValidateClaimDevices(o["spec"]["spec"]["devices"], At("spec.spec.devices"), errors);
}

void ValidateClaimTemplateUpdate(Value o, Value old, FieldErrors& errors) {
  ImmutableMessage(o["spec"], old["spec"], "io.k8s.api.resource.v1.ResourceClaimTemplateSpec",
                   At("spec"), errors);
}

void ValidateDeviceClass(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidateSelectors(spec["selectors"], at / "selectors", errors);
  const At config_at = at / "config";
  size_t i = 0;
  if (Fits(spec["config"], kMaxConfigs, config_at, errors)) {
    for (Value config : spec["config"].items()) {
      ValidateOpaque(config, config_at.Item("", i++), errors);
    }
  }
  const Value extended = spec["extendedResourceName"];
  if (extended && !IsExtendedResource(extended.AsString())) {
    errors.Invalid(at / "extendedResourceName", extended, "must be a valid extended resource name");
  }
}

void ValidateResourceSlice(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidateCsiDriverName(spec["driver"].AsString(), at / "driver", errors);
  const Value pool = spec["pool"];
  const At pool_at = at / "pool";
  ValidatePoolName(pool["name"].AsString(), pool_at / "name", errors);
  if (const int64_t count = pool["resourceSliceCount"].AsInt(); count <= 0) {
    errors.InvalidRaw(pool_at / "resourceSliceCount", std::to_string(count),
                      "must be greater than zero");
  }
  if (pool["generation"].AsInt() < 0) {
    errors.Invalid(pool_at / "generation", pool["generation"],
                   "must be greater than or equal to zero");
  }
  const std::vector<std::string> places = PlacesOf(spec, at, errors);
  const Value terms = spec["nodeSelector"]["nodeSelectorTerms"];
  if (spec["nodeSelector"] && terms.size() != 1) {
    const At selector = at / "nodeSelector";
    errors.Invalid(selector / "nodeSelectorTerms", terms,
                   "must have exactly one node selector term");
  }
  OnePlace(places,
           "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
           "required",
           true, at, errors);
  const Value devices = spec["devices"];
  if (spec["sharedCounters"] && devices) {
    errors.InvalidText(at, "", "only one of `sharedCounters` or `devices` is allowed");
  }
  bool rich = false;
  for (Value device : devices.items()) {
    rich |= !device["taints"].empty() || !device["consumesCounters"].empty();
  }
  const At devices_at = at / "devices";
  size_t i = 0;
  if (Fits(devices, rich ? kMaxRichDevices : kMaxDevices, devices_at, errors)) {
    const bool placed = spec["perDeviceNodeSelection"].AsBool();
    for (Value device : devices.items()) {
      ValidateDevice(device, placed, devices_at.Item("", i++), errors);
    }
    Unique(devices, "name", devices_at, errors);
  }
  const Value sets = spec["sharedCounters"];
  const At sets_at = at / "sharedCounters";
  i = 0;
  if (!Fits(sets, kMaxCounterSets, sets_at, errors)) return;
  for (Value set : sets.items()) {
    const At here = sets_at.Item("", i++);
    ValidateCounterName(set, "name", here, errors);
    ValidateCounters(set["counters"], here / "counters", errors);
  }
  Unique(sets, "name", sets_at, errors);
}

void ValidateResourceSliceUpdate(Value o, Value old, FieldErrors& errors) {
  const At at("spec");
  const Value now = o["spec"];
  const Value before = old["spec"];
  Immutable(now["pool"]["name"], before["pool"]["name"], At("spec.pool.name"), errors);
  Immutable(now["driver"], before["driver"], at / "driver", errors);
  Immutable(now["nodeName"], before["nodeName"], at / "nodeName", errors);
}

}  // namespace sextant::api
