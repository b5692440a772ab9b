#include "api/managed_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "api/canonical.h"
#include "api/field_walk.h"
#include "api/json.h"
#include "api/time_value.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxUpdateManagers = 10;
constexpr std::string_view kAncient = "ancient-changes";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";

// One entry of managedFields.
struct ManagerEntry {
  std::string manager;
  bool applied = false;
  std::string api_version;
  std::string subresource;
  std::string time;
  // The set, as it stands in the object until somebody asks for it.
  Value raw;
  FieldSet fields;
  bool read = false;

  FieldSet& Fields() {
    if (!read && raw) fields = FieldSet::FromJson(raw);
    read = true;
    return fields;
  }
  bool Empty() const { return read ? fields.empty() : raw.empty(); }

  bool SameManager(const ManagerEntry& o) const {
    return manager == o.manager && applied == o.applied && subresource == o.subresource &&
           (applied || api_version == o.api_version);
  }
};
using Managed = std::vector<ManagerEntry>;

// nullopt: not the form that we write, somebody tampered with it.
std::optional<Managed> Read(Value list) {
  Managed out;
  for (Value v : list.items()) {
    ManagerEntry e;
    std::string_view operation = v["operation"].AsString();
    if (operation != "Apply" && operation != "Update") return std::nullopt;
    if (v["apiVersion"].AsString().empty() || v["fieldsType"].AsString() != "FieldsV1") {
      return std::nullopt;
    }
    e.applied = operation == "Apply";
    e.manager = v["manager"].AsString();
    e.api_version = v["apiVersion"].AsString();
    e.subresource = v["subresource"].AsString();
    e.time = v["time"].AsString();
    e.raw = v["fieldsV1"];
    out.push_back(std::move(e));
  }
  return out;
}

bool IsReset(Value list) {
  if (!list.IsList()) return false;
  if (list.size() == 0) return true;
  // A cleared entry still has what Go prints of an empty one.
  if (list.size() != 1) return false;
  for (MemberView m : list.at(0).members()) {
    if (m.value && !m.value.AsString().empty()) return false;
  }
  return true;
}

Managed ManagedOf(const ManagerInfo& who, const Object& before, const Object& after) {
  Value live = before["metadata"]["managedFields"];
  auto from_live = [&] { return Read(live).value_or(Managed()); };
  if (!who.subresource.empty()) return from_live();
  Value asked = after["metadata"]["managedFields"];
  if (IsReset(asked)) return {};
  auto managed = Read(asked);
  return managed && !managed->empty() ? *std::move(managed) : from_live();
}

int64_t Seconds(const std::string& time) {
  if (time.empty()) return 0;
  auto t = ParseInstant(time, TimeKind::kSeconds);
  return t ? t->seconds : 0;
}

void Sort(Managed& managed) {
  std::ranges::sort(managed, [](const ManagerEntry& a, const ManagerEntry& b) {
    if (a.applied != b.applied) return a.applied;
    int64_t s = Seconds(a.time), t = Seconds(b.time);
    if (s != t) return s < t;
    return std::tie(a.manager, a.api_version, a.subresource) <
           std::tie(b.manager, b.api_version, b.subresource);
  });
}

// `kept`: the document, besides the object's, that sets which nobody read may lie in.
Object WithManaged(const Object& object, Managed managed, const Object& kept,
                   const Message& message) {
  Sort(managed);
  Editor edit(object);
  edit.Keep(kept);
  Mut metadata = edit["metadata"];
  metadata.Erase("managedFields");
  for (const ManagerEntry& e : managed) {
    Mut entry = metadata["managedFields"].Append();
    entry.Set("manager", e.manager);
    entry.Set("operation", e.applied ? "Apply" : "Update");
    entry.Set("apiVersion", e.api_version);
    if (!e.time.empty()) entry.Set("time", e.time);
    entry.Set("fieldsType", "FieldsV1");
    if (e.read) {
      entry["fieldsV1"].Set(e.fields.ToJson());
    } else {
      entry["fieldsV1"].Set(e.raw);
    }
    if (!e.subresource.empty()) entry.Set("subresource", e.subresource);
  }
  return std::move(edit).Finish(&message);
}

FieldSet SetOf(std::initializer_list<std::initializer_list<std::string_view>> paths) {
  FieldSet set;
  for (const auto& path : paths) {
    FieldPath elements;
    for (std::string_view name : path) elements.push_back(PathElement::Field(name));
    set.Insert(elements);
  }
  return set;
}

// What never is anybody's.
const FieldSet& Stripped() {
  static const FieldSet set = SetOf({{"apiVersion"},
                                     {"kind"},
                                     {"metadata"},
                                     {"metadata", "name"},
                                     {"metadata", "namespace"},
                                     {"metadata", "creationTimestamp"},
                                     {"metadata", "selfLink"},
                                     {"metadata", "uid"},
                                     {"metadata", "clusterName"},
                                     {"metadata", "generation"},
                                     {"metadata", "managedFields"},
                                     {"metadata", "resourceVersion"}});
  return set;
}

