// The rules against the real server's recorded answers (docs/recorded-cases.md): bodies of creates,
// updates and patches go through defaults, preparation and validation as the pipeline does it, and
// what comes out is compared with what the API server said. No server: steps whose answer depends
// on more than the rules (admission, conflicts, authorisation) are passed over.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "api/conversion.h"
#include "api/json.h"
#include "api/patch.h"
#include "api/registry.h"
#include "api/rules.h"

namespace sextant::api {
namespace {

constexpr const char* kUid = "00000000-0000-4000-8000-000000000000";
constexpr const char* kTime = "2026-11-30T00:00:00Z";
constexpr const char* kSuffix = "zz5zz";
constexpr const char* kAddress = "10.96.1.1";

struct Step {
  std::string name;
  std::string method;
  std::string path;
  std::string type = "application/json";
  std::string body;
  int code = 0;
  std::vector<std::string> warnings;
  std::string answer;
  bool usual = true;  // no directive that changes who asks or what is recorded
};

std::vector<Step> ReadCases(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<Step> steps;
  std::string line;
  enum class In { kHead, kBody, kStatus, kHeaders, kAnswer } at = In::kHead;
  while (std::getline(in, line)) {
    if (line.starts_with("### ")) {
      steps.emplace_back().name = line.substr(4);
      at = In::kHead;
      continue;
    }
    if (steps.empty()) continue;
    Step& s = steps.back();
    if (line == "---" && (at == In::kHead || at == In::kBody)) {
      at = In::kStatus;
      continue;
    }
    switch (at) {
      case In::kHead:
        if (line.empty()) {
          at = In::kBody;
        } else if (line.starts_with("@")) {
          s.usual &= line == "@as admin" || line.starts_with("@save");
        } else if (line.starts_with("#")) {
          // a comment
        } else if (s.method.empty()) {
          const size_t space = line.find(' ');
          s.method = line.substr(0, space);
          s.path = space == std::string::npos ? "" : line.substr(space + 1);
        } else if (line.starts_with("Content-Type: ")) {
          s.type = line.substr(14);
        } else {
          s.usual = false;
        }
        break;
      case In::kBody:
        s.body += line + "\n";
        break;
      case In::kStatus:
        s.code = std::atoi(line.c_str());
        at = In::kHeaders;
        break;
      case In::kHeaders:
        if (line.empty()) at = In::kAnswer;
        if (line.starts_with("Warning: ")) s.warnings.push_back(line.substr(9));
        break;
      case In::kAnswer:
        s.answer += line + "\n";
        break;
    }
  }
  return steps;
}

// {{ns}} and {{N*c}}; false if another variable is asked for.
bool FillIn(std::string& text, const std::string& ns) {
  for (size_t at = 0; (at = text.find("{{", at)) != std::string::npos;) {
    const size_t end = text.find("}}", at);
    if (end == std::string::npos) return false;
    const std::string name = text.substr(at + 2, end - at - 2);
    std::string value;
    const size_t star = name.find('*');
    if (name == "ns") {
      value = ns;
    } else if (star != std::string::npos) {
      value.assign(std::stoul(name.substr(0, star)), name[star + 1]);
    } else {
      return false;
    }
    text.replace(at, end + 2 - at, value);
    at += value.size();
  }
  return true;
}

// What a path names.
struct Target {
  const Resource* resource = nullptr;
  std::string ns;
  std::string name;
  std::string subresource;
};

Target Parse(std::string path) {
  Target t;
  path = path.substr(0, path.find('?'));
  std::vector<std::string> parts;
  std::istringstream in(path.substr(1));
  for (std::string part; std::getline(in, part, '/');) parts.push_back(part);
  if (parts.size() < 3 || (parts[0] == "apis" && parts.size() < 4)) return t;
  std::string group;
  std::string version;
  size_t i = 0;
  if (parts[0] == "api") {
    version = parts[1];
    i = 2;
  } else {
    group = parts[1];
    version = parts[2];
    i = 3;
  }
  if (parts[i] == "namespaces" && parts.size() > i + 2 && parts[i + 2] != "status" &&
      parts[i + 2] != "finalize") {
    t.ns = parts[i + 1];
    i += 2;
  }
  t.resource = Registry::Builtin().Find({group, version}, parts[i]);
  if (parts.size() > i + 1) t.name = parts[i + 1];
  if (parts.size() > i + 2) t.subresource = parts[i + 2];
  return t;
}

// What admission and the store add, or what differs from one run to the next: not the rules' doing.
const std::set<std::string, std::less<>> kIgnoredMeta = {
    "uid",  "creationTimestamp", "resourceVersion", "managedFields", "namespace",
    "name", "generateName"};
const std::set<std::string, std::less<>> kByAdmission = {
    "serviceAccountName", "serviceAccount",   "tolerations",         "priority",
    "preemptionPolicy",   "imagePullSecrets", "clusterIP",           "clusterIPs",
    "ipFamilies",         "ipFamilyPolicy",   "healthCheckNodePort", "automountServiceAccountToken",
    "storageClassName"};
// Admission's mark on Pods whose resources it has filled in.
constexpr const char* kLimitRanger = "kubernetes.io/limit-ranger";

Object Comparable(const Object& object, bool pod) {
  Editor edit(object);
  const Mut metadata = edit.Root()["metadata"];
  for (const auto& name : kIgnoredMeta) metadata.Erase(name);
  const std::string_view kind = object.kind();
  if (kind.starts_with("Persistent") || kind == "VolumeAttributesClass") {
    metadata.Erase("finalizers");
  }
  const Mut spec = edit.Root()["spec"];
  if (spec.kind() == Kind::kMap) {
    for (const auto& name : kByAdmission) spec.Erase(name);
    if (kind == "Node") spec.Erase("taints");
    if (kind == "Service" && spec.Has("ports")) {
      for (size_t i = 0; i < spec["ports"].size(); ++i) spec["ports"].at(i).Erase("nodePort");
    }
    if (pod) {
      spec.Erase("volumes");
      for (const char* list : {"containers", "initContainers"}) {
        if (!spec.Has(list)) continue;
        for (size_t i = 0; i < spec[list].size(); ++i) spec[list].at(i).Erase("volumeMounts");
      }
    }
  }
  return std::move(edit).Finish();
}

// The difference that counts, for people.
std::string FirstDifference(Value a, Value b, std::string path) {
  if (Equal(a, b)) return {};
  if (a.IsMap() && b.IsMap()) {
    for (auto [key, value] : a.members()) {
      std::string found = FirstDifference(value, b[key], path + "." + std::string(key));
      if (!found.empty()) return found;
    }
    for (auto [key, value] : b.members()) {
      if (!a.Has(key)) return fmt::format("{}.{}: missing {}", path, key, ToJson(value));
    }
  }
  if (a.IsList() && b.IsList() && a.size() == b.size()) {
    for (size_t i = 0; i < a.size(); ++i) {
      std::string found = FirstDifference(a.at(i), b.at(i), fmt::format("{}[{}]", path, i));
      if (!found.empty()) return found;
    }
  }
  return fmt::format("{}: ours {} theirs {}", path, ToJson(a), ToJson(b));
}

// Our object has placeholders as the recorded one has: only the shape of uids matters.
class Replay {
 public:
  explicit Replay(std::string ns) : ns_(std::move(ns)) {}

