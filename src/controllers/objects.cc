#include "controllers/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/json.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr const char* kOwnerIndex = "controllers/owner";

std::string OrphansOf(std::string_view ns) { return "orphans/" + std::string(ns); }

std::vector<std::string> OwnerKeys(const Object& object) {
  const Value owner = ControllerOf(object);
  if (owner) return {std::string(owner["uid"].AsString())};
  return {OrphansOf(object.ns())};
}

void Adopt(const Object& owner, const Object& child, Writer& children,
           const std::shared_ptr<Join>& join) {
  Editor edit;
  AddControllerRef(edit["metadata"], owner);
  edit["metadata"].Set("uid", child.uid());
  children.Patch(child, client::PatchType::kStrategic, std::move(edit).Finish(), join->Piece());
}

void Release(const Object& owner, const Object& child, Writer& children,
             const std::shared_ptr<Join>& join) {
  Editor edit;
  Mut reference = edit["metadata"]["ownerReferences"].Append();
  reference.Set("$patch", "delete");
  reference.Set("uid", owner.uid());
  edit["metadata"].Set("uid", child.uid());
  children.Patch(child, client::PatchType::kStrategic, std::move(edit).Finish(), join->Piece());
}

}  // namespace

bool IsDeleting(const Object& object) {
  return static_cast<bool>(object["metadata"]["deletionTimestamp"]);
}

Time CreatedAt(const Object& object) {
  return ParseTime(object["metadata"]["creationTimestamp"].AsString()).value_or(Time{});
}

Value ControllerOf(const Object& object) {
  for (Value owner : object["metadata"]["ownerReferences"].items())
    if (owner["controller"].AsBool()) return owner;
  return {};
}

bool IsControlledBy(const Object& object, const Object& owner) {
  return ControllerOf(object)["uid"].AsString() == owner.uid() && !owner.uid().empty();
}

void AddControllerRef(Mut metadata, const Object& owner) {
  Mut reference = metadata["ownerReferences"].Append();
  reference.Set("apiVersion", owner.api_version());
  reference.Set("kind", owner.kind());
  reference.Set("name", owner.name());
  reference.Set("uid", owner.uid());
  reference.Set("controller", true);
  reference.Set("blockOwnerDeletion", true);
}

void AddOwnerIndex(client::Informer& children) { children.AddIndex(kOwnerIndex, OwnerKeys); }

std::vector<Object> ControlledBy(client::Informer& children, const Object& owner) {
  return children.ByIndex(kOwnerIndex, std::string(owner.uid()));
}

std::vector<Object> Candidates(client::Informer& children, const Object& owner) {
  std::vector<Object> all = ControlledBy(children, owner);
  for (Object& orphan : children.ByIndex(kOwnerIndex, OrphansOf(owner.ns())))
    all.push_back(std::move(orphan));
  return all;
}

Claimed Claim(const Object& owner, const api::LabelSelector& selector, Writer& children,
              const std::shared_ptr<Join>& join) {
  Claimed claimed;
  for (Object& child : Candidates(children.cache(), owner)) {
    const bool matches = selector.Matches(child["metadata"]["labels"]);
    if (ControllerOf(child)) {
      if (matches) {
        claimed.owned.push_back(std::move(child));
      } else if (!IsDeleting(owner)) {
        Release(owner, child, children, join);
        claimed.changed = true;
      }
    } else if (matches && !IsDeleting(owner) && !IsDeleting(child)) {
      Adopt(owner, child, children, join);
      claimed.changed = true;
    }
  }
  return claimed;
}

void ForOwners(const Change& child, client::Informer& owners, std::string_view kind,
               const std::function<void(const ObjectName&)>& enqueue) {
  const auto tell = [&](const Object& object) {
    const Value reference = ControllerOf(object);
    if (!reference || reference["kind"].AsString() != kind) return;
    const ObjectName name{std::string(object.ns()), std::string(reference["name"].AsString())};
    if (owners.Get(name).uid() == reference["uid"].AsString()) enqueue(name);
  };
  if (child.before) tell(child.before);
  if (!child.after) return;
  const Value now = ControllerOf(child.after);
  if (now) {
    const Value before = ControllerOf(child.before);
    if (!child.before || before["uid"].AsString() != now["uid"].AsString()) {
      tell(child.after);
    }
    return;
  }
  if (IsDeleting(child.after)) return;
  for (const Object& owner : owners.List(child.after.ns())) {
    const auto selector = api::LabelSelector::From(owner["spec"]["selector"]);
    if (selector && selector->Matches(child.after["metadata"]["labels"])) enqueue(NameOf(owner));
  }
}

bool IsPodReady(const Object& pod) { return IsConditionTrue(pod["status"]["conditions"], "Ready"); }

bool IsPodTerminal(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return phase == "Succeeded" || phase == "Failed";
}

bool IsPodActive(const Object& pod) { return !IsPodTerminal(pod) && !IsDeleting(pod); }

