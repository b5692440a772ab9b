// Admission: what may change or refuse a write after authorization and defaults (kubeadm's
// plugins).
//
// Mutators run in order before validation, validators after it. Both are pure over a read-only
// picture of the cluster. Threads: workers; a Settlement runs on the core loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/rules.h"
#include "server/authorizer.h"
#include "server/operation.h"
#include "store/store.h"

namespace sextant::server {

// The visible state of the cluster as a worker may read it: a consistent-enough set of snapshots.
class ClusterView {
 public:
  virtual ~ClusterView() = default;
  // Never null: of what is not stored there is an empty one.
  virtual std::shared_ptr<const store::Snapshot> Snapshot(std::string_view resource) const = 0;
  virtual Time now() const = 0;
  // The object, or an empty one.
  api::Object Get(std::string_view resource, std::string_view ns, std::string_view name) const;
};

struct AdmissionRequest {
  const Operation& op;
  std::string_view verb;  // create, update, delete (a patch is an update, or a create)
  api::Value old;         // absent on create
  const ClusterView& view;
  const Authorizer& authorizer;
  std::vector<std::string>& warnings;

  // Whether it is about this resource, or this subresource of it.
  bool On(std::string_view group, std::string_view plural, std::string_view subresource = "") const;
};

// What a write takes elsewhere (a quota's used amounts): worked out over what is ordered last,
// right before the commit. Refuses the write, or names the writes that go with it.
using Settlement = std::function<Result<std::vector<store::Write>>(const store::Store& store)>;

class AdmissionPlugin {
 public:
  virtual ~AdmissionPlugin() = default;
  virtual std::string_view name() const = 0;  // as in --enable-admission-plugins
  virtual Status Admit(const AdmissionRequest& request, api::Mut object) const {
    (void)request, (void)object;
    return {};
  }
  // After the kind's own preparation, before validation: gives out what only one object may have.
  virtual Status Allocate(const AdmissionRequest& request, api::Mut object) const {
    (void)request, (void)object;
    return {};
  }
  // `object` is absent for delete.
  virtual Status Validate(const AdmissionRequest& request, api::Value object) const {
    (void)request, (void)object;
    return {};
  }
  // After all validation, of creates and updates; null: nothing. May outlive the request.
  virtual Settlement Settle(const AdmissionRequest& request, api::Value object) const {
    (void)request, (void)object;
    return nullptr;
  }
};

using AdmissionChain = std::vector<std::unique_ptr<AdmissionPlugin>>;

// An Error with this in retry_after_s: what is missing is about to come (the default account of a
// new namespace). The pipeline tries again for a while before it tells the client.
inline constexpr int kRetrySoon = -1;

// 403 as admission.NewForbidden words it: `pods "x" is forbidden: <why>`.
Error AdmissionForbidden(const AdmissionRequest& request, api::Value object, std::string_view why);
// Whether NodeRestriction lets a kubelet give its Node this label.
bool KubeletMaySetLabel(std::string_view label);
// Several errors as one text, as apimachinery's Aggregate prints them: "[a, b]"; "" for none.
std::string Aggregate(const std::vector<std::string>& errors);

// The default set as kubeadm leaves it, in apiserver's order, as far as this server has them.
AdmissionChain DefaultAdmission();

}  // namespace sextant::server
