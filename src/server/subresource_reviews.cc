// Questions instead of objects: who am I, may I, whose token is this; and tokens for
// ServiceAccounts.
#include <fmt/format.h>

#include "api/json.h"
#include "base/quote.h"
#include "base/random.h"
#include "server/subresource_parts.h"
#include "server/write_steps.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr int64_t kDefaultTokenLifetime_s = 3600;
constexpr int64_t kMinTokenLifetime_s = 600;
constexpr int64_t kMaxTokenLifetime_s = int64_t{1} << 32;
// A Pod's projected token asks for 3607 s and lives a year, as --service-account-extend-token-
// expiration (on by default) has it.
constexpr int64_t kWarnOnlyLifetime_s = 3607;
constexpr int64_t kExtendedLifetime_s = 365 * 24 * 3600;

Outcome Answer(const Operation& op, Editor edit) {
  Outcome outcome;
  outcome.code = 201;
  outcome.message = op.subresource ? op.subresource->message : op.resource->message;
  outcome.object = std::move(edit).Finish(outcome.message);
  return outcome;
}

void SetStrings(Mut list, const std::vector<std::string>& values) {
  for (const std::string& value : values) list.Append().SetString(value);
}

void SetUser(Mut out, const User& user) {
  out.Set("username", user.name);
  if (!user.uid.empty()) out.Set("uid", user.uid);
  SetStrings(out["groups"], user.groups);
  for (const auto& [key, values] : user.extra) SetStrings(out["extra"][key], values);
}

User UserOf(Value spec) {
  User user;
  user.name = spec["user"].AsString();
  user.uid = spec["uid"].AsString();
  for (Value group : spec["groups"].items()) user.groups.emplace_back(group.AsString());
  for (auto [key, values] : spec["extra"].members()) {
    for (Value value : values.items()) user.extra[std::string(key)].emplace_back(value.AsString());
  }
  return user;
}

RequestInfo InfoOf(Value spec) {
  RequestInfo info;
  if (const Value asked = spec["resourceAttributes"]) {
    info.is_resource = true;
    info.verb = asked["verb"].AsString();
    info.group = asked["group"].AsString();
    info.version = asked["version"].AsString();
    info.ns = asked["namespace"].AsString();
    info.resource = asked["resource"].AsString();
    info.subresource = asked["subresource"].AsString();
    info.name = asked["name"].AsString();
  } else {
    info.verb = spec["nonResourceAttributes"]["verb"].AsString();
    info.path = spec["nonResourceAttributes"]["path"].AsString();
  }
  return info;
}

