// Authentication: who asks? Client certificates (common name and organizations), ServiceAccount
// tokens, impersonation headers, anonymous. Threads: any; tokens are checked without locks over a
// view of the ServiceAccounts, Pods and Secrets they are bound to.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http.h"
#include "net/tls.h"
#include "server/operation.h"

namespace sextant::server {

class ClusterView;

struct TokenClaims {
  std::string ns;
  std::string service_account;
  std::string service_account_uid;
  std::string pod_name;  // bound to a Pod, or empty
  std::string pod_uid;
  std::string node_name;
  std::string secret_name;
  std::vector<std::string> audiences;
  Time issued{};
  Time expires{};
  std::string id;  // jti
};

// Signs and checks ServiceAccount tokens (JWT, ES256 or RS256 by the key) of one cluster.
// Immutable; any thread.
class TokenIssuer {
 public:
  virtual ~TokenIssuer() = default;
  virtual std::string Issue(const TokenClaims& claims) const = 0;
  // Signature, issuer and times; not whether the account still exists.
  virtual Result<TokenClaims> Verify(std::string_view token, Time now) const = 0;
  virtual std::string_view issuer() const = 0;  // "https://kubernetes.default.svc.cluster.local"
  // {"keys":[...]} for /openid/v1/jwks.
  virtual std::string Jwks() const = 0;
  // For /.well-known/openid-configuration; `jwks_uri` is where the keys are.
  virtual std::string Configuration(std::string_view jwks_uri) const = 0;
};
// `key_pem`: an EC P-256 or RSA private key.
Result<std::unique_ptr<TokenIssuer>> MakeTokenIssuer(std::string key_pem, std::string issuer);

class Authenticator {
 public:
  Authenticator(const TokenIssuer& tokens, const ClusterView& view)
      : tokens_(tokens), view_(view) {}

  // The user of a request; Unauthorized for a bad token. Without credentials: system:anonymous.
  Result<User> Authenticate(const net::Request& request) const;
  // The user that a token stands for: TokenReview asks too.
  Result<User> AuthenticateToken(std::string_view token, Time now,
                                 std::span<const std::string> audiences) const;
  const TokenIssuer& tokens() const { return tokens_; }

 private:
  const TokenIssuer& tokens_;
  const ClusterView& view_;
};

}  // namespace sextant::server
