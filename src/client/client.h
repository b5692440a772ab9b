// client::Client: the only way to act on a cluster (DESIGN, law 1).
//
// LocalClient works in this process, RemoteClient speaks HTTPS to any Kubernetes; the caller cannot
// tell which one it holds. Every call completes later, on the client's executor, never inline.
//
//   client.Get(kPods, {"default", "web"}, [](Result<api::Object> pod) { ... });
//
// Threads: call from any thread; completions run on executor(). Errors: the server's Status as an
// Error; what broke on the way has no reason and a code below 100 (kTransport).
// Source of the verbs: Kubernetes API concepts; parameter names are those of the query string.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/executor.h"
#include "base/status.h"

namespace sextant::client {

// Which collection: group, version and plural.
struct Gvr {
  std::string_view group;
  std::string_view version;
  std::string_view resource;
  bool operator==(const Gvr&) const = default;
};

inline constexpr Gvr kPods{"", "v1", "pods"};
inline constexpr Gvr kNodes{"", "v1", "nodes"};
inline constexpr Gvr kServices{"", "v1", "services"};
inline constexpr Gvr kEndpoints{"", "v1", "endpoints"};
inline constexpr Gvr kEndpointSlices{"discovery.k8s.io", "v1", "endpointslices"};
inline constexpr Gvr kPersistentVolumes{"", "v1", "persistentvolumes"};
inline constexpr Gvr kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims"};
inline constexpr Gvr kStorageClasses{"storage.k8s.io", "v1", "storageclasses"};
inline constexpr Gvr kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets"};
inline constexpr Gvr kNamespaces{"", "v1", "namespaces"};
inline constexpr Gvr kConfigMaps{"", "v1", "configmaps"};
inline constexpr Gvr kSecrets{"", "v1", "secrets"};
inline constexpr Gvr kServiceAccounts{"", "v1", "serviceaccounts"};
inline constexpr Gvr kCoreEvents{"", "v1", "events"};
inline constexpr Gvr kDeployments{"apps", "v1", "deployments"};
inline constexpr Gvr kReplicaSets{"apps", "v1", "replicasets"};
inline constexpr Gvr kDaemonSets{"apps", "v1", "daemonsets"};
inline constexpr Gvr kStatefulSets{"apps", "v1", "statefulsets"};
inline constexpr Gvr kControllerRevisions{"apps", "v1", "controllerrevisions"};
inline constexpr Gvr kJobs{"batch", "v1", "jobs"};
inline constexpr Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
inline constexpr Gvr kCustomResourceDefinitions{"apiextensions.k8s.io", "v1",
                                                "customresourcedefinitions"};
inline constexpr Gvr kGpuPools{"sextant.dev", "v1alpha1", "gpupools"};

constexpr int kTransport = 1;  // Error::code of a failure before any answer

struct ObjectName {
  std::string ns;  // "" for cluster-scoped
  std::string name;
  auto operator<=>(const ObjectName&) const = default;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
};
inline ObjectName NameOf(const api::Object& object) {
  return {std::string(object.ns()), std::string(object.name())};
}

struct ListOptions {
  std::string ns;  // "" for all namespaces
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  std::string continue_token;
  int64_t limit = 0;
};

struct WriteOptions {
  std::string field_manager;
  bool dry_run = false;
  bool force = false;       // apply only
  std::string subresource;  // "status", "scale", "binding", "eviction", ...
};

struct DeleteOptions {
  std::optional<int64_t> grace_period_s;
  std::string propagation;  // "", "Orphan", "Background", "Foreground"
  std::string uid;          // preconditions
  std::string resource_version;
};

enum class PatchType { kJson, kMerge, kStrategic, kApply };

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;  // start after this one
  bool bookmarks = true;
  bool send_initial_events = false;
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type;
  api::Object object;
};

// Destroying the handle ends the watch: nothing is called afterwards.
class WatchHandle {
 public:
  virtual ~WatchHandle() = default;
};

struct WatchCallbacks {
  std::function<void(std::vector<WatchEvent>)> on_events;
  // The stream ended: ok when the server closed it in good order, else the Status (410 Expired:
  // list again). Called at most once, last.
  std::function<void(Status)> on_end;
};

template <typename T>
using Callback = std::move_only_function<void(Result<T>)>;

struct List {
  std::vector<api::Object> items;
  std::string resource_version;
  std::string continue_token;
};

class Client {
 public:
  virtual ~Client() = default;
  virtual Loop& executor() = 0;

  virtual void Get(Gvr gvr, ObjectName name, Callback<api::Object> done) = 0;
  virtual void List(Gvr gvr, ListOptions options, Callback<struct List> done) = 0;
  virtual std::unique_ptr<WatchHandle> Watch(Gvr gvr, WatchOptions options,
                                             WatchCallbacks callbacks) = 0;
  // `name.name` is needed for subresources only; else it is taken from the object.
  virtual void Create(Gvr gvr, ObjectName name, api::Object object, WriteOptions options,
                      Callback<api::Object> done) = 0;
  virtual void Update(Gvr gvr, ObjectName name, api::Object object, WriteOptions options,
                      Callback<api::Object> done) = 0;
  virtual void Patch(Gvr gvr, ObjectName name, PatchType type, api::Object patch,
                     WriteOptions options, Callback<api::Object> done) = 0;
  // The deleted object, or a Status object, as the server answers.
  virtual void Delete(Gvr gvr, ObjectName name, DeleteOptions options,
                      Callback<api::Object> done) = 0;
  virtual void DeleteCollection(Gvr gvr, ListOptions which, DeleteOptions options,
                                Callback<api::Object> done) = 0;

  // Pod logs as one text (bounded to `limit_bytes`), for probes and the CLI.
  virtual void PodLog(ObjectName pod, std::string container, int64_t limit_bytes,
                      Callback<std::string> done) = 0;
  // A GET of a path outside the resources: "/version", "/readyz". The body as it came.
  virtual void GetRaw(std::string path, Callback<std::string> done) = 0;
};

}  // namespace sextant::client