  size_t compared = 0;
  std::vector<std::string> wrong;

  void Run(Step s) {
    s.answer = Real(s.answer);
    if (!s.usual || !FillIn(s.path, ns_) || !FillIn(s.body, ns_)) return Touch(s);
    const Target t = Parse(s.path);
    if (t.resource && t.resource->plural == "bindings" && s.code == 201) return Bind(s, t);
    if (!t.resource || t.resource->virtual_review) return;
    if (s.method == "DELETE" && s.code < 300) {
      if (t.name.empty()) stored_.clear();
      stored_.erase(Key(t));
      return;
    }
    if (t.subresource == "scale") {  // the answer is not the object: look at it again
      stored_.erase(Key(t));
      return;
    }
    if (t.subresource == "binding" && s.code == 201) return Bind(s, t);
    if (!t.subresource.empty() && t.subresource != "status" &&
        !FindSubresourceRules(RulesFor(*t.resource), t.subresource)) {
      return Learn(s, t);
    }
    if (s.code != 200 && s.code != 201 && s.code != 422) return;
    if (s.method == "POST") return Create(s, t);
    if (s.method == "PUT" || s.method == "PATCH") return Update(s, t);
  }

 private:
  static std::string Key(const Target& t) {
    return fmt::format("{}/{}/{}/{}", t.resource->group_version.group, t.resource->plural, t.ns,
                       t.name);
  }

