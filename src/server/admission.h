// Admission: what may change or refuse a write after authorization and defaults (kubeadm's
// plugins).
//
// Mutators run in order before validation, validators after it. Both are pure over a read-only
// picture of the cluster. Threads: workers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/rules.h"
#include "server/operation.h"
#include "store/store.h"

namespace sextant::server {

// The visible state of the cluster as a worker may read it: a consistent-enough set of snapshots.
class ClusterView {
 public:
  virtual ~ClusterView() = default;
  // nullptr where nothing of that resource is stored.
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
};

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
};

// An Error with this in retry_after_s: what is missing is about to come (the default account of a
// new namespace). The pipeline tries again for a while before it tells the client.
inline constexpr int kRetrySoon = -1;

// 403 as admission.NewForbidden words it: `pods "x" is forbidden: <why>`.
Error AdmissionForbidden(const AdmissionRequest& request, api::Value object, std::string_view why);

// The default set as kubeadm leaves it, in apiserver's order, as far as this server has them.
std::vector<std::unique_ptr<AdmissionPlugin>> DefaultAdmission();

}  // namespace sextant::server
