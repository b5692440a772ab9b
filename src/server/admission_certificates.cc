// Certificates: plugin/pkg/admission/certificates (approval, signing), pkg/certauthorization. Which
// subjects a request may name is not looked at: nothing here signs.
#include <fmt/format.h>

#include "base/quote.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Value;

constexpr std::string_view kGroup = "certificates.k8s.io";
constexpr std::string_view kRequests = "certificatesigningrequests";

// "example.com/*" stands for all signers of a domain.
bool MayActAs(const AdmissionRequest& request, std::string_view verb, std::string_view signer) {
  RequestInfo info;
  info.is_resource = true;
  info.verb = verb;
  info.group = kGroup;
  info.resource = "signers";
  for (const std::string& name :
       {std::string(signer), fmt::format("{}/*", signer.substr(0, signer.find('/')))}) {
    info.name = name;
    if (request.authorizer.Authorize(request.op.user, info, request.view).allowed) return true;
  }
  return false;
}

// A right on the signer that the request names, besides the one on the subresource.
class SignerCheck : public AdmissionPlugin {
 public:
  SignerCheck(std::string_view name, std::string_view subresource, std::string_view verb)
      : name_(name), subresource_(subresource), verb_(verb) {}
  std::string_view name() const override { return name_; }

  Status Validate(const AdmissionRequest& request, Value object) const override {
    if (!request.On(kGroup, kRequests, subresource_) || request.verb != "update") return {};
    const Value status = object["status"];
    const Value before = request.old["status"];
    const auto same = [&](const char* field) {
      return (status[field].IsAbsent() && before[field].IsAbsent()) ||
             Equal(status[field], before[field]);
    };
    if (verb_ == "sign" && same("certificate") && same("conditions")) return {};
    const std::string_view signer = request.old["spec"]["signerName"].AsString();
    if (MayActAs(request, verb_, signer)) return {};
    return Fail(AdmissionForbidden(
        request, object,
        fmt::format("user not permitted to {} requests with signerName {}", verb_, Quote(signer))));
  }

 private:
  std::string_view name_;
  std::string_view subresource_;
  std::string_view verb_;
};

}  // namespace

void AddCertificateAdmission(AdmissionChain& chain) {
  chain.push_back(std::make_unique<SignerCheck>("CertificateApproval", "approval", "approve"));
  chain.push_back(std::make_unique<SignerCheck>("CertificateSigning", "status", "sign"));
}

}  // namespace sextant::server
