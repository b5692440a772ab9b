#include "ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace sextant::crash {

Revision RevisionOf(const api::Object& object) {
  const std::string_view text = object.resource_version();
  Revision revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

const Tracked& Ledger::Of(const std::string& name) const {
  static const Tracked kNothing;
  const auto found = objects_.find(name);
  return found == objects_.end() ? kNothing : found->second;
}

void Ledger::Complain(std::string_view name, std::string text) {
  complaints_.push_back(fmt::format("{} {}: {}", what_, name, text));
}

void Ledger::Ask(const std::string& name, Verb verb, std::string data) {
  Tracked& tracked = objects_[name];
  tracked.asked = verb;
  tracked.asked_data = std::move(data);
  tracked.asked_after = *newest_;
}

void Ledger::Answer(const std::string& name, const api::Object& answer) {
  Tracked& tracked = objects_[name];
  ++answers_;
  const Verb verb = std::exchange(tracked.asked, Verb::kNone);
  if (verb == Verb::kDelete) {
    tracked.there = false;
    return;
  }
  const Revision revision = RevisionOf(answer);
  if (revision <= tracked.asked_after) {
    Complain(name, fmt::format("written at revision {} when {} was known already", revision,
                               tracked.asked_after));
  }
  if (verb == Verb::kUpdate && answer.uid() != tracked.uid)
    Complain(name, fmt::format("uid {} became {}", tracked.uid, answer.uid()));
  if (data_of_(answer) != tracked.asked_data)
    Complain(name, fmt::format("asked for {}, got {}", tracked.asked_data, data_of_(answer)));
  tracked.there = true;
  tracked.uid = answer.uid();
  tracked.revision = revision;
  tracked.data = tracked.asked_data;
  *newest_ = std::max(*newest_, revision);
}

bool Ledger::Same(const Tracked& tracked, const api::Object& found) const {
  const Revision revision = RevisionOf(found);
  return found.uid() == tracked.uid && data_of_(found) == tracked.data &&
         (shared_ ? revision >= tracked.revision : revision == tracked.revision);
}

// Whether what is there is what the request without an answer would have made.
bool Ledger::AsAsked(const Tracked& tracked, const api::Object* found) const {
  if (tracked.asked == Verb::kNone) return false;
  if (tracked.asked == Verb::kDelete) return found == nullptr;
  if (!found || data_of_(*found) != tracked.asked_data) return false;
  if (tracked.asked == Verb::kUpdate && found->uid() != tracked.uid) return false;
  return RevisionOf(*found) > tracked.revision;
}

void Ledger::CheckOne(const std::string& name, Tracked& tracked, const api::Object* found) {
  const bool as_told = found ? tracked.there && Same(tracked, *found) : !tracked.there;
  if (!as_told && !AsAsked(tracked, found)) {
    Complain(name,
             fmt::format("told: {}, uid {}, revision {}, data {}; asked: {} {}; found: {}, uid {}, "
                         "revision {}, data {}",
                         tracked.there ? "there" : "gone", tracked.uid, tracked.revision,
                         tracked.data, static_cast<int>(tracked.asked), tracked.asked_data,
                         found ? "there" : "gone", found ? found->uid() : "",
                         found ? RevisionOf(*found) : 0, found ? data_of_(*found) : ""));
  }
  tracked = {};
  if (!found) return;
  tracked.there = true;
  tracked.uid = found->uid();
  tracked.revision = RevisionOf(*found);
  tracked.data = data_of_(*found);
  *newest_ = std::max(*newest_, tracked.revision);
}

void Ledger::Check(const std::vector<api::Object>& listed) {
  std::map<std::string, const api::Object*> found;
  for (const api::Object& object : listed) {
    const std::string name(object.name());
    if (objects_.contains(name) && !found.emplace(name, &object).second)
      Complain(name, "listed twice");
  }
  for (auto& [name, tracked] : objects_) {
    const auto at = found.find(name);
    CheckOne(name, tracked, at == found.end() ? nullptr : at->second);
  }
}

std::map<std::string, std::string> Ledger::Uids() const {
  std::map<std::string, std::string> uids;
  for (const auto& [name, tracked] : objects_)
    if (tracked.there) uids[name] = tracked.uid;
  return uids;
}

}  // namespace sextant::crash