  // A step that is not replayed may have changed the object: its answer is the truth.
  void Touch(const Step& s) {
    Step filled = s;
    FillIn(filled.path, ns_);
    const Target t = Parse(filled.path);
    if (t.resource) Learn(s, t);
  }
  void Learn(const Step& s, Target t) {
    if (s.code != 200 && s.code != 201) return;
    auto answer = ParseJson(s.answer);
    if (!answer || answer->kind() != t.resource->kind) return;
    t.name = answer->name();
    auto decoded = DecodeTree(answer->root(), *t.resource->message);
    if (decoded) stored_[Key(t)] = *decoded;
  }

  void Bind(const Step& s, Target t) {
    const auto binding = ParseJson(s.body);
    if (!binding || s.path.find("dryRun") != std::string::npos) return;
    if (t.name.empty()) t.name = binding->name();
    t.resource = Registry::Builtin().Find({"", "v1"}, "pods");
    const auto at = stored_.find(Key(t));
    if (at == stored_.end()) return;
    Editor edit(at->second);
    edit.Root()["spec"].Set("nodeName", binding->Path("target.name").AsString());
    const Mut condition = edit.Root()["status"]["conditions"].Append();
    condition.Set("type", "PodScheduled");
    condition.Set("status", "True");
    condition.Set("lastTransitionTime", kTime);
    at->second = std::move(edit).Finish(t.resource->message);
  }

  void Create(const Step& s, Target t) {
    auto body = DecodeJson(s.body, *t.resource->message);
    if (!body) return;
    const Rules& rules = RulesFor(*t.resource);
    Editor edit(*body);
    const Mut root = edit.Root();
    const Mut metadata = root["metadata"];
    if (t.resource->namespaced) metadata.Set("namespace", t.ns);
    root.Set("kind", t.resource->kind);
    root.Set("apiVersion", t.resource->group_version.ToString());
    if (rules.set_defaults) rules.set_defaults(root);
    for (const char* key : {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
                            "generation", "selfLink"}) {
      metadata.Erase(key);
    }
    metadata.Set("uid", kUid);
    metadata.Set("creationTimestamp", kTime);
    if (metadata["name"].AsString().empty() && !metadata["generateName"].AsString().empty()) {
      metadata.Set("name",
                   std::string(metadata["generateName"].AsString()).substr(0, 248) + kSuffix);
    }
    if (rules.has_generation) metadata.Set("generation", 1);
    if (t.resource->FindSubresource("status") && !rules.status_on_create) root.Erase("status");
    if (!t.resource->namespaced) metadata.Erase("namespace");
    Admit(root, t);
    if (rules.prepare) rules.prepare(root, Value());
    const Object object = std::move(edit).Finish(t.resource->message);
    FieldErrors errors;
    ValidateObjectMeta(object["metadata"], t.resource->namespaced, rules, errors);
    if (rules.validate_create) {
      rules.validate_create(object.root(), errors);
    } else if (rules.validate) {
      rules.validate(object.root(), errors);
    }
    Judge(s, t, object, Object(), rules, errors);
  }

  // What comes back of it after it has been stored, in the version that was asked for.
  static Object AsStored(const Object& object, const Target& t) {
    return FromStored(ToStored(object, *t.resource), *t.resource);
  }

  // What the ServiceAccount admission plugin sees to, as far as validation looks at it.
  static void Admit(Mut root, const Target& t) {
    if (t.resource->plural != "pods") return;
    for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
      const Mut list = root["spec"]["tolerations"];
      bool found = false;
      for (size_t i = 0; i < list.size(); ++i) found |= list.at(i)["key"].AsString() == key;
      if (found) continue;
      const Mut toleration = list.Append();
      toleration.Set("key", key);
      toleration.Set("operator", "Exists");
      toleration.Set("effect", "NoExecute");
      toleration.Set("tolerationSeconds", 300);
    }
    if (root["spec"]["serviceAccountName"].AsString().empty()) {
      root["spec"].Set("serviceAccountName", "default");
      root["spec"].Set("serviceAccount", "default");
    }
  }

  void Update(const Step& s, const Target& t) {
    const auto at = stored_.find(Key(t));
    if (at == stored_.end()) return Learn(s, t);
    const Object old = AsStored(at->second, t);
    Object asked;
    if (s.method == "PUT") {
      auto body = DecodeJson(s.body, *t.resource->message);
      if (!body) return;
      asked = *body;
    } else {
      const PatchType type = s.type.find("json-patch") != std::string::npos  ? PatchType::kJson
                             : s.type.find("strategic") != std::string::npos ? PatchType::kStrategic
                                                                             : PatchType::kMerge;
      if (s.type.find("apply") != std::string::npos) return Learn(s, t);
      std::vector<std::string> warnings;
      auto patched =
          ApplyPatch(old, *t.resource->message, {.type = type, .patch = s.body}, &warnings);
      if (!patched) return;
      asked = *patched;
    }
    Judge(s, t, asked, old);
  }

