// Words about objects that controllers share: owners, Pods from templates, conditions, hashes.
//
// Source: k8s.io/kubernetes pkg/controller/controller_utils.go, controller_ref_manager.go,
// pkg/api/v1/pod/util.go at v1.36.3. Pure functions unless said otherwise.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/conditions.h"
#include "api/document.h"
#include "api/selector.h"
#include "base/clock.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

bool IsDeleting(const api::Object& object);
Time CreatedAt(const api::Object& object);

// ---- owners ----

// The ownerReference with controller: true; absent if there is none.
api::Value ControllerOf(const api::Object& object);
bool IsControlledBy(const api::Object& object, const api::Object& owner);
// Appends a reference to `owner` as the controller.
void AddControllerRef(api::Mut metadata, const api::Object& owner);

// Who may be `owner`'s: what it controls, and what nobody controls in its namespace.
void AddOwnerIndex(client::Informer& children);
std::vector<api::Object> Candidates(client::Informer& children, const api::Object& owner);
std::vector<api::Object> ControlledBy(client::Informer& children, const api::Object& owner);

// Candidates that are `owner`'s by controller reference and selector. Orphans that match are
// adopted, own ones that no longer match are released; while that is under way `changed` is true
// and the caller should look again later.
struct Claimed {
  std::vector<api::Object> owned;
  bool changed = false;
};
Claimed Claim(const api::Object& owner, const api::LabelSelector& selector, Writer& children,
              const std::shared_ptr<Join>& join);

// Calls `enqueue` with the names of the owners (of `kind`) that a child's change concerns: its
// controller before and after, or for an orphan all whose spec.selector matches.
void ForOwners(const Change& child, client::Informer& owners, std::string_view kind,
               const std::function<void(const ObjectName&)>& enqueue);

// ---- Pods ----

bool IsPodReady(const api::Object& pod);
bool IsPodTerminal(const api::Object& pod);  // Succeeded or Failed
bool IsPodActive(const api::Object& pod);    // neither terminal nor deleting
// When a ready Pod is available: ready since min_ready_s. nullopt: not ready.
std::optional<Time> PodAvailableAt(const api::Object& pod, int64_t min_ready_s);
bool IsPodAvailable(const api::Object& pod, int64_t min_ready_s, Time now);

// A Pod by spec.template of `owner`: labels, annotations, finalizers, spec, generateName and
// controller reference.
void FillPodFromTemplate(api::Mut pod, api::Value pod_template, const api::Object& owner);

// Creates and deletes with the events that every Pod controller tells: SuccessfulCreate and so on.
void CreatePod(Writer& pods, client::EventRecorder& events, const api::Object& owner,
               api::Object pod, client::Callback<api::Object> done);
void DeletePod(Writer& pods, client::EventRecorder& events, const api::Object& owner,
               const api::Object& pod, client::Callback<api::Object> done);
// Creates all of them in batches of 1, 2, 4 ... that end with the first one in which a create
// failed, so that a quota is not run against hundreds of times.
void CreatePods(Writer& pods, client::EventRecorder& events, const api::Object& owner,
                std::vector<api::Object> wanted, const std::shared_ptr<Join>& join);

// ---- conditions and numbers ----

using api::Condition;
using api::FindCondition;
using api::IsConditionTrue;
using api::PutCondition;
using api::RemoveCondition;
using api::SetCondition;

// An IntOrString of `total`; absent: `otherwise`.
int64_t Scaled(api::Value int_or_percent, int64_t total, bool round_up, int64_t otherwise);

// Whether a write was refused because its namespace is being deleted.
bool IsNamespaceEnding(const Error& error);

// ---- templates ----

// Hash of spec.template's JSON (FNV-1a, 32 bits) and status.collisionCount, as a name suffix in the
// alphabet of generated names. Not the number that Go's hash of its dump gives: equal across
// Sextant's runs, not across implementations.
std::string TemplateHash(const api::Object& owner);
inline constexpr const char* kCollisionCount = "collisionCount";
// Another template has the same hash: the next one will be different.
void CountCollision(Writer& owners, const api::Object& owner, client::Callback<api::Object> done);

}  // namespace sextant::controllers
