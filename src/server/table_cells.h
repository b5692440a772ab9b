// Cells of tables: small functions that turn one object into one text or number, in the words of
// kubectl's printers (k8s.io/kubernetes pkg/printers/internalversion/printers.go). Pure; any
// thread.
#pragma once

#include <string>

#include "api/document.h"
#include "base/clock.h"

namespace sextant::server::cells {

// A text at a fixed path; "" where there is none.
template <const char* kPath>
void Text(api::Value object, Time, api::Mut out) {
  out.SetString(object.Path(kPath).AsString());
}
template <const char* kPath>
void TextOrNone(api::Value object, Time, api::Mut out) {
  out.SetString(object.Path(kPath).AsString("<none>"));
}
template <const char* kPath>
void Number(api::Value object, Time, api::Mut out) {
  out.SetInt(object.Path(kPath).AsInt());
}
template <const char* kPath>
void Flag(api::Value object, Time, api::Mut out) {
  out.SetBool(object.Path(kPath).AsBool());
}
// How many members or items.
template <const char* kPath>
void Count(api::Value object, Time, api::Mut out) {
  out.SetInt(static_cast<int64_t>(object.Path(kPath).size()));
}

// "5d" since a time; "<unknown>" where there is none.
std::string Since(api::Value time, Time now);
template <const char* kPath>
void Age(api::Value object, Time now, api::Mut out) {
  out.SetString(Since(object.Path(kPath), now));
}

std::string SelectorText(api::Value selector);  // "a=b,c in (d)"; "<none>"
std::string MapText(api::Value map);            // "a=b,c=d"; "<none>"
std::string ContainersText(api::Value containers, std::string_view member);  // "a,b"

// pods
void PodReady(api::Value, Time, api::Mut);
void PodStatus(api::Value, Time, api::Mut);
void PodConditions(api::Value, api::Mut row);
void PodRestarts(api::Value, Time, api::Mut);
void PodIp(api::Value, Time, api::Mut);
void PodReadinessGates(api::Value, Time, api::Mut);
// nodes
void NodeStatus(api::Value, Time, api::Mut);
void NodeRoles(api::Value, Time, api::Mut);
void NodeInternalIp(api::Value, Time, api::Mut);
void NodeExternalIp(api::Value, Time, api::Mut);
void NodeOs(api::Value, Time, api::Mut);
void NodeKernel(api::Value, Time, api::Mut);
void NodeRuntime(api::Value, Time, api::Mut);
// workloads
void TemplateContainers(api::Value, Time, api::Mut);
void TemplateImages(api::Value, Time, api::Mut);
void TemplateSelector(api::Value, Time, api::Mut);
void ReadyOfWanted(api::Value, Time, api::Mut);
void DaemonNodeSelector(api::Value, Time, api::Mut);
void JobStatus(api::Value, Time, api::Mut);
void JobCompletions(api::Value, Time, api::Mut);
void JobDuration(api::Value, Time, api::Mut);
void CronSuspend(api::Value, Time, api::Mut);
void CronSelector(api::Value, Time, api::Mut);
void CronTimezone(api::Value, Time, api::Mut);
void CronActive(api::Value, Time, api::Mut);
void CronLast(api::Value, Time, api::Mut);
void CronContainers(api::Value, Time, api::Mut);
void CronImages(api::Value, Time, api::Mut);
void RevisionController(api::Value, Time, api::Mut);
void BudgetMin(api::Value, Time, api::Mut);
void BudgetMax(api::Value, Time, api::Mut);
// services
void ServiceClusterIp(api::Value, Time, api::Mut);
void ServiceExternalIp(api::Value, Time, api::Mut);
void ServicePorts(api::Value, Time, api::Mut);
void ServiceSelector(api::Value, Time, api::Mut);
void EndpointsText(api::Value, Time, api::Mut);
void SlicePorts(api::Value, Time, api::Mut);
void SliceEndpoints(api::Value, Time, api::Mut);
// events
void EventLastSeen(api::Value, Time, api::Mut);
void EventFirstSeen(api::Value, Time, api::Mut);
void EventObject(api::Value, Time, api::Mut);
void EventSource(api::Value, Time, api::Mut);
void EventMessage(api::Value, Time, api::Mut);
void EventCount(api::Value, Time, api::Mut);
void EventText(api::Value object, Time now, api::Mut out);
// volumes
void AccessModes(api::Value, Time, api::Mut);
void VolumeClaim(api::Value, Time, api::Mut);
void ClaimCapacity(api::Value, Time, api::Mut);
void ClaimStatus(api::Value, Time, api::Mut);
void VolumeMode(api::Value, Time, api::Mut);
void AttributesClass(api::Value, Time, api::Mut);
void VolumeStatus(api::Value, Time, api::Mut);
// the rest
void ConfigMapData(api::Value, Time, api::Mut);
void CsiTokens(api::Value, Time, api::Mut);
void CsiModes(api::Value, Time, api::Mut);
void QuotaRequests(api::Value, Time, api::Mut);
void QuotaLimits(api::Value, Time, api::Mut);
void BindingRole(api::Value, Time, api::Mut);
void BindingUsers(api::Value, Time, api::Mut);
void BindingGroups(api::Value, Time, api::Mut);
void BindingAccounts(api::Value, Time, api::Mut);
void PodTemplateContainers(api::Value, Time, api::Mut);
void PodTemplateImages(api::Value, Time, api::Mut);
void PodTemplateLabels(api::Value, Time, api::Mut);
void StorageName(api::Value, Time, api::Mut);
void StorageReclaim(api::Value, Time, api::Mut);
void StorageBinding(api::Value, Time, api::Mut);
void PoolReady(api::Value, Time, api::Mut);
void PoolReason(api::Value, Time, api::Mut);
void PoolNodes(api::Value, Time, api::Mut);

}  // namespace sextant::server::cells