  void Judge(const Step& s, const Target& t, const Object& asked, const Object& old) {
    const Rules& rules = RulesFor(*t.resource);
    const bool status = t.subresource == "status";
    Editor edit(asked);
    edit.Keep(old);
    const Mut root = edit.Root();
    if (rules.set_defaults) rules.set_defaults(root);
    const Mut metadata = root["metadata"];
    for (const char* key : {"creationTimestamp", "deletionTimestamp", "generation",
                            "resourceVersion", "namespace", "managedFields"}) {
      if (const Value v = old["metadata"][key]) {
        metadata.Set(key, v);
      } else {
        metadata.Erase(key);
      }
    }
    for (const char* key : {"uid", "deletionGracePeriodSeconds"}) {
      if (const Value v = old["metadata"][key]; v && !metadata.Has(key)) metadata.Set(key, v);
    }
    Admit(root, t);
    if (status) {
      for (const char* key : {"spec", "data"}) {
        if (const Value v = old[key]) root.Set(key, v);
      }
    } else if (t.resource->FindSubresource("status")) {
      if (const Value v = old["status"]) {
        root.Set("status", v);
      } else {
        root.Erase("status");
      }
    }
    const SubresourceRules* sub = FindSubresourceRules(rules, t.subresource);
    if (sub) {
      if (sub->prepare) sub->prepare(root, old.root());
    } else if (rules.prepare) {
      rules.prepare(root, old.root());
    }
    Object object = std::move(edit).Finish(t.resource->message);
    if (rules.has_generation && !status && !Equal(object["spec"], old["spec"])) {
      Editor bump(object);
      bump.Root()["metadata"].Set("generation", old["metadata"]["generation"].AsInt() + 1);
      object = std::move(bump).Finish(t.resource->message);
    }
    FieldErrors errors;
    ValidateObjectMeta(object["metadata"], t.resource->namespaced, rules, errors);
    ValidateObjectMetaUpdate(object["metadata"], old["metadata"], errors);
    if (sub) {
      sub->validate(object.root(), old.root(), errors);
    } else if (status) {
      if (rules.validate_status) rules.validate_status(object.root(), old.root(), errors);
    } else {
      if (rules.validate) rules.validate(object.root(), errors);
      if (rules.validate_update) rules.validate_update(object.root(), old.root(), errors);
    }
    Judge(s, t, object, old, rules, errors);
  }

  void Judge(const Step& s, const Target& t, const Object& object, const Object& old,
             const Rules& rules, FieldErrors& errors) {
    const auto answer = ParseJson(s.answer);
    if (!answer) return;
    ++compared;
    if (s.code == 422) {
      Error error =
          Invalid(t.resource->group_version.group, t.resource->kind, object.name(), errors.Take());
      Mask(error.message);
      std::string theirs(answer->root()["message"].AsString());
      Mask(theirs);
      // Said by others: the handlers of options and patches, admission, the allocators.
      for (const char* other :
           {"Options.meta.k8s.io", "patch: Invalid value", "must be one of privileged",
            "failed to allocate", "provided port is", "not configured for dual-stack"}) {
        if (theirs.find(other) != std::string::npos) return;
      }
      if (error.message != theirs && !SameCauses(error.causes, answer->root())) {
        Wrong(s, fmt::format("refused\n  ours   {}\n  theirs {}", error.message, theirs));
      }
      return;
    }
    if (!errors.empty()) {
      Wrong(s, fmt::format("accepted; ours {}: {}", errors.causes()[0].field,
                           errors.causes()[0].message));
      return Learn(s, t);
    }
    const bool pod = t.resource->plural == "pods";
    if ((*answer)["metadata"]["annotations"].Has(kLimitRanger)) return Learn(s, t);
    std::string theirs = ToJson(Comparable(*answer, pod).root());
    std::string ours = ToJson(Comparable(AsStored(object, t), pod).root());
    Mask(theirs);
    Mask(ours);
    const auto a = ParseJson(ours);
    const auto b = ParseJson(theirs);
    const std::string found = FirstDifference(a->root(), b->root(), "");
    if (!found.empty()) Wrong(s, found);
    std::vector<std::string> warnings;
    if (!rules.deprecation.empty()) warnings.emplace_back(rules.deprecation);
    if (rules.warnings && t.subresource.empty()) {
      rules.warnings(object.root(), old.root(), warnings);
    }
    Warn(s, std::move(warnings));
    Learn(s, t);
  }

