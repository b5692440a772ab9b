#include "server/authenticator.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/quote.h"
#include "net/http.h"
#include "server/admission.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kMaxTokenBytes = 16 << 10;

int64_t UnixSeconds(Time t) {
  return std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count();
}
Time FromUnix(int64_t s) { return Time(std::chrono::seconds(s)); }

std::string Json(const Object& object) { return api::ToJson(object.root()); }

// JWT (RFC 7519) with the claims of pkg/serviceaccount/claims.go.
class JwtIssuer : public TokenIssuer {
 public:
  JwtIssuer(net::Key key, std::string issuer)
      : key_(std::move(key)), key_id_(key_.KeyId()), issuer_(std::move(issuer)) {}

  std::string_view issuer() const override { return issuer_; }

  std::string Issue(const TokenClaims& claims) const override {
    Editor header;
    header.Root().Set("alg", key_.algorithm());
    header.Root().Set("kid", key_id_);
    const std::string signing_input = fmt::format(
        "{}.{}", Base64Url(Json(std::move(header).Finish())), Base64Url(Json(Payload(claims))));
    return fmt::format("{}.{}", signing_input, Base64Url(key_.Sign(signing_input)));
  }

  Result<TokenClaims> Verify(std::string_view token, Time now) const override {
    if (token.size() > kMaxTokenBytes) return Fail(Unauthorized());
    const size_t first = token.find('.');
    const size_t last = token.rfind('.');
    if (first == std::string_view::npos || last == first) return Fail(Unauthorized());
    auto header = Part(token.substr(0, first));
    auto payload = Part(token.substr(first + 1, last - first - 1));
    auto signature = Base64UrlDecode(token.substr(last + 1));
    if (!header || !payload || !signature) return Fail(Unauthorized());
    if ((*header)["alg"].AsString() != key_.algorithm()) return Fail(Unauthorized());
    if (!key_.Verify(token.substr(0, last), *signature)) return Fail(Unauthorized());
    return Read(payload->root(), now);
  }

  std::string Jwks() const override {
    Editor edit;
    Mut key = edit.Root()["keys"].Append();
    for (const auto& [name, value] : key_.Jwk()) key.Set(name, value);
    return Json(std::move(edit).Finish());
  }

  std::string Configuration(std::string_view jwks_uri) const override {
    Editor edit;
    Mut root = edit.Root();
    root.Set("issuer", issuer_);
    root.Set("jwks_uri", jwks_uri);
    root["response_types_supported"].Append().SetString("id_token");
    root["subject_types_supported"].Append().SetString("public");
    root["id_token_signing_alg_values_supported"].Append().SetString(key_.algorithm());
    return Json(std::move(edit).Finish());
  }

 private:
  static Result<Object> Part(std::string_view text) {
    ASSIGN_OR_RETURN(const std::string json, Base64UrlDecode(text));
    return api::ParseJson(json);
  }

  Object Payload(const TokenClaims& claims) const {
    Editor edit;
    Mut root = edit.Root();
    for (const std::string& audience : claims.audiences) root["aud"].Append().SetString(audience);
    root.Set("exp", UnixSeconds(claims.expires));
    root.Set("iat", UnixSeconds(claims.issued));
    root.Set("iss", issuer_);
    root.Set("jti", claims.id);
    Mut kubernetes = root["kubernetes.io"];
    kubernetes.Set("namespace", claims.ns);
    if (!claims.node_name.empty()) kubernetes["node"].Set("name", claims.node_name);
    if (!claims.pod_name.empty()) {
      kubernetes["pod"].Set("name", claims.pod_name);
      kubernetes["pod"].Set("uid", claims.pod_uid);
    }
    if (!claims.secret_name.empty()) kubernetes["secret"].Set("name", claims.secret_name);
    kubernetes["serviceaccount"].Set("name", claims.service_account);
    kubernetes["serviceaccount"].Set("uid", claims.service_account_uid);
    root.Set("nbf", UnixSeconds(claims.issued));
    root.Set("sub",
             fmt::format("{}{}:{}", kServiceAccountPrefix, claims.ns, claims.service_account));
    return std::move(edit).Finish();
  }

  Result<TokenClaims> Read(Value payload, Time now) const {
    if (payload["iss"].AsString() != issuer_) return Fail(Unauthorized());
    TokenClaims claims;
    claims.expires = FromUnix(payload["exp"].AsInt());
    claims.issued = FromUnix(payload["iat"].AsInt());
    if (now >= claims.expires || now < FromUnix(payload["nbf"].AsInt())) {
      return Fail(Unauthorized());
    }
    for (Value audience : payload["aud"].items()) {
      claims.audiences.emplace_back(audience.AsString());
    }
    claims.id = payload["jti"].AsString();
    const Value kubernetes = payload["kubernetes.io"];
    claims.ns = kubernetes["namespace"].AsString();
    claims.service_account = kubernetes["serviceaccount"]["name"].AsString();
    claims.service_account_uid = kubernetes["serviceaccount"]["uid"].AsString();
    claims.pod_name = kubernetes["pod"]["name"].AsString();
    claims.pod_uid = kubernetes["pod"]["uid"].AsString();
    claims.node_name = kubernetes["node"]["name"].AsString();
    claims.secret_name = kubernetes["secret"]["name"].AsString();
    if (claims.ns.empty() || claims.service_account.empty()) return Fail(Unauthorized());
    return claims;
  }

