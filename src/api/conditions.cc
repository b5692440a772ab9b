#include "api/conditions.h"

namespace sextant::api {

void SetCondition(Mut conditions, const Condition& condition, std::string_view now,
                  std::string_view second_stamp) {
  size_t at = 0;
  while (at < conditions.size() && conditions.at(at)["type"].AsString() != condition.type) ++at;
  Mut entry = at < conditions.size() ? conditions.at(at) : conditions.Append();
  if (entry["status"].AsString() != condition.status) {
    entry.Set("lastTransitionTime", now);
  }
  entry.Set("type", condition.type);
  entry.Set("status", condition.status);
  entry.Set("reason", condition.reason);
  entry.Set("message", condition.message);
  if (!second_stamp.empty()) entry.Set(second_stamp, now);
}

void SetCondition(Mut conditions, const Condition& condition, Time now,
                  std::string_view second_stamp) {
  SetCondition(conditions, condition, FormatTime(now), second_stamp);
}

void PutCondition(Mut conditions, const Condition& condition, Time now,
                  std::string_view second_stamp) {
  std::string since;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Mut have = conditions.at(i);
    if (have["type"].AsString() != condition.type) continue;
    if (have["status"].AsString() != condition.status) break;
    if (have["reason"].AsString() == condition.reason) return;
    since = have["lastTransitionTime"].AsString();
  }
  RemoveCondition(conditions, condition.type);
  SetCondition(conditions, condition, now, second_stamp);
  if (!since.empty()) conditions.at(conditions.size() - 1).Set("lastTransitionTime", since);
}

void RemoveCondition(Mut conditions, std::string_view type) {
  for (size_t i = conditions.size(); i-- > 0;)
    if (conditions.at(i)["type"].AsString() == type) conditions.EraseAt(i);
}

}  // namespace sextant::api