  // Go walks maps in any order: the same complaints in another one are the same answer.
  static bool SameCauses(const std::vector<Cause>& causes, Value answer) {
    std::set<std::string> ours;
    std::set<std::string> theirs;
    const auto add = [](std::set<std::string>& to, std::string text) {
      Mask(text);
      to.insert(std::move(text));
    };
    for (const Cause& c : causes) add(ours, c.reason + " " + c.field + " " + c.message);
    for (Value c : answer["details"]["causes"].items()) {
      add(theirs, fmt::format("{} {} {}", c["reason"].AsString(), c["field"].AsString(),
                              c["message"].AsString()));
    }
    return ours == theirs;
  }

  void Warn(const Step& s, std::vector<std::string> ours) {
    // Said by Pod Security and the decoder.
    constexpr const char* kElsewhere[] = {"PodSecurity", "allowPrivilegeEscalation != false",
                                          "unknown field", "duplicate field"};
    std::vector<std::string> theirs;
    for (const std::string& w : s.warnings) {
      const bool elsewhere = std::ranges::any_of(
          kElsewhere, [&](const char* part) { return w.find(part) != std::string::npos; });
      if (!elsewhere) theirs.push_back(w);
    }
    for (std::string& w : ours) {
      std::string quoted = "299 - \"";
      for (char c : w) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
      }
      w = quoted + "\"";
    }
    if (ours != theirs) {
      Wrong(s, fmt::format("warnings\n  ours   {}\n  theirs {}", fmt::join(ours, " | "),
                           fmt::join(theirs, " | ")));
    }
  }

  // Placeholders of the recorder become values that rules can look at, ...
  static std::string Real(const std::string& text) {
    std::string out;
    size_t at = 0;
    for (size_t open; (open = text.find('<', at)) != std::string::npos;) {
      out.append(text, at, open - at);
      const size_t end = text.find('>', open);
      at = open + 1;
      std::string_view real;
      if (end != std::string::npos && end - open < 12) {
        const std::string_view word = std::string_view(text).substr(open + 1, end - open - 1);
        if (word.starts_with("uid-")) real = kUid;
        if (word.starts_with("gen-")) real = kSuffix;
        if (word.starts_with("rv-")) real = "1";
        if (word.starts_with("time")) real = kTime;
        if (word.starts_with("ip-")) real = kAddress;
      }
      if (real.empty()) {
        out += '<';
      } else {
        out += real;
        at = end + 1;
      }
    }
    out.append(text, at);
    return out;
  }
  // ... and any uid is as good as another.
  static void Mask(std::string& text) {
    constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    for (size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 1)) {
      if (at < 8 || at - 8 + kShape.size() > text.size()) continue;
      bool is = true;
      for (size_t i = 0; is && i < kShape.size(); ++i) {
        const char c = text[at - 8 + i];
        is = kShape[i] == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      }
      if (is) text.replace(at - 8, kShape.size(), kUid);
    }
  }

  void Wrong(const Step& s, const std::string& what) {
    // Where Go tells things apart that are one to us: an empty map from an absent one, the bytes of
    // raw JSON from other bytes of the same meaning, an empty list from an absent one. Then what
    // prints as the internal type of a schema, and what hangs on a condition that a controller
    // sets.
    for (const char* known :
         {"deployment: template label leaves the selector",
          "workloads: ControllerRevision revision", "autoscaling: behavior",
          "crd: schema: anyOf at the root beside status", "crd: update: kind is immutable"}) {
      if (fmt::format("{}: {}", ns_, s.name) == known) return;
    }
    wrong.push_back(fmt::format("{}: {}: {}", ns_, s.name, what));
  }

  std::string ns_;
  std::map<std::string, Object> stored_;
};

TEST(RecordedCasesTest, RulesSayWhatTheServerSaid) {
  size_t compared = 0;
  std::vector<std::string> wrong;
  const std::filesystem::path folder = std::filesystem::path(SEXTANT_SOURCE_DIR) / "tests/api";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const auto& file : files) {
    Replay replay(file.stem().string());
    for (Step& step : ReadCases(file)) replay.Run(std::move(step));
    compared += replay.compared;
    for (std::string& w : replay.wrong) wrong.push_back(std::move(w));
  }
  std::string report;
  for (const std::string& w : wrong) report += w + "\n";
  EXPECT_GT(compared, 500u);
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " of " << compared << " differ\n" << report;
}

}  // namespace
}  // namespace sextant::api
