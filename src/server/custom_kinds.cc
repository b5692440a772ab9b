#include "server/custom_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "api/lists.h"
#include "api/managed_fields.h"
#include "api/rules_crd.h"
#include "base/log.h"
#include "base/quote.h"

namespace sextant::server {
namespace {

using api::CustomKind;
using api::CustomVersion;
using api::Mut;
using api::Object;
using api::Value;
using KindPtr = std::shared_ptr<const CustomKind>;

constexpr std::string_view kGroup = "apiextensions.k8s.io";
constexpr std::string_view kPlural = "customresourcedefinitions";
constexpr std::string_view kStorage = "customresourcedefinitions.apiextensions.k8s.io";
constexpr std::string_view kManager = "kube-apiserver";
// Objects with finalizers are looked at again.
constexpr Duration kLookAgain = std::chrono::seconds(1);

// --- the registry --------------------------------------------------------------------------------

class Extended : public api::Registry {
 public:
  Extended(std::shared_ptr<const api::Registry> base, std::vector<KindPtr> kinds)
      : base_(std::move(base)), kinds_(std::move(kinds)) {
    std::vector<const CustomVersion*> custom;
    for (const KindPtr& kind : kinds_)
      for (const CustomVersion* version : kind->versions())
        if (version->served) custom.push_back(version);
    std::ranges::sort(custom, [](const CustomVersion* a, const CustomVersion* b) {
      const api::GroupVersion& x = a->group_version;
      const api::GroupVersion& y = b->group_version;
      if (x.group != y.group) return x.group < y.group;
      if (x.version != y.version) return api::VersionComesFirst(x.version, y.version);
      return a->plural < b->plural;
    });
    resources_.assign(base_->resources().begin(), base_->resources().end());
    for (const CustomVersion* version : custom) {
      resources_.push_back(version);
      by_plural_.emplace(Key(version->group_version, version->plural), version);
      by_kind_.emplace(Key(version->group_version, version->kind), version);
    }
  }

  std::span<const api::Resource* const> resources() const override { return resources_; }
  const api::Resource* Find(api::GroupVersion gv, std::string_view plural) const override {
    if (const api::Resource* known = base_->Find(gv, plural)) return known;
    return Look(by_plural_, Key(gv, plural));
  }
  const api::Resource* FindKind(api::GroupVersion gv, std::string_view kind) const override {
    if (const api::Resource* known = base_->FindKind(gv, kind)) return known;
    return Look(by_kind_, Key(gv, kind));
  }
  const api::Message* FindMessage(std::string_view name) const override {
    return base_->FindMessage(name);
  }
  const api::Message* FindKindMessage(api::GroupVersion gv, std::string_view kind) const override {
    if (const api::Message* known = base_->FindKindMessage(gv, kind)) return known;
    const api::Resource* custom = Look(by_kind_, Key(gv, kind));
    return custom ? custom->message : nullptr;
  }

 private:
  using Map = std::unordered_map<std::string, const api::Resource*>;
  static std::string Key(api::GroupVersion gv, std::string_view name) {
    return fmt::format("{}/{}", gv.ToString(), name);
  }
  static const api::Resource* Look(const Map& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  }

  const std::shared_ptr<const api::Registry> base_;
  const std::vector<KindPtr> kinds_;
  std::vector<const api::Resource*> resources_;
  Map by_plural_, by_kind_;
};

bool IsBuiltin(const api::Registry& base, std::string_view group, std::string_view plural) {
  for (const api::Resource* resource : base.resources()) {
    if (resource->group_version.group == group && resource->plural == plural) return true;
  }
  return false;
}

// --- names ---------------------------------------------------------------------------------------

struct Names {
  Object accepted;
  std::string reason;  // of NamesAccepted
  std::string message;
  bool ok = true;
};

// What other CRDs of the group have.
struct Taken {
  std::set<std::string, std::less<>> resources;
  std::set<std::string, std::less<>> kinds;
};

Taken TakenInGroup(const Object& crd, const std::vector<Object>& all) {
  Taken taken;
  for (const Object& other : all) {
    const bool same = other.name() == crd.name();
    if (same || !Equal(other["spec"]["group"], crd["spec"]["group"])) continue;
    const Value names = other["status"]["acceptedNames"];
    for (const char* name : {"plural", "singular"}) taken.resources.emplace(names[name].AsString());
    for (Value name : names["shortNames"].items()) taken.resources.emplace(name.AsString());
    for (const char* name : {"kind", "listKind"}) taken.kinds.emplace(names[name].AsString());
  }
  return taken;
}

std::string InUse(std::string_view name) {
  return fmt::format("{} is already in use", Quote(name));
}

class NameJudge {
 public:
  NameJudge(const Object& crd, const std::vector<Object>& all)
      : asked_(crd["spec"]["names"]),
        had_(crd["status"]["acceptedNames"]),
        taken_(TakenInGroup(crd, all)),
        edit_(api::CopyOf(had_ ? had_ : asked_)) {}