// "spec.resourceAttributes and nonResourceAttributes": exactly one of them.
void ValidateReviewSpec(Value spec, bool self, api::FieldErrors& errors) {
  const bool resource = static_cast<bool>(spec["resourceAttributes"]);
  const bool other = static_cast<bool>(spec["nonResourceAttributes"]);
  if (resource && other) {
    // Printed as Kubernetes' internal type: Go's names, both fields.
    const Value given = spec["nonResourceAttributes"];
    std::string printed = R"({"Path":)";
    api::WriteJsonString(given["path"].AsString(), printed);
    printed += R"(,"Verb":)";
    api::WriteJsonString(given["verb"].AsString(), printed);
    errors.InvalidRaw("spec.nonResourceAttributes", printed + "}",
                      "cannot be specified in combination with resourceAttributes");
  }
  if (!resource && !other) {
    errors.Invalid("spec.resourceAttributes", spec["resourceAttributes"],
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
  if (!self && spec["user"].AsString().empty() && spec["groups"].empty()) {
    errors.InvalidText("spec.user", "", "at least one of user or group must be specified");
  }
}

void CopyRule(Mut to, Value rule, std::string_view key) {
  for (Value item : rule[key].items()) to[key].Append().SetString(item.AsString());
}

}  // namespace

void ReviewAccess(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  if (auto fits = CheckAgainstUrl(op, op.body.root()); !fits) {
    return done(Fail(std::move(fits).error()));
  }
  const Value spec = op.body["spec"];
  const bool self = op.resource->plural.starts_with("self");
  api::FieldErrors errors;
  ValidateReviewSpec(spec, self, errors);
  const bool local = op.resource->namespaced;
  if (local && spec["resourceAttributes"]["namespace"].AsString() != op.info.ns) {
    errors.Invalid("spec.resourceAttributes.namespace", spec["resourceAttributes"]["namespace"],
                   "must match metadata.namespace");
  }
  if (!errors.empty()) {
    return done(Fail(Invalid(op.resource->group_version.group, "", "", errors.Take())));
  }
  const User user = self ? op.user : UserOf(spec);
  const Decision decision = call.pipeline.authorizer().Authorize(user, InfoOf(spec), call.pipeline);
  Editor edit(op.body);
  if (local) edit.Root()["metadata"].Set("namespace", op.info.ns);
  Mut status = edit.Root()["status"];
  status.SetMap();
  status.Set("allowed", decision.allowed);
  if (!decision.reason.empty()) status.Set("reason", decision.reason);
  done(Answer(op, std::move(edit)));
}

void ReviewRules(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  const std::string_view ns = op.body["spec"]["namespace"].AsString();
  if (ns.empty()) return done(Fail(BadRequest("no namespace on request")));
  const UserRules held = call.pipeline.authorizer().RulesFor(op.user, ns, call.pipeline);
  Editor edit;
  Mut root = edit.Root();
  root.Set("kind", op.resource->kind);
  root.Set("apiVersion", op.resource->group_version.ToString());
  Mut status = root["status"];
  status["resourceRules"].SetList();
  status["nonResourceRules"].SetList();
  status.Set("incomplete", false);
  for (Value rule : held.rules) {
    if (!rule["resources"].empty()) {
      Mut out = status["resourceRules"].Append();
      for (const char* key : {"verbs", "apiGroups", "resources", "resourceNames"}) {
        CopyRule(out, rule, key);
      }
    }
    if (!rule["nonResourceURLs"].empty()) {
      Mut out = status["nonResourceRules"].Append();
      for (const char* key : {"verbs", "nonResourceURLs"}) CopyRule(out, rule, key);
    }
  }
  done(Answer(op, std::move(edit)));
}

void ReviewSelf(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  Editor edit(op.body);
  edit.Root()["metadata"].Set("creationTimestamp", FormatTime(call.pipeline.now()));
  edit.Root()["status"].SetMap();
  SetUser(edit.Root()["status"]["userInfo"], op.user);
  done(Answer(op, std::move(edit)));
}

void ReviewToken(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  const Value spec = op.body["spec"];
  if (spec["token"].AsString().empty()) {
    return done(Fail(BadRequest("token is required for TokenReview in authentication")));
  }
  std::vector<std::string> audiences;
  for (Value audience : spec["audiences"].items()) audiences.emplace_back(audience.AsString());
  auto user = call.authenticator.AuthenticateToken(spec["token"].AsString(), call.pipeline.now(),
                                                   audiences);
  if (audiences.empty()) audiences.emplace_back(call.authenticator.tokens().issuer());
  Editor edit(op.body);
  Mut status = edit.Root()["status"];
  status.SetMap();
  if (user) {
    status.Set("authenticated", true);
    SetUser(status["user"], *user);
    SetStrings(status["audiences"], audiences);
  } else {
    status["user"].SetMap();
    status.Set("error", call.authenticator.WhyNobody(spec["token"].AsString(), call.pipeline.now(),
                                                     audiences));
  }
  done(Answer(op, std::move(edit)));
}

namespace {

// Ties the token to the Pod or Secret that the request names.
Status BindToken(const SubresourceCall& call, Value ref, TokenClaims& claims) {
  if (!ref) return {};
  const std::string kind(ref["kind"].AsString());
  const std::string name(ref["name"].AsString());
  const bool pod = kind == "Pod" && ref["apiVersion"].AsString() == "v1";
  const bool secret = kind == "Secret" && ref["apiVersion"].AsString() == "v1";
  if (!pod && !secret) {
    const auto gv = api::GroupVersion::Of(ref["apiVersion"].AsString());
    return Fail(BadRequest(fmt::format("cannot bind token to object of type {}/{}, Kind={}",
                                       gv.group, gv.version, kind)));
  }
  const std::string_view resource = pod ? "pods" : "secrets";
  const Object object = call.pipeline.Get(resource, call.op.info.ns, name);
  if (!object) return Fail(NotFound({"", std::string(resource)}, name));
  const std::string_view uid = ref["uid"].AsString();
  if (!uid.empty() && uid != object.uid()) {
    return Fail(Conflict({"", kind}, name,
                         fmt::format("the UID in the bound object reference ({}) does not match "
                                     "the UID in record. The object might have been deleted and "
                                     "then recreated",
                                     uid)));
  }
  if (secret) {
    claims.secret_name = name;
    return {};
  }
  if (object["spec"]["serviceAccountName"].AsString() != claims.service_account) {
    return Fail(BadRequest(
        fmt::format("cannot bind token for serviceaccount {} to pod running with different "
                    "serviceaccount name.",
                    Quote(claims.service_account))));
  }
  claims.pod_name = name;
  claims.pod_uid = object.uid();
  claims.node_name = object["spec"]["nodeName"].AsString();
  return {};
}

}  // namespace

void CreateToken(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  thread_local Random random(RandomSeed());
  const Object account = call.pipeline.Get(op.resource->plural, op.info.ns, op.info.name);
  if (!account) return done(Fail(NotFound(QualifiedResource(op), op.info.name)));
  const Value spec = op.body["spec"];
  const int64_t lifetime = spec["expirationSeconds"].AsInt(kDefaultTokenLifetime_s);
  api::FieldErrors errors;
  if (lifetime < kMinTokenLifetime_s) {
    errors.Invalid("spec.expirationSeconds", spec["expirationSeconds"],
                   "may not specify a duration less than 10 minutes");
  } else if (lifetime > kMaxTokenLifetime_s) {
    errors.Invalid("spec.expirationSeconds", spec["expirationSeconds"],
                   "may not specify a duration larger than 2^32 seconds");
  }
  if (!errors.empty()) {
    return done(
        Fail(Invalid("authentication.k8s.io", op.subresource->kind.kind, "", errors.Take())));
  }
  TokenClaims claims;
  claims.ns = op.info.ns;
  claims.service_account = op.info.name;
  claims.service_account_uid = account.uid();
  for (Value audience : spec["audiences"].items()) {
    claims.audiences.emplace_back(audience.AsString());
  }
  if (claims.audiences.empty()) {
    claims.audiences.emplace_back(call.authenticator.tokens().issuer());
  }
  if (auto bound = BindToken(call, spec["boundObjectRef"], claims); !bound) {
    return done(Fail(std::move(bound).error()));
  }
  claims.issued = call.pipeline.now();
  const bool extend = !claims.pod_name.empty() && lifetime == kWarnOnlyLifetime_s;
  claims.expires = claims.issued + std::chrono::seconds(extend ? kExtendedLifetime_s : lifetime);
  claims.id = NewUuid(random);
  Editor edit(op.body);
  Mut root = edit.Root();
  root["metadata"].Set("name", op.info.name);
  root["metadata"].Set("namespace", op.info.ns);
  root["metadata"].Set("uid", account.uid());
  root["metadata"].Set("creationTimestamp", FormatTime(claims.issued));
  if (spec["audiences"].empty()) SetStrings(root["spec"]["audiences"], claims.audiences);
  root["spec"].Set("expirationSeconds", lifetime);
  if (!spec["boundObjectRef"]) root["spec"]["boundObjectRef"].SetNull();
  root["status"].Set("token", call.authenticator.tokens().Issue(claims));
  root["status"].Set("expirationTimestamp",
                     FormatTime(claims.issued + std::chrono::seconds(lifetime)));
  done(Answer(op, std::move(edit)));
}

}  // namespace sextant::server
