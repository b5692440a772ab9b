// ResourceQuota: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go (CheckRequest).
//
// The real one changes the quota's status first and stores the object after; here both are ordered
// in one turn of the core loop, over the quota as it was ordered last.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "api/managed_fields.h"
#include "api/quota.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Amounts;
using api::Object;
using api::Quantity;
using api::QuotaKind;
using api::Value;

constexpr const char* kQuotas = "resourcequotas";
constexpr std::string_view kManager = "kube-apiserver";

std::string Print(const Amounts& amounts, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const auto at = amounts.find(name);
    if (at != amounts.end()) parts.push_back(fmt::format("{}={}", name, at->second.ToString()));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

// What an update adds: never less than nothing, since only the controller gives back.
Amounts Increase(const Amounts& now, const Amounts& before) {
  Amounts more;
  for (const auto& [name, q] : now) {
    const auto at = before.find(name);
    Quantity by = at == before.end() ? q : q - at->second;
    if (by.Sign() > 0) more[name] = by;
  }
  return more;
}

// One write against the quotas of its namespace.
class Charge {
 public:
  Charge(const AdmissionRequest& request, Value object, QuotaKind kind)
      : kind_(std::move(kind)),
        object_(api::CopyOf(object)),
        old_(request.old ? api::CopyOf(request.old) : Object()),
        now_(request.view.now()),
        status_only_(request.op.subresource && request.op.subresource->name == "status"),
        refusal_(AdmissionForbidden(request, object, "")),
        schema_(request.op.registry->FindKindMessage({"", "v1"}, "ResourceQuota")) {
    usage_ = kind_.Usage(object, now_);
    if (old_) increase_ = Increase(usage_, kind_.Usage(old_.root(), now_));
    const auto quotas = request.view.Snapshot(kQuotas);
    for (const auto& entry : quotas->Range(request.op.info.ns, "", "", 0)) {
      keys_.push_back(entry->key);
    }
  }

  bool empty() const { return keys_.empty(); }

  Result<std::vector<store::Write>> Settle(const store::Store& store) const {
    std::vector<store::Write> writes;
    for (const store::Key& key : keys_) {
      const auto entry = store.Latest(key);
      if (!entry) continue;
      ASSIGN_OR_RETURN(const Object next, Charged(entry->object));
      if (!next) continue;
      writes.push_back({store::Write::Op::kUpdate, key, entry->mod_revision, next});
    }
    return writes;
  }

 private:
  std::unexpected<Error> Refuse(std::string_view why) const {
    Error error = refusal_;
    error.message += why;
    return Fail(std::move(error));
  }

  // The quota with the write entered; empty where it does not concern it.
  Result<Object> Charged(const Object& quota) const {
    const Amounts hard = api::ReadAmounts(quota["status"]["hard"]);
    const Amounts used = api::ReadAmounts(quota["status"]["used"]);
    std::vector<std::string> names;
    for (const auto& [name, q] : hard)
      if (kind_.Tracks(name)) names.push_back(name);
    if (names.empty() || !kind_.InScopes(quota.root(), object_.root())) return Object();
    const std::string missing = kind_.Missing(object_.root(), names);
    if (!missing.empty()) return Refuse(fmt::format("failed quota: {}: {}", quota.name(), missing));
    if (!std::ranges::all_of(names, [&](const auto& name) { return used.contains(name); })) {
      return Refuse(fmt::format("status unknown for quota: {}, resources: {}", quota.name(),
                                fmt::join(names, ",")));
    }
    // What did not count for the quota before counts in full.
    const bool grows = old_ && kind_.InScopes(quota.root(), old_.root());
    const Amounts& taken = grows ? increase_ : usage_;
    Amounts requested;
    for (const auto& [name, q] : taken)
      if (hard.contains(name) && !q.IsZero()) requested.emplace(name, q);
    if (requested.empty()) return Object();
    return Entered(quota, hard, used, requested);
  }

  Result<Object> Entered(const Object& quota, const Amounts& hard, Amounts used,
                         const Amounts& requested) const {
    const Amounts before = used;
    AddAmounts(used, requested);
    std::vector<std::string> exceeded;
    for (const auto& [name, q] : requested)
      if (used[name] > hard.at(name)) exceeded.push_back(name);
    if (!exceeded.empty() && !status_only_) {
      return Refuse(fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                                quota.name(), Print(requested, exceeded), Print(before, exceeded),
                                Print(hard, exceeded)));
    }
    api::Editor edit(quota);
    WriteAmounts(used, edit.Root()["status"]["used"]);
    const Object next = std::move(edit).Finish(schema_);
    return api::TrackUpdate({kManager, "status", "v1", now_}, *schema_, quota, next);
  }

  const QuotaKind kind_;
  const Object object_;
  const Object old_;
  const Time now_;
  const bool status_only_;
  const Error refusal_;  // without the reason
  const api::Message* const schema_;
  Amounts usage_;
  Amounts increase_;  // of an update
  std::vector<store::Key> keys_;
};

class ResourceQuotaAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "ResourceQuota"; }

  Settlement Settle(const AdmissionRequest& request, Value object) const override {
    const Operation& op = request.op;
    if (!op.resource->namespaced || op.info.ns.empty() || op.resource->virtual_review) return {};
    const auto quotas = request.view.Snapshot(kQuotas);
    if (quotas->Count(op.info.ns, "", "") == 0) return {};
    QuotaKind kind = QuotaKind::Of(*op.resource);
    const std::string_view sub = op.subresource ? op.subresource->name : std::string_view();
    if (!kind.Counted() || !kind.Handles(request.verb, sub, object, request.old)) return {};
    auto charge = std::make_shared<const Charge>(request, object, std::move(kind));
    return [charge](const store::Store& store) { return charge->Settle(store); };
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeResourceQuotaAdmission() {
  return std::make_unique<ResourceQuotaAdmission>();
}

}  // namespace sextant::server