  Names Judge() {
    One("plural", "PluralConflict", taken_.resources);
    One("singular", "SingularConflict", taken_.resources);
    ShortNames();
    One("kind", "KindConflict", taken_.kinds);
    One("listKind", "ListKindConflict", taken_.kinds);
    Take("categories");
    if (out_.ok) {
      out_.reason = "NoConflicts";
      out_.message = "no conflicts found";
    }
    out_.accepted = std::move(edit_).Finish();
    return std::move(out_);
  }

 private:
  void Take(std::string_view name) {
    if (const Value value = asked_[name]) {
      edit_.Root()[name].Set(api::CopyOf(value));
    } else {
      edit_.Root().Erase(name);
    }
  }
  void Refuse(std::string_view reason, std::string message) {
    out_.ok = false;
    out_.reason = reason;
    out_.message = std::move(message);
  }
  void One(std::string_view name, std::string_view conflict,
           const std::set<std::string, std::less<>>& taken) {
    const std::string_view wanted = asked_[name].AsString();
    if (wanted != had_[name].AsString() && taken.contains(wanted)) {
      return Refuse(conflict, InUse(wanted));
    }
    Take(name);
  }
  void ShortNames() {
    std::vector<std::string> conflicts;
    for (Value name : asked_["shortNames"].items()) {
      bool ours = false;
      for (Value had : had_["shortNames"].items()) ours = ours || Equal(had, name);
      if (!ours && taken_.resources.contains(name.AsString())) {
        conflicts.push_back(InUse(name.AsString()));
      }
    }
    if (conflicts.empty()) return Take("shortNames");
    Refuse("ShortNamesConflict",
           conflicts.size() == 1 ? conflicts[0] : fmt::format("[{}]", fmt::join(conflicts, ", ")));
  }

