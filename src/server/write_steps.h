// The steps of a write that need no store: what the object becomes between the request and the
// commit. Pure over immutable objects and a read-only view; run on workers, possibly more than once
// for one request.
//
// Order, as in apiserver: defaults, mutating admission, system metadata, the kind's own
// preparation, managed fields, validation, validating admission.
#pragma once

#include <memory>
#include <vector>

#include "api/managed_fields.h"
#include "api/rules.h"
#include "base/random.h"
#include "server/admission.h"
#include "server/operation.h"

namespace sextant::server {

struct WriteContext {
  const ClusterView& view;
  const AdmissionChain& admission;
  const Authorizer& authorizer;
};

// Who writes, for managed fields.
api::ManagerInfo FieldManagerOf(const Operation& op, const std::string& api_version, Time now);

// What a client asked for, checked against the URL: namespace and name agree. On create an empty
// namespace is filled in.
Status CheckAgainstUrl(const Operation& op, api::Value object);

// The object to store for a create. `name` is generated if need be.
Result<api::Object> PrepareCreate(const Operation& op, const api::Object& asked,
                                  const WriteContext& context, std::vector<std::string>& warnings);

// The object to store instead of `current`, given what was asked (the body of a PUT, or the result
// of a patch). Subresource "status" changes status only. The result may equal `current`.
Result<api::Object> PrepareUpdate(const Operation& op, const api::Object& asked,
                                  const api::Object& current, const WriteContext& context,
                                  std::vector<std::string>& warnings);

// What has to be settled with the commit of `object`, which one of the above has made.
std::vector<Settlement> Settlements(const Operation& op, std::string_view verb, api::Value old,
                                    api::Value object, const WriteContext& context);

// Admission's word on what is sent to a subresource that is no view of the object: a binding, a
// token, an eviction. May change it.
Status AdmitSubresource(Operation& op, const WriteContext& context);

// The object is another one than was meant.
Error UidConflict(const Operation& op, std::string_view asked, std::string_view current);

// The resourceVersion and uid that a PUT names, against what stands there.
Status CheckUpdatePreconditions(const Operation& op, const api::Object& asked,
                                const api::Object& current, bool unconditional_allowed);

// True when an update leaves nothing that keeps an object whose deletion was asked for.
bool DeletesDuringUpdate(const api::Rules& rules, api::Value next, api::Value current);

// What DELETE does to an object.
struct DeletePlan {
  enum class Kind { kNothing, kMark, kRemove } kind = Kind::kNothing;
  api::Object object;  // kMark: what to store; kRemove: the last state; kNothing: current
  int code = 200;
};
struct DeleteRequest {
  std::optional<int64_t> grace_s;
  std::string propagation;  // resolved from propagationPolicy and orphanDependents
  std::string uid;          // preconditions
  std::string resource_version;
  bool explicit_cascade = false;  // orphanDependents=false was given
};
// From DeleteOptions in the body, else from the query; the body's take the place of the query's in
// op.options.
Result<DeleteRequest> ReadDeleteOptions(Operation& op);
Result<DeletePlan> PlanDelete(const Operation& op, const DeleteRequest& request,
                              const api::Object& current, const WriteContext& context);

}  // namespace sextant::server
