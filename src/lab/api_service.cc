#include "lab/api_service.h"

#include <fmt/format.h>

#include "api/json.h"
#include "base/check.h"
#include "lab/address_plan.h"

namespace sextant::lab {
namespace {

using api::Editor;
using api::Object;

constexpr char kManager[] = "kube-apiserver";

struct Wanted {
  client::Gvr gvr;
  Object object;
  std::vector<std::string_view> kept;  // the fields that are corrected
};

Object Parsed(std::string_view json) {
  auto object = api::ParseJson(json);
  CHECK(object.has_value());
  return *std::move(object);
}

std::vector<Wanted> WantedFor(const net::Endpoint& at) {
  std::vector<Wanted> wanted;
  wanted.push_back({client::kServices,
                    Parsed(fmt::format(R"({{
      "kind": "Service", "apiVersion": "v1",
      "metadata": {{"name": "kubernetes", "namespace": "default",
                    "labels": {{"component": "apiserver", "provider": "kubernetes"}}}},
      "spec": {{"type": "ClusterIP", "clusterIP": "10.96.0.1", "ipFamilyPolicy": "SingleStack",
                "sessionAffinity": "None",
                "ports": [{{"name": "https", "protocol": "TCP", "port": 443,
                            "targetPort": {}}}]}}}})",
                                       at.port)),
                    {}});
  wanted.push_back({client::kEndpoints,
                    Parsed(fmt::format(R"({{
      "kind": "Endpoints", "apiVersion": "v1",
      "metadata": {{"name": "kubernetes", "namespace": "default",
                    "labels": {{"endpointslice.kubernetes.io/skip-mirror": "true"}}}},
      "subsets": [{{"addresses": [{{"ip": "{}"}}],
                    "ports": [{{"name": "https", "port": {}, "protocol": "TCP"}}]}}]}})",
                                       at.address, at.port)),
                    {"subsets"}});
  const bool v6 = at.address.find(':') != std::string::npos;
  wanted.push_back({client::kEndpointSlices,
                    Parsed(fmt::format(R"({{
      "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
      "metadata": {{"name": "kubernetes", "namespace": "default",
                    "labels": {{"kubernetes.io/service-name": "kubernetes"}}}},
      "addressType": "{}",
      "endpoints": [{{"addresses": ["{}"], "conditions": {{"ready": true}}}}],
      "ports": [{{"name": "https", "port": {}, "protocol": "TCP"}}]}})",
                                       v6 ? "IPv6" : "IPv4", at.address, at.port)),
                    {"endpoints", "ports"}});
  return wanted;
}

// One after another; lives by the callbacks that hold it.
class Publishing : public std::enable_shared_from_this<Publishing> {
 public:
  Publishing(client::Client& client, std::vector<Wanted> wanted,
             std::move_only_function<void(Status)> done)
      : client_(client), wanted_(std::move(wanted)), done_(std::move(done)) {}

  void Next() {
    if (next_ == wanted_.size()) return done_({});
    const Wanted& wanted = wanted_[next_++];
    client_.Get(wanted.gvr, NameOf(wanted),
                [self = shared_from_this(), &wanted](Result<Object> found) {
                  self->OnFound(wanted, std::move(found));
                });
  }

 private:
  static client::ObjectName NameOf(const Wanted& wanted) {
    return {std::string(wanted.object.ns()), std::string(wanted.object.name())};
  }

  void OnFound(const Wanted& wanted, Result<Object> found) {
    auto written = [self = shared_from_this()](Result<Object> result) {
      if (!result) return self->done_(Fail(std::move(result).error()));
      self->Next();
    };
    if (!found) {
      if (!found.error().Is("NotFound")) return written(std::move(found));
      return client_.Create(wanted.gvr, {std::string(wanted.object.ns()), ""}, wanted.object,
                            {.field_manager = kManager}, std::move(written));
    }
    Editor edit(*found);
    bool changed = false;
    for (std::string_view field : wanted.kept) {
      const api::Value value = wanted.object[field];
      if (api::Equal((*found)[field], value)) continue;
      edit.Root()[field].Set(value);
      changed = true;
    }
    if (!changed) return Next();
    client_.Update(wanted.gvr, NameOf(wanted), std::move(edit).Finish(),
                   {.field_manager = kManager}, std::move(written));
  }

  client::Client& client_;
  const std::vector<Wanted> wanted_;
  std::move_only_function<void(Status)> done_;
  size_t next_ = 0;
};

}  // namespace

net::Endpoint ApiServerEndpoint(const net::Endpoint& listens) {
  net::Endpoint at = listens;
  const std::string& address = listens.address;
  if (address.starts_with("127.") || address == "::1" || address == "0.0.0.0" || address == "::") {
    at.address = AddressPlan::NodeIp(0);
  }
  return at;
}

void PublishApiServer(client::Client& client, const net::Endpoint& at,
                      std::move_only_function<void(Status)> done) {
  std::make_shared<Publishing>(client, WantedFor(at), std::move(done))->Next();
}

}  // namespace sextant::lab
