// ControllerRevisions: the templates that a DaemonSet or StatefulSet has had.
//
// Source: k8s.io/kubernetes pkg/controller/daemon/update.go, pkg/controller/history.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controllers/objects.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

// On Pods, and on the revisions of DaemonSets.
inline constexpr const char* kRevisionHashLabel = "controller-revision-hash";

struct History {
  api::Object current;
  std::vector<api::Object> old;  // by revision

  // What Pods of the current template carry in kRevisionHashLabel.
  std::string hash() const;
};

// What Pods of this revision carry in kRevisionHashLabel: its hash, or for StatefulSets its name.
std::string PodHashOf(const api::Object& revision);

// Finds the revision of `owner`'s template, or makes it, with the highest number of all. A name
// that is taken by another template counts status.collisionCount up through `owners`. `then` is
// called with the outcome unless something failed or is still under way (the key comes again).
// `hash_is_name`: Pods carry the revision's whole name, as those of a StatefulSet do.
void FindHistory(Writer& revisions, Writer& owners, const api::Object& owner, bool hash_is_name,
                 const std::shared_ptr<Join>& join, std::function<void(History)> then);

// Deletes the oldest of `old` beyond `keep` whose hash is not in `live`.
void TrimHistory(Writer& revisions, const History& history, int64_t keep,
                 const std::vector<std::string>& live, const std::shared_ptr<Join>& join);

}  // namespace sextant::controllers
