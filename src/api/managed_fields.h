// metadata.managedFields: who owns which field. Every write is recorded; server-side apply merges
// by it.
//
//   next = TrackUpdate({.manager = "kubectl-create", .api_version = "v1", .now = now},
//                      *message, Object(), next);
//   ManagerInfo helm{.manager = "helm", .api_version = "v1", .now = now};
//   ASSIGN_OR_RETURN(Object merged, ApplyFields(helm, force, *message, live, config));
//
// Source: apimachinery pkg/util/managedfields, sigs.k8s.io/structured-merge-diff/v6. Entries of
// other API versions of the kind are read as if they were of this one (their fields have the same
// names). Pure functions.
#pragma once

#include <string_view>

#include "api/document.h"
#include "api/schema.h"
#include "base/clock.h"
#include "base/status.h"

namespace sextant::api {

struct ManagerInfo {
  std::string_view manager;  // "" counts as "unknown"
  std::string_view subresource;
  std::string_view api_version;
  Time now;                  // zero: the entry bears no time, as those of scale (scalehandler.go)
  bool status_apart = true;  // status is written by its subresource only
  bool metadata_apart = false;  // ... which writes no metadata
};

// `after` with its managedFields brought up to date: what differs from `before` (empty on create)
// belongs to this manager from now on. Take the object before admission and the kind's own
// preparation change it: what they add belongs to nobody. Status belongs to writers of the status
// subresource only. Fields of an object that nobody tracks yet are tracked from creation on only.
Object TrackUpdate(const ManagerInfo& who, const Message& message, const Object& before,
                   const Object& after);

// Server-side apply: `config` laid over `live` (empty: a new object), without what this manager
// applied before and does not any more. `config` is the tree as it was sent, of the message's kind.
// Errors: 409 with one cause for each field that another manager owns, unless `force`; 400, 500 as
// Kubernetes. The result is canonical, with its managedFields; the same as `live` if nothing
// changes.
Result<Object> ApplyFields(const ManagerInfo& who, bool force, const Message& message,
                           const Object& live, Value config);

// Without metadata.managedFields.
Object WithoutManagedFields(const Object& object, const Message& message);

}  // namespace sextant::api
