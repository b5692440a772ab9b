#include "controllers/storage_protection.h"

#include <fmt/format.h>

#include <functional>

#include "api/pods.h"
#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr Gvr kAttributesClasses{"storage.k8s.io", "v1", "volumeattributesclasses"};

class Protection : public Reconciler {
 protected:
  Protection(Deps deps, std::string component, Gvr gvr, std::string_view finalizer)
      : Reconciler(deps, {.component = std::move(component)}),
        objects_(*this, gvr),
        finalizer_(finalizer) {
    Hear(objects_.cache(), [this](const Change& change) {
      if (change.after) Enqueue(change.name());
    });
  }

  virtual bool IsUsed(const Object& object) = 0;
  Writer& objects() { return objects_; }

  void Reconcile(const ObjectName& key, Done done) override {
    const auto join = JoinThen(std::move(done));
    const Object object = objects_.cache().Get(key);
    if (!object) return;
    size_t at = 0;
    const Value finalizers = object["metadata"]["finalizers"];
    while (at < finalizers.size() && finalizers.at(at).AsString() != finalizer_) ++at;
    const bool held = at < finalizers.size();
    if (held != IsDeleting(object) || (held && IsUsed(object))) return;
    Editor edit(object);
    Mut list = edit["metadata"]["finalizers"];
    if (held) {
      list.EraseAt(at);
    } else {
      list.Append().SetString(finalizer_);  // made before admission saw to it
    }
    objects_.Update(objects_.Finish(std::move(edit)), join->Piece());
  }

 private:
  Writer objects_;
  const std::string_view finalizer_;
};

// ---- claims ----

bool IsShutDown(const Object& pod) {
  const Value grace = pod["metadata"]["deletionGracePeriodSeconds"];
  return IsDeleting(pod) && grace && grace.AsInt() == 0;
}

// The claims that a Pod holds, by name: those of its own no longer than it runs.
std::vector<std::string> ClaimsOf(const Object& pod) {
  std::vector<std::string> names;
  for (Value volume : pod["spec"]["volumes"].items()) {
    if (volume["ephemeral"] && IsShutDown(pod)) continue;
    if (std::string name = api::ClaimOf(pod, volume); !name.empty())
      names.push_back(std::move(name));
  }
  return names;
}

class ClaimProtection : public Protection {
 public:
  explicit ClaimProtection(Deps deps)
      : Protection(deps, "pvc-protection-controller", client::kPersistentVolumeClaims,
                   "kubernetes.io/pvc-protection"),
        pods_(Use(client::kPods)) {
    pods_.AddIndex(kIndex, [](const Object& pod) {
      std::vector<std::string> keys;
      for (const std::string& name : ClaimsOf(pod)) keys.push_back(Key(pod.ns(), name));
      return keys;
    });
    Hear(pods_, [this](const Change& change) {
      if (change.added()) return;
      for (const std::string& name : ClaimsOf(change.before)) {
        Enqueue({std::string(change.before.ns()), name});
      }
    });
  }

 protected:
  bool IsUsed(const Object& claim) override {
    for (const Object& pod : pods_.ByIndex(kIndex, Key(claim.ns(), claim.name()))) {
      // No kubelet starts a Pod with a claim that is being deleted.
      if (!pod["spec"]["nodeName"].AsString().empty()) return true;
    }
    return false;
  }

 private:
  static constexpr const char* kIndex = "claims";
  static std::string Key(std::string_view ns, std::string_view name) {
    return fmt::format("{}/{}", ns, name);
  }
  client::Informer& pods_;
};

// ---- volumes ----

class VolumeProtection : public Protection {
 public:
  explicit VolumeProtection(Deps deps)
      : Protection(deps, "pv-protection-controller", client::kPersistentVolumes,
                   "kubernetes.io/pv-protection") {}

 protected:
  bool IsUsed(const Object& volume) override {
    return volume["status"]["phase"].AsString() == "Bound";
  }
};

// ---- classes of volume attributes ----

std::vector<std::string> ClassesOf(const Object& object) {
  std::vector<std::string> names;
  for (Value name : {object["spec"]["volumeAttributesClassName"],
                     object["status"]["currentVolumeAttributesClassName"],
                     object["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"]}) {
    if (!name.AsString().empty()) names.emplace_back(name.AsString());
  }
  return names;
}

class AttributesClassProtection : public Protection {
 public:
  explicit AttributesClassProtection(Deps deps)
      : Protection(deps, "volumeattributesclass-protection-controller", kAttributesClasses,
                   "kubernetes.io/vac-protection"),
        users_{&Use(client::kPersistentVolumeClaims), &Use(client::kPersistentVolumes)} {
    for (client::Informer* informer : users_) {
      informer->AddIndex(kIndex, ClassesOf);
      Hear(*informer, [this](const Change& change) {
        if (change.added()) return;
        for (std::string& name : ClassesOf(change.before)) Enqueue({"", std::move(name)});
      });
    }
  }

 protected:
  bool IsUsed(const Object& attributes) override {
    for (const client::Informer* informer : users_)
      if (!informer->ByIndex(kIndex, std::string(attributes.name())).empty()) return true;
    return false;
  }

 private:
  static constexpr const char* kIndex = "attributes-classes";
  const std::array<client::Informer*, 2> users_;
};

}  // namespace

std::unique_ptr<Controller> MakeClaimProtection(Deps deps) {
  return std::make_unique<ClaimProtection>(deps);
}
std::unique_ptr<Controller> MakeVolumeProtection(Deps deps) {
  return std::make_unique<VolumeProtection>(deps);
}
std::unique_ptr<Controller> MakeAttributesClassProtection(Deps deps) {
  return std::make_unique<AttributesClassProtection>(deps);
}

}  // namespace sextant::controllers