  const Value asked_;
  const Value had_;
  const Taken taken_;
  api::Editor edit_;
  Names out_;
};

// Whatever its status.
bool KnowsCondition(const Object& crd, std::string_view type) {
  return static_cast<bool>(api::FindBy(crd["status"]["conditions"], "type", type));
}

bool MayServe(const Object& crd) {
  return CrdConditionTrue(crd.root(), "NamesAccepted") ||
         CrdConditionTrue(crd.root(), "Established");
}

}  // namespace

std::shared_ptr<const api::Registry> RegistryWith(std::shared_ptr<const api::Registry> base,
                                                  std::vector<KindPtr> kinds) {
  return std::make_shared<Extended>(std::move(base), std::move(kinds));
}

CustomKinds::CustomKinds(Pipeline& pipeline, RegistrySource& registries)
    : pipeline_(pipeline),
      registries_(registries),
      base_(registries.Get()),
      strand_(pipeline.workers()) {}

std::shared_ptr<CustomKinds> CustomKinds::Start(Pipeline& pipeline, RegistrySource& registries) {
  std::shared_ptr<CustomKinds> kinds(new CustomKinds(pipeline, registries));
  kinds->ServeAll();  // nothing else runs yet
  pipeline.core().Post([kinds] { kinds->Listen(); });
  return kinds;
}

// From now on; what came between Start's look and this is looked at once more.
void CustomKinds::Listen() {
  store::Store& store = pipeline_.store();
  auto watch = store.AddWatch(
      {std::string(kStorage), "", "", store.visible()},
      [self = weak_from_this()](std::span<const store::Event> events, store::Revision) {
        if (auto kinds = self.lock(); kinds && !events.empty()) kinds->LookAgain();
      });
  if (!watch) {
    log::Error("server", "custom resources are not followed: {}", watch.error().message);
    return;
  }
  watch_ = *std::move(watch);
  LookAgain();
}

// One look serves all that came before it.
void CustomKinds::LookAgain() {
  if (look_pending_.exchange(true)) return;
  strand_.Post([self = shared_from_this()] {
    self->look_pending_ = false;
    self->Look();
  });
}

void CustomKinds::LookAgainSoon() {
  pipeline_.core().Post([self = shared_from_this()] {
    self->pipeline_.core().After(kLookAgain, [self] { self->LookAgain(); });
  });
}

// The kinds of all CRDs that there are, made known to requests.
std::vector<Object> CustomKinds::ServeAll() {
  const auto snapshot = pipeline_.Snapshot(kStorage);
  std::vector<Object> all;
  for (const auto& entry : snapshot->Range("", "", "", 0)) all.push_back(entry->object);
  std::map<std::string, KindPtr> compiled;
  std::vector<KindPtr> served;
  for (const Object& crd : all) Serve(crd, served);
  for (const KindPtr& kind : served) compiled.emplace(kind->crd().name(), kind);
  if (compiled != compiled_) {
    compiled_ = std::move(compiled);
    registries_.Set(served.empty() ? base_ : RegistryWith(base_, std::move(served)));
  }
  return all;
}

void CustomKinds::Look() {
  const std::vector<Object> all = ServeAll();
  for (const Object& crd : all) {
    if (crd["metadata"]["deletionTimestamp"]) {
      Finalize(crd);
    } else {
      Settle(crd, all);
    }
  }
}

namespace {

// Counts the changes of the spec.
int64_t GenerationOf(const Object& crd) { return crd["metadata"]["generation"].AsInt(); }

}  // namespace

// A kind is made anew when its spec, its accepted names or its end changed.
void CustomKinds::Serve(const Object& crd, std::vector<KindPtr>& served) {
  if (!MayServe(crd)) return;
  if (IsBuiltin(*base_, crd["spec"]["group"].AsString(),
                crd["status"]["acceptedNames"]["plural"].AsString())) {
    return;
  }
  const auto known = compiled_.find(std::string(crd.name()));
  if (known != compiled_.end()) {
    const Object& old = known->second->crd();
    const bool same = old.uid() == crd.uid() && GenerationOf(old) == GenerationOf(crd) &&
                      Equal(old["status"]["acceptedNames"], crd["status"]["acceptedNames"]) &&
                      known->second->terminating() == CrdConditionTrue(crd.root(), "Terminating");
    if (same) return served.push_back(known->second);
  }
  auto kind = CustomKind::Compile(crd);
  if (!kind) {
    log::Warning("server", "{} is not served: {}", crd.name(), kind.error().message);
    return;
  }
  served.push_back(*std::move(kind));
}

// Names first; what has them is served by the next look, and told to be so.
void CustomKinds::Settle(const Object& crd, const std::vector<Object>& all) {
  const std::string name(crd.name());
  const bool named = Equal(crd["spec"]["names"], crd["status"]["acceptedNames"]);
  if (!named || !KnowsCondition(crd, "NamesAccepted")) {
    Names names = NameJudge(crd, all).Judge();
    const bool told = KnowsCondition(crd, "NamesAccepted") &&
                      CrdConditionTrue(crd.root(), "NamesAccepted") == names.ok &&
                      Equal(names.accepted.root(), crd["status"]["acceptedNames"]);
    if (told) return;
    const bool established = CrdConditionTrue(crd.root(), "Established");
    return Write(
        name,
        [names, established](Mut root, std::string_view now) {
          root["status"]["acceptedNames"].Set(names.accepted);
          SetCrdCondition(
              root, {"NamesAccepted", names.ok ? "True" : "False", names.reason, names.message},
              now);
          if (established) return;
          SetCrdCondition(
              root,
              {"Established", "False", names.ok ? "Installing" : "NotAccepted",
               names.ok ? "the initial names have been accepted" : "not all names are accepted"},
              now);
        },
        nullptr);
  }
  if (!CrdConditionTrue(crd.root(), "NamesAccepted")) return;
  if (CrdConditionTrue(crd.root(), "Established")) return;
  Write(
      name,
      [](Mut root, std::string_view now) {
        SetCrdCondition(
            root,
            {"Established", "True", "InitialNamesAccepted", "the initial names have been accepted"},
            now);
      },
      nullptr);
}

void CustomKinds::Finalize(const Object& crd) {
  bool ours = false;
  for (Value finalizer : crd["metadata"]["finalizers"].items()) {
    ours = ours || finalizer.AsString() == api::kCrdCleanup;
  }
  const std::string name(crd.name());
  if (!ours || !finalizing_.insert(name).second) return;
  if (!CrdConditionTrue(crd.root(), "Established")) {
    return Release(name, "NeverEstablished", "resource was never established");
  }
  if (!compiled_.contains(name)) {
    return Release(name, "OverlappingBuiltInResource",
                   "instances overlap with built-in resources in storage");
  }
  DeleteObjects(name);
}

void CustomKinds::DeleteObjects(const std::string& name) {
  const KindPtr& kind = compiled_.at(name);
  Operation op = CrdOperation("deletecollection", "");
  op.registry = RegistryWith(base_, {kind});
  op.resource = kind->versions().front();
  op.info.group = kind->group();
  op.info.version = op.resource->group_version.version;
  op.info.resource = op.resource->plural;
  pipeline_.Execute(std::move(op), [self = shared_from_this(), name](Result<Outcome> r) mutable {
    Strand& strand = self->strand_;
    strand.Post(
        [self, name, r = std::move(r)]() mutable { self->AfterDeletion(name, std::move(r)); });
  });
}

void CustomKinds::AfterDeletion(const std::string& name, Result<Outcome> deleted) {
  const auto kind = compiled_.find(name);
  const bool gone =
      kind == compiled_.end() ||
      pipeline_.Snapshot(kind->second->versions().front()->StorageName())->Count("", "", "") == 0;
  if (deleted && gone) {
    return Release(name, "InstanceDeletionCompleted", "removed all instances");
  }
  finalizing_.erase(name);
  LookAgainSoon();
}

// Lets the CRD go.
void CustomKinds::Release(const std::string& name, std::string reason, std::string message) {
  Write(
      name,
      [reason, message](Mut root, std::string_view now) {
        SetCrdCondition(root, {"Terminating", "False", reason, message}, now);
        const Mut finalizers = root["metadata"]["finalizers"];
        for (size_t i = 0; i < finalizers.size();) {
          if (finalizers.at(i).AsString() == api::kCrdCleanup) {
            finalizers.EraseAt(i);
          } else {
            ++i;
          }
        }
        if (finalizers.size() == 0) root["metadata"].Erase("finalizers");
      },
      [self = shared_from_this(), name] { self->finalizing_.erase(name); });
}

Operation CustomKinds::CrdOperation(std::string_view verb, const std::string& name) const {
  Operation op;
  op.user = {"system:apiserver", "", {"system:masters"}, {}};
  op.authorized = true;
  op.registry = base_;
  op.resource = base_->Find({kGroup, "v1"}, kPlural);
  op.options.field_manager = kManager;
  op.info = {.is_resource = true,
             .path = {},
             .verb = std::string(verb),
             .prefix = "apis",
             .group = std::string(kGroup),
             .version = "v1",
             .ns = {},
             .resource = std::string(kPlural),
             .subresource = {},
             .name = name,
             .rest = {}};
  return op;
}

// Changes a CRD's status as the API server does; a CRD that is gone needs nothing.
void CustomKinds::Write(const std::string& name, ChangeCrd change, std::function<void()> then) {
  const Operation op = CrdOperation("update", name);
  const api::Message* message = op.resource->message;
  pipeline_.Modify(
      op,
      [change = std::move(change), message, &pipeline = pipeline_](const Object& current) {
        api::Editor edit(current);
        change(edit.Root(), FormatTime(pipeline.now()));
        const Object next = std::move(edit).Finish(message);
        return Result<Object>(api::TrackUpdate({.manager = kManager,
                                                .subresource = "status",
                                                .api_version = current.api_version(),
                                                .now = pipeline.now()},
                                               *message, current, next));
      },
      [self = shared_from_this(), name, then = std::move(then)](Result<Outcome> done) {
        if (!done && !done.error().Is("NotFound")) {
          log::Warning("server", "status of {}: {}", name, done.error().message);
          self->LookAgainSoon();
        }
        self->strand_.Post([self, then] {
          if (then) then();
        });
      });
}

}  // namespace sextant::server
