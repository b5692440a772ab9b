// The conditions in an object's status: lists of type, status, reason and message.
//
//   if (IsConditionTrue(node["status"]["conditions"], "Ready")) ...
//   SetCondition(edit.Root()["status"]["conditions"], {"Ready", "True", "Started", ""}, now);
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/document.h"
#include "api/lists.h"
#include "base/clock.h"

namespace sextant::api {

// The condition of this type; absent if there is none.
inline Value FindCondition(Value conditions, std::string_view type) {
  return FindBy(conditions, "type", type);
}
inline bool IsConditionTrue(Value conditions, std::string_view type) {
  return FindCondition(conditions, type)["status"].AsString() == "True";
}

struct Condition {
  std::string_view type;
  std::string_view status;
  std::string_view reason;
  std::string message;
};
// Puts it in place of the one of its type. lastTransitionTime becomes `now` if the status changes;
// `second_stamp` becomes it always: lastUpdateTime (apps), lastProbeTime (batch).
void SetCondition(Mut conditions, const Condition& condition, std::string_view now,
                  std::string_view second_stamp = "");
void SetCondition(Mut conditions, const Condition& condition, Time now,
                  std::string_view second_stamp = "");
// As the controllers of apps do it: nothing where status and reason are the same already, else the
// new one goes to the end.
void PutCondition(Mut conditions, const Condition& condition, Time now,
                  std::string_view second_stamp = "");
void RemoveCondition(Mut conditions, std::string_view type);

}  // namespace sextant::api
