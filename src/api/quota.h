// What objects count against the ResourceQuotas of their namespace.
//
//   const QuotaKind& kind = QuotaKind::Of(*resource);
//   if (kind.Tracks("requests.nvidia.com/gpu") && kind.InScopes(quota, pod))
//     AddAmounts(used, kind.Usage(pod, now));
//
// Every kind counts by number, as "count/deployments.apps"; Pods, Services, claims of storage and
// of devices count for more, and only Pods and claims of storage can be told apart by scopes.
// Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core, k8s.io/apiserver pkg/quota/v1/generic.
// Left out: devices of a ResourceClaim do not count as the extended resource of their class.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/amounts.h"
#include "api/document.h"
#include "api/schema.h"
#include "base/clock.h"

namespace sextant::api {

class QuotaKind {
 public:
  QuotaKind(std::string_view group, std::string_view plural);
  static QuotaKind Of(const Resource& resource) {
    return {resource.group_version.group, resource.plural};
  }

  // Virtual kinds and events never count.
  bool Counted() const { return counted_; }
  // Whether objects of the kind count for `name`, a key of a quota's spec.hard.
  bool Tracks(std::string_view name) const;
  // What one object takes; names that no quota has are among them.
  Amounts Usage(Value object, Time now) const;
  // Whether the object is one of those that the quota's scopes are about.
  bool InScopes(Value quota, Value object) const;
  // The resources of `names` that the object must name and does not, as "must specify ..."; else
  // "".
  std::string Missing(Value object, const std::vector<std::string>& names) const;
  // Whether a write may change what the object takes. `old` is absent on create.
  bool Handles(std::string_view verb, std::string_view subresource, Value object, Value old) const;

 private:
  struct Rules;
  static const Rules* FindRules(std::string_view group, std::string_view plural);

  std::string count_;     // "count/pods"
  std::string own_name_;  // "secrets", for the few that have one; else empty
  bool counted_ = true;
  const Rules* rules_ = nullptr;
};

}  // namespace sextant::api