  const net::Key key_;
  const std::string key_id_;
  const std::string issuer_;
};

User ServiceAccountUser(const TokenClaims& claims) {
  User user;
  user.name = fmt::format("{}{}:{}", kServiceAccountPrefix, claims.ns, claims.service_account);
  user.uid = claims.service_account_uid;
  user.groups = {std::string(kServiceAccountGroups),
                 fmt::format("{}:{}", kServiceAccountGroups, claims.ns),
                 std::string(kAuthenticated)};
  if (!claims.id.empty()) {
    user.extra["authentication.kubernetes.io/credential-id"] = {"JTI=" + claims.id};
  }
  if (!claims.node_name.empty()) {
    user.extra["authentication.kubernetes.io/node-name"] = {claims.node_name};
  }
  if (!claims.pod_name.empty()) {
    user.extra["authentication.kubernetes.io/pod-name"] = {claims.pod_name};
    user.extra["authentication.kubernetes.io/pod-uid"] = {claims.pod_uid};
  }
  return user;
}

}  // namespace

bool User::InGroup(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<std::unique_ptr<TokenIssuer>> MakeTokenIssuer(std::string key_pem, std::string issuer) {
  ASSIGN_OR_RETURN(net::Key key, net::Key::FromPem(key_pem));
  if (!key.is_private()) return Fail(InternalError("the token signing key is not a private key"));
  return std::make_unique<JwtIssuer>(std::move(key), std::move(issuer));
}

Result<User> Authenticator::AuthenticateToken(std::string_view token, Time now,
                                              std::span<const std::string> audiences) const {
  ASSIGN_OR_RETURN(const TokenClaims claims, tokens_.Verify(token, now));
  const auto wanted = [&](const std::string& audience) {
    if (audiences.empty()) return audience == tokens_.issuer();
    return std::find(audiences.begin(), audiences.end(), audience) != audiences.end();
  };
  if (std::none_of(claims.audiences.begin(), claims.audiences.end(), wanted)) {
    return Fail(Unauthorized());
  }
  // The account, and what the token is bound to, must still be there.
  if (view_.Get("serviceaccounts", claims.ns, claims.service_account).uid() !=
      claims.service_account_uid) {
    return Fail(Unauthorized());
  }
  if (!claims.pod_name.empty() &&
      view_.Get("pods", claims.ns, claims.pod_name).uid() != claims.pod_uid) {
    return Fail(Unauthorized());
  }
  if (!claims.secret_name.empty() && !view_.Get("secrets", claims.ns, claims.secret_name)) {
    return Fail(Unauthorized());
  }
  return ServiceAccountUser(claims);
}

Result<User> Authenticator::Authenticate(const net::Request& request) const {
  if (request.peer && request.peer->client_cert) {
    User user;
    user.name = request.peer->client_cert->common_name;
    user.groups = request.peer->client_cert->organizations;
    user.groups.emplace_back(kAuthenticated);
    user.extra["authentication.kubernetes.io/credential-id"] = {
        "X509SHA256=" + request.peer->client_cert->fingerprint_sha256};
    return user;
  }
  const std::string_view authorization = request.headers.Get("authorization");
  // A certificate that does not verify is a bad credential, unless another one is given.
  if (request.peer && !request.peer->client_cert_error.empty() && authorization.empty()) {
    return Fail(Unauthorized());
  }
  constexpr std::string_view kBearer = "bearer ";
  if (authorization.size() > kBearer.size() &&
      EqualsIgnoreCase(authorization.substr(0, kBearer.size()), kBearer)) {
    return AuthenticateToken(authorization.substr(kBearer.size()), view_.now(), {});
  }
  // exec from a browser-like client: the token rides in the WebSocket's protocols.
  constexpr std::string_view kProtocolToken = "base64url.bearer.authorization.k8s.io.";
  for (const std::string& protocol : request.WebSocketProtocols()) {
    if (!protocol.starts_with(kProtocolToken)) continue;
    ASSIGN_OR_RETURN(const std::string token,
                     Base64UrlDecode(std::string_view(protocol).substr(kProtocolToken.size())));
    return AuthenticateToken(token, view_.now(), {});
  }
  if (!authorization.empty()) return Fail(Unauthorized());
  User anonymous;
  anonymous.name = kAnonymous;
  anonymous.groups = {std::string(kUnauthenticated)};
  return anonymous;
}

}  // namespace sextant::server
