#include "controllers/controllers.h"

#include <algorithm>

#include "controllers/cronjob.h"
#include "controllers/daemonset.h"
#include "controllers/deployment.h"
#include "controllers/disruption.h"
#include "controllers/garbage_collector.h"
#include "controllers/job.h"
#include "controllers/local_path.h"
#include "controllers/namespace_deletion.h"
#include "controllers/namespace_objects.h"
#include "controllers/node_lifecycle.h"
#include "controllers/pod_gc.h"
#include "controllers/replicaset.h"
#include "controllers/resource_quota.h"
#include "controllers/roles.h"
#include "controllers/services.h"
#include "controllers/statefulset.h"
#include "controllers/storage_protection.h"
#include "controllers/taint_eviction.h"
#include "controllers/volume_binder.h"

namespace sextant::controllers {
namespace {

template <typename T>
std::unique_ptr<Controller> Make(Deps deps, const ControllersOptions&) {
  return std::make_unique<T>(deps);
}

struct Row {
  std::string_view name;
  std::string_view account;
  std::unique_ptr<Controller> (*make)(Deps deps, const ControllersOptions& options);
};

constexpr Row kRows[] = {
    {"serviceaccount", "service-account-controller",
     [](Deps deps, const ControllersOptions&) { return MakeServiceAccountController(deps); }},
    {"root-ca-certificate-publisher", "root-ca-cert-publisher",
     [](Deps deps, const ControllersOptions& options) {
       return MakeRootCaPublisher(deps, options.ca_pem);
     }},
    {"nodelifecycle", "node-controller", Make<NodeLifecycleController>},
    {"taint-eviction", "node-controller", Make<TaintEvictionController>},
    {"pod-garbage-collector", "pod-garbage-collector", Make<PodGcController>},
    {"daemonset", "daemon-set-controller", Make<DaemonSetController>},
    {"replicaset", "replicaset-controller", Make<ReplicaSetController>},
    {"deployment", "deployment-controller", Make<DeploymentController>},
    {"statefulset", "statefulset-controller", Make<StatefulSetController>},
    {"job", "job-controller", Make<JobController>},
    {"cronjob", "cronjob-controller", Make<CronJobController>},
    {"ttl-after-finished", "ttl-after-finished-controller", Make<TtlAfterFinishedController>},
    {"endpointslice-controller", "endpointslice-controller",
     [](Deps deps, const ControllersOptions&) { return MakeEndpointSliceController(deps); }},
    {"endpoints", "endpoint-controller",
     [](Deps deps, const ControllersOptions&) { return MakeEndpointsController(deps); }},
    {"disruption", "disruption-controller", Make<DisruptionController>},
    {"persistentvolume-binder-controller", "persistent-volume-binder", Make<VolumeBinder>},
    {"persistentvolumeclaim-protection-controller", "pvc-protection-controller",
     [](Deps deps, const ControllersOptions&) { return MakeClaimProtection(deps); }},
    {"persistentvolume-protection-controller", "pv-protection-controller",
     [](Deps deps, const ControllersOptions&) { return MakeVolumeProtection(deps); }},
    // Not one of kube-controller-manager's: it makes volumes as that one's own provisioners would.
    {"local-path-provisioner", "persistent-volume-binder", Make<LocalPathProvisioner>},
    {"clusterrole-aggregation", "clusterrole-aggregation-controller", Make<ClusterRoleAggregation>},
    {"volumeattributesclass-protection-controller", "volumeattributesclass-protection-controller",
     [](Deps deps, const ControllersOptions&) { return MakeAttributesClassProtection(deps); }},
    {"resourcequota", "resourcequota-controller", Make<ResourceQuotaController>},
    {"namespace", "namespace-controller", Make<NamespaceController>},
    {"garbage-collector-controller", "generic-garbage-collector", Make<GarbageCollector>},
};

}  // namespace

Controllers::Controllers(ControllersOptions options)
    : options_(std::move(options)), informers_(options_.client_for(kManagerUser)) {
  if (!options_.registries) {
    // Not owned: the built-in tables live as long as the program.
    options_.registries = [] {
      using Pointer = std::shared_ptr<const api::Registry>;
      return Pointer(Pointer(), &api::Registry::Builtin());
    };
  }
  collections_ = std::make_unique<Collections>(informers_, options_.registries);
  for (const Row& row : kRows) {
    const auto& without = options_.without;
    if (std::find(without.begin(), without.end(), row.name) != without.end()) continue;
    client::Client& client = options_.client_for(AccountUser(row.account));
    controllers_.push_back(row.make({client, informers_, *collections_}, options_));
  }
}

Controllers::~Controllers() = default;

void Controllers::Start() {
  for (const auto& controller : controllers_) controller->Start();
}

}  // namespace sextant::controllers
