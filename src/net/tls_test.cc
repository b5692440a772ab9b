#include "net/tls.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace sextant::net {
namespace {

const Time kNow{std::chrono::seconds(1'800'000'000)};

TEST(Digest, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // RFC 6455 section 1.3.
  EXPECT_EQ(Base64(Sha1("dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11")),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(Key, SignsAndVerifies) {
  for (KeyKind kind : {KeyKind::kEcP256, KeyKind::kRsa2048}) {
    const Key key = Key::Generate(kind);
    EXPECT_EQ(key.algorithm(), kind == KeyKind::kEcP256 ? "ES256" : "RS256");
    std::string signature = key.Sign("payload");
    EXPECT_EQ(signature.size(), kind == KeyKind::kEcP256 ? 64u : 256u);
    const Key pub = key.Public();
    EXPECT_FALSE(pub.is_private());
    EXPECT_TRUE(pub.Verify("payload", signature));
    EXPECT_FALSE(pub.Verify("payloae", signature));
    EXPECT_FALSE(Key::Generate(kind).Verify("payload", signature));
    signature[10] = static_cast<char>(signature[10] ^ 1);
    EXPECT_FALSE(pub.Verify("payload", signature));
    EXPECT_FALSE(pub.Verify("payload", ""));
    EXPECT_FALSE(pub.Verify("payload", std::string(64, '\0')));
  }
}

TEST(Key, GoesThroughPem) {
  for (KeyKind kind : {KeyKind::kEcP256, KeyKind::kRsa2048}) {
    const Key key = Key::Generate(kind);
    const auto again = Key::FromPem(key.PrivatePem());
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->is_private());
    EXPECT_EQ(again->KeyId(), key.KeyId());
    const auto pub = Key::FromPem("text before\n" + key.PublicPem());
    ASSERT_TRUE(pub);
    EXPECT_FALSE(pub->is_private());
    EXPECT_TRUE(pub->Verify("x", key.Sign("x")));
  }
  EXPECT_FALSE(Key::FromPem(""));
  EXPECT_FALSE(Key::FromPem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
}

TEST(Key, JwkHasTheNumbers) {
  const auto ec = Key::Generate().Jwk();
  ASSERT_EQ(ec.size(), 7u);
  EXPECT_EQ(ec[5].first, "x");
  EXPECT_EQ(ec[5].second.size(), 43u);
  const auto rsa = Key::Generate(KeyKind::kRsa2048).Jwk();
  EXPECT_EQ(rsa.back(), (std::pair<std::string, std::string>{"e", "AQAB"}));
}

TEST(Certificate, CarriesWhatTheSpecSays) {
  const Key ca_key = Key::Generate();
  const auto ca =
      IssueCertificate({.common_name = "ca", .is_ca = true}, ca_key, nullptr, ca_key, kNow);
  ASSERT_TRUE(ca);
  EXPECT_TRUE(ca->is_ca());
  EXPECT_TRUE(ca->IsSignedBy(*ca));
  const Key key = Key::Generate();
  const std::string long_name = "system:node:" + std::string(200, 'n');
  const auto cert = IssueCertificate({.common_name = long_name,
                                      .organizations = {"system:nodes", "b,CN=evil"},
                                      .dns_names = {"localhost", "a.b"},
                                      .ip_addresses = {"127.0.0.1", "::1"},
                                      .server_auth = true,
                                      .client_auth = true,
                                      .lifetime = std::chrono::hours(5)},
                                     key, &*ca, ca_key, kNow);
  ASSERT_TRUE(cert);
  const auto again = Certificate::FromPem(cert->ToPem());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->common_name(), long_name);
  EXPECT_EQ(again->organizations(), (std::vector<std::string>{"system:nodes", "b,CN=evil"}));
  EXPECT_EQ(again->dns_names(), (std::vector<std::string>{"localhost", "a.b"}));
  EXPECT_EQ(again->ip_addresses(), (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(again->not_after(), kNow + std::chrono::hours(5));
  EXPECT_LE(again->not_before(), kNow);
  EXPECT_FALSE(again->is_ca());
  EXPECT_TRUE(again->Matches(key));
  EXPECT_FALSE(again->Matches(ca_key));
  EXPECT_TRUE(again->IsSignedBy(*ca));
  EXPECT_EQ(again->fingerprint_sha256(), cert->fingerprint_sha256());
  EXPECT_TRUE(Key::FromPem(cert->ToPem())->Verify("x", key.Sign("x")));
}

TEST(Certificate, RefusesBadInput) {
  const Key key = Key::Generate();
  EXPECT_FALSE(
      IssueCertificate({.common_name = "x", .ip_addresses = {"1.2.3"}}, key, nullptr, key, kNow));
  EXPECT_FALSE(Certificate::FromPem("no certificate here"));
  EXPECT_FALSE(
      Certificate::FromPem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
}

}  // namespace
}  // namespace sextant::net