// What this writer cannot change: the other half of a kind with a status.
FieldSet Ignored(const ManagerInfo& who, FieldSet set) {
  static const FieldSet status = SetOf({{"status"}});
  static const FieldSet spec =
      SetOf({{"spec"}, {"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}});
  static const FieldSet all_but_status = SetOf({{"spec"}, {"metadata"}});
  if (who.subresource.empty()) return who.status_apart ? set.RecursiveDifference(status) : set;
  if (who.subresource == "status") {
    return set.RecursiveDifference(who.metadata_apart ? all_but_status : spec);
  }
  return set;
}

std::string TimeOf(const ManagerInfo& who) {
  return who.now == Time{} ? std::string() : FormatTime(who.now);
}

ManagerEntry NewEntry(const ManagerInfo& who, bool applied) {
  ManagerEntry e;
  e.manager = who.manager.empty() ? "unknown" : std::string(who.manager);
  e.applied = applied;
  e.api_version = who.api_version;
  e.subresource = who.subresource;
  e.time = TimeOf(who);
  e.read = true;
  return e;
}

// An object of the kind with nothing in it, as compared with on create.
Object Nothing(const Object& like, const Message& message) {
  Editor edit;
  edit.Root().SetMap();
  for (const char* key : {"kind", "apiVersion"}) {
    if (!like[key].AsString().empty()) edit.Root().Set(key, like[key].AsString());
  }
  return std::move(edit).Finish(&message);
}

FieldComparison Compare(const ManagerInfo& who, const Message& message, Value before, Value after) {
  FieldComparison c = CompareFields(before, after, message);
  c.added = Ignored(who, std::move(c.added));
  c.modified = Ignored(who, std::move(c.modified));
  c.removed = Ignored(who, std::move(c.removed));
  return c;
}

// Takes from others what was written over or is gone.
void TakeFrom(Managed& managed, const FieldComparison& c, const ManagerEntry* except) {
  FieldSet changed = c.modified.Union(c.added);
  for (ManagerEntry& e : managed) {
    bool untouched = !e.read && !changed.Meets(e.raw) && !c.removed.Meets(e.raw);
    if (&e == except || untouched) continue;
    e.fields = e.Fields().Difference(e.fields.Intersection(changed)).Difference(c.removed);
  }
}

// Merges the oldest updaters of a version into one when there are too many.
void Cap(Managed& managed) {
  Sort(managed);  // appliers first, then by time
  auto updaters = static_cast<size_t>(
      std::ranges::count_if(managed, [](const ManagerEntry& e) { return !e.applied; }));
  std::map<std::string, size_t> bucket_of;  // api version to the entry that collects
  for (size_t i = 0; i < managed.size() && updaters > kMaxUpdateManagers;) {
    ManagerEntry& e = managed[i];
    auto [bucket, first] = bucket_of.try_emplace(e.api_version, i);
    if (e.applied || first) {
      if (e.applied) bucket_of.erase(e.api_version);
      ++i;
      continue;
    }
    ManagerEntry& into = managed[bucket->second];
    into.manager = kAncient;
    into.subresource.clear();
    into.fields = into.Fields().Union(e.Fields());
    into.time = e.time;
    managed.erase(managed.begin() + static_cast<std::ptrdiff_t>(i));
    --updaters;
  }
}

// The update that `who` made, added to `managed`.
void Record(Managed& managed, ManagerEntry entry, const FieldComparison& c) {
  TakeFrom(managed, c, nullptr);
  std::erase_if(managed, [](const ManagerEntry& e) { return e.Empty(); });
  entry.fields = c.modified.Union(c.added).Difference(Stripped());
  if (entry.fields.empty()) return;
  auto own =
      std::ranges::find_if(managed, [&](const ManagerEntry& e) { return e.SameManager(entry); });
  if (own == managed.end()) {
    managed.push_back(std::move(entry));
  } else {
    own->fields = own->Fields().Union(entry.fields);
    own->time = entry.time;
    own->api_version = entry.api_version;
  }
}

std::string ShowManager(const ManagerEntry& e) {
  std::string out = Quote(e.manager);
  if (!e.subresource.empty()) out += " with subresource " + Quote(e.subresource);
  if (!e.applied) out += " using " + e.api_version;
  return out;
}

Error ConflictError(const std::vector<std::pair<const ManagerEntry*, FieldSet>>& conflicts) {
  std::vector<Cause> causes;
  std::map<std::string, std::vector<std::string>> by_manager;
  for (const auto& [entry, fields] : conflicts) {
    std::string who = ShowManager(*entry);
    fields.ForEach([&](const FieldPath& path) {
      causes.push_back({"FieldManagerConflict", "conflict with " + who, PathToString(path)});
      by_manager[who].push_back(PathToString(path));
    });
  }
  std::string message;
  if (causes.size() == 1) {
    message =
        fmt::format("Apply failed with 1 conflict: {}: {}", causes[0].message, causes[0].field);
  } else {
    std::vector<std::string> lines;
    for (const auto& [who, paths] : by_manager) {
      lines.push_back("conflicts with " + who + ":");
      for (const std::string& path : paths) lines.push_back("- " + path);
    }
    message =
        fmt::format("Apply failed with {} conflicts: {}", causes.size(), fmt::join(lines, "\n"));
  }
  return Error{.code = 409, .reason = "Conflict", .message = message, .causes = std::move(causes)};
}

// What the applier owned and does not give any more, and nobody else owns, goes away.
Node Prune(Value merged, const FieldSet& last, Managed& managed, const Message& message,
           Arena& arena) {
  FieldSet owned;
  for (ManagerEntry& e : managed) owned = owned.Union(e.Fields());
  FieldSet last_named = last.WithNamedFields(&message);
  Node pruned = RemoveFields(merged, last_named, message, arena);
  FieldSet merged_set = FieldsOf(merged, message).WithNamedFields(&message);
  auto named = [&](const Node& n) {
    return FieldsOf(Value(&n), message).WithNamedFields(&message);
  };
  pruned = RemoveFields(merged,
                        merged_set.Difference(named(pruned).Union(owned.WithNamedFields(&message))),
                        message, arena);
  FieldSet dangling = merged_set.Difference(named(pruned)).Intersection(last_named);
  return RemoveFields(merged, dangling, message, arena);
}

}  // namespace

Object WithoutManagedFields(const Object& object, const Message& message) {
  if (object["metadata"]["managedFields"].IsAbsent()) return object;
  Editor edit(object);
  edit["metadata"].Erase("managedFields");
  return std::move(edit).Finish(&message);
}

Object TrackUpdate(const ManagerInfo& who, const Message& message, const Object& before,
                   const Object& after) {
  Managed managed = ManagedOf(who, before, after);
  bool create = before.uid().empty();
  if (managed.empty() && !create) return WithoutManagedFields(after, message);
  Object old = before ? before : Nothing(after, message);
  FieldComparison c = Compare(who, message, old.root(), after.root());
  if (!c.Same()) {
    Record(managed, NewEntry(who, false), c);
    Cap(managed);
  }
  return WithManaged(after, std::move(managed), before, message);
}

Result<Object> ApplyFields(const ManagerInfo& who, bool force, const Message& message,
                           const Object& live, Value config) {
  if (config["metadata"]["managedFields"]) {
    return Fail(BadRequest("metadata.managedFields must be nil"));
  }
  if (auto errors = CheckTyped(config, message); !errors.empty()) {
    std::string text =
        errors.size() == 1 ? errors[0] : fmt::format("errors:\n  {}", fmt::join(errors, "\n  "));
    const GroupVersion gv = GroupVersion::Of(who.api_version);
    return Fail(Error{
        .code = 500,
        .message = fmt::format("failed to create typed patch object ({}/{}; {}/{}, Kind={}): {}",
                               config["metadata"]["namespace"].AsString(),
                               config["metadata"]["name"].AsString(), gv.group, gv.version,
                               config["kind"].AsString(), text)});
  }
  Object base = live ? WithoutManagedFields(live, message) : Nothing(CopyOf(config), message);
  Managed managed = live ? Read(live["metadata"]["managedFields"]).value_or(Managed()) : Managed();
  if (managed.empty() && live) {
    // What stands there belongs to whoever came before the first apply.
    ManagerEntry first =
        NewEntry({kBeforeFirstApply, who.subresource, who.api_version, who.now}, false);
    Object nothing = Nothing(live, message);
    Record(managed, std::move(first), Compare(who, message, nothing.root(), base.root()));
  }

  ManagerEntry mine = NewEntry(who, true);
  mine.time.clear();  // told when the object changes
  FieldSet last;
  std::erase_if(managed, [&](ManagerEntry& e) {
    if (!e.SameManager(mine)) return false;
    last = std::move(e.Fields());
    mine.time = e.time;
    return true;
  });
  mine.fields = Ignored(who, FieldsOf(config, message));
  managed.push_back(mine);

  Arena arena;
  Node merged = MergeFields(base.root(), config, message, arena);
  if (!last.empty()) merged = Prune(Value(&merged), last, managed, message, arena);
  ASSIGN_OR_RETURN(Object next, DecodeTree(Value(&merged), message));

  // As Kubernetes compares it: before nulls and defaults of the encoding fall into place.
  FieldComparison c = Compare(who, message, base.root(), Value(&merged));
  ManagerEntry* own = &managed.back();
  FieldSet changed = c.modified.Union(c.added);
  std::vector<std::pair<const ManagerEntry*, FieldSet>> conflicts;
  for (ManagerEntry& e : managed) {
    if (&e == own) continue;
    if (FieldSet both = e.Fields().Intersection(changed); !both.empty()) {
      conflicts.emplace_back(&e, std::move(both));
    }
  }
  if (!force && !conflicts.empty()) return Fail(ConflictError(conflicts));
  TakeFrom(managed, c, own);
  own->fields = own->fields.Difference(Stripped());
  bool same = live && Equal(base.root(), next.root());
  if (!same) own->time = TimeOf(who);
  std::erase_if(managed, [](const ManagerEntry& e) { return e.Empty(); });
  return WithManaged(next, std::move(managed), live, message);
}

}  // namespace sextant::api