std::optional<Time> PodAvailableAt(const Object& pod, int64_t min_ready_s) {
  if (!IsPodReady(pod)) return {};
  if (min_ready_s == 0) return Time{};
  const Value ready = FindCondition(pod["status"]["conditions"], "Ready");
  const auto since = ParseTime(ready["lastTransitionTime"].AsString());
  if (!since) return {};
  return *since + std::chrono::seconds(min_ready_s);
}

bool IsPodAvailable(const Object& pod, int64_t min_ready_s, Time now) {
  const auto at = PodAvailableAt(pod, min_ready_s);
  return at && *at <= now;
}

void FillPodFromTemplate(Mut pod, Value pod_template, const Object& owner) {
  pod.Set("apiVersion", "v1");
  pod.Set("kind", "Pod");
  const Value from = pod_template["metadata"];
  Mut metadata = pod["metadata"];
  metadata.Set("namespace", owner.ns());
  metadata.Set("generateName", fmt::format("{}-", owner.name()));
  for (const char* key : {"labels", "annotations", "finalizers"})
    if (from[key]) metadata.Set(key, from[key]);
  AddControllerRef(metadata, owner);
  pod.Set("spec", pod_template["spec"]);
}

void CreatePod(Writer& pods, client::EventRecorder& events, const Object& owner, Object pod,
               client::Callback<Object> done) {
  pods.Create(std::move(pod), [&events, owner,
                               done = std::move(done)](Result<Object> made) mutable {
    if (made) {
      events.Normal(owner, "SuccessfulCreate", fmt::format("Created pod: {}", made->name()));
      return done(std::move(made));
    }
    // A namespace that ends takes no Pods, and its owner goes with it.
    if (IsNamespaceEnding(made.error())) return done(owner);
    events.Warning(owner, "FailedCreate", fmt::format("Error creating: {}", made.error().message));
    done(std::move(made));
  });
}

void DeletePod(Writer& pods, client::EventRecorder& events, const Object& owner, const Object& pod,
               client::Callback<Object> done) {
  pods.Delete(pod, [&events, owner, name = std::string(pod.name()),
                    done = std::move(done)](Result<Object> gone) mutable {
    if (gone) {
      events.Normal(owner, "SuccessfulDelete", fmt::format("Deleted pod: {}", name));
    } else {
      events.Warning(owner, "FailedDelete",
                     fmt::format("Error deleting: {}", gone.error().message));
    }
    done(std::move(gone));
  });
}

namespace {

struct SlowStart {
  Writer& pods;
  client::EventRecorder& events;
  Object owner;
  std::vector<Object> wanted;
  size_t next = 0;
  size_t batch = 1;
  std::shared_ptr<Join> whole;
};

void StartBatch(std::shared_ptr<SlowStart> state) {
  if (state->next >= state->wanted.size()) return;
  const size_t end = std::min(state->wanted.size(), state->next + state->batch);
  state->batch *= 2;
  // The state is kept by the callbacks of its writes: it goes when the Writer drops them.
  const auto batch = std::make_shared<size_t>(end - state->next);
  const auto failed = std::make_shared<bool>(false);
  while (state->next < end) {
    CreatePod(state->pods, state->events, state->owner, std::move(state->wanted[state->next++]),
              [state, batch, failed](Result<Object> made) {
                if (!made) {
                  *failed = true;
                  state->whole->Failed(std::move(made).error());
                }
                if (--*batch == 0 && !*failed) StartBatch(state);
              });
  }
}

}  // namespace

void CreatePods(Writer& pods, client::EventRecorder& events, const Object& owner,
                std::vector<Object> wanted, const std::shared_ptr<Join>& join) {
  StartBatch(
      std::make_shared<SlowStart>(SlowStart{pods, events, owner, std::move(wanted), 0, 1, join}));
}

int64_t Scaled(Value value, int64_t total, bool round_up, int64_t otherwise) {
  if (!value) return otherwise;
  if (!value.IsString()) return value.AsInt();
  const std::string_view text = value.AsString();
  int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  const int64_t product = percent * total;
  return round_up ? (product + 99) / 100 : product / 100;
}

bool IsNamespaceEnding(const Error& error) {
  return std::ranges::any_of(
      error.causes, [](const Cause& cause) { return cause.reason == "NamespaceTerminating"; });
}

std::string TemplateHash(const Object& owner) {
  constexpr uint32_t kOffset = 2166136261U;
  constexpr uint32_t kPrime = 16777619U;
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string text = api::ToJson(owner["spec"]["template"]);
  const Value collisions = owner["status"][kCollisionCount];
  if (!collisions.IsAbsent()) text += fmt::format("#{}", collisions.AsInt());
  uint32_t hash = kOffset;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
  std::string out;
  for (const char digit : fmt::format("{}", hash)) {
    out += kAlphabet[static_cast<uint8_t>(digit) % kAlphabet.size()];
  }
  return out;
}

void CountCollision(Writer& owners, const Object& owner, client::Callback<Object> done) {
  Editor edit(owner);
  edit["status"].Set(kCollisionCount, owner["status"][kCollisionCount].AsInt() + 1);
  owners.UpdateStatus(owners.Finish(std::move(edit)), std::move(done));
}

}  // namespace sextant::controllers
