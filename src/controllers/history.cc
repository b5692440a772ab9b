#include "controllers/history.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kMaxPrefix = 223;  // of a revision's name before "-" and the hash

constexpr const char* kHashLabel = "controller.kubernetes.io/hash";

// The strategic merge patch that brings a template back.
Object TemplatePatch(const Object& owner) {
  Editor edit;
  edit.Keep(owner);
  Mut pod_template = edit["spec"]["template"];
  pod_template.Set(owner["spec"]["template"]);
  pod_template.Set("$patch", "replace");
  return std::move(edit).Finish();
}

Object NewRevision(const Writer& revisions, const Object& owner, const Object& patch,
                   bool hash_is_name, int64_t revision) {
  const std::string hash = TemplateHash(owner);
  const std::string name = fmt::format("{}-{}", owner.name().substr(0, kMaxPrefix), hash);
  Editor edit;
  edit.Keep(owner);
  edit.Keep(patch);
  edit.Root().Set("apiVersion", "apps/v1");
  edit.Root().Set("kind", "ControllerRevision");
  Mut metadata = edit["metadata"];
  metadata.Set("name", name);
  metadata.Set("namespace", owner.ns());
  const Value labels = owner["spec"]["template"]["metadata"]["labels"];
  if (labels) metadata.Set("labels", labels);
  metadata["labels"].Set(hash_is_name ? kHashLabel : kRevisionHashLabel, hash);
  const Value annotations = owner["metadata"]["annotations"];
  if (annotations) metadata.Set("annotations", annotations);
  AddControllerRef(metadata, owner);
  edit.Root().Set("data", patch.root());
  edit.Root().Set("revision", revision);
  return revisions.Finish(std::move(edit));
}

void MakeRevision(Writer& revisions, Writer& owners, const Object& owner, Object wanted,
                  History history, const std::shared_ptr<Join>& join,
                  std::function<void(History)> then) {
  revisions.Create(std::move(wanted), [&owners, owner, history = std::move(history), join,
                                       then = std::move(then)](Result<Object> made) mutable {
    if (made) {
      history.current = *std::move(made);
      return then(std::move(history));
    }
    if (made.error().Is("AlreadyExists")) return CountCollision(owners, owner, join->Piece());
    join->Failed(std::move(made).error());
  });
}

void Renumber(Writer& revisions, int64_t revision, History history,
              const std::shared_ptr<Join>& join, std::function<void(History)> then) {
  Editor edit(history.current);
  edit.Root().Set("revision", revision);
  Object next = revisions.Finish(std::move(edit));
  revisions.Update(std::move(next), [history = std::move(history), join,
                                     then = std::move(then)](Result<Object> updated) mutable {
    if (!updated) return join->Failed(std::move(updated).error());
    history.current = *std::move(updated);
    then(std::move(history));
  });
}

}  // namespace

void FindHistory(Writer& revisions, Writer& owners, const Object& owner, bool hash_is_name,
                 const std::shared_ptr<Join>& join, std::function<void(History)> then) {
  const auto selector = api::LabelSelector::From(owner["spec"]["selector"]);
  if (!selector) return join->Failed(selector.error());
  Claimed claimed = Claim(owner, *selector, revisions, join);
  if (claimed.changed) return;
  std::sort(claimed.owned.begin(), claimed.owned.end(), [](const Object& a, const Object& b) {
    return a["revision"].AsInt() < b["revision"].AsInt();
  });
  const Object patch = TemplatePatch(owner);
  History history;
  int64_t highest = 0;
  for (Object& revision : claimed.owned) {
    if (Equal(revision["data"], patch.root())) {
      history.current = std::move(revision);
    } else {
      highest = std::max(highest, revision["revision"].AsInt());
      history.old.push_back(std::move(revision));
    }
  }
  if (!history.current) {
    Object wanted = NewRevision(revisions, owner, patch, hash_is_name, highest + 1);
    return MakeRevision(revisions, owners, owner, std::move(wanted), std::move(history), join,
                        std::move(then));
  }
  if (history.current["revision"].AsInt() <= highest) {
    return Renumber(revisions, highest + 1, std::move(history), join, std::move(then));
  }
  then(std::move(history));
}

std::string PodHashOf(const Object& revision) {
  const std::string_view hash = revision["metadata"]["labels"][kRevisionHashLabel].AsString();
  return std::string(hash.empty() ? revision.name() : hash);
}

std::string History::hash() const { return PodHashOf(current); }

void TrimHistory(Writer& revisions, const History& history, int64_t keep,
                 const std::vector<std::string>& live, const std::shared_ptr<Join>& join) {
  int64_t excess = static_cast<int64_t>(history.old.size()) - keep;
  for (const Object& revision : history.old) {
    if (excess <= 0) return;
    const std::string hash = PodHashOf(revision);
    if (std::find(live.begin(), live.end(), hash) != live.end()) continue;
    revisions.Delete(revision, join->Piece());
    --excess;
  }
}

}  // namespace sextant::controllers
