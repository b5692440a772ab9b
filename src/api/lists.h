// Looking into the lists that objects carry, and comparing maps but for some members. Pure; any
// thread.
#pragma once

#include <string_view>

#include "api/document.h"

namespace sextant::api {

// Whether one of a list's items is the text.
inline bool Holds(Value list, std::string_view text) {
  for (Value item : list.items())
    if (item.AsString() == text) return true;
  return false;
}

// The first item whose `member` is the text: a condition by its type, a reference by its name.
// Absent if there is none.
inline Value FindBy(Value list, std::string_view member, std::string_view text) {
  for (Value item : list.items())
    if (item[member].AsString() == text) return item;
  return {};
}

// Whether two maps have the same members, but for those that `skips` names.
template <typename Skips>
bool SameBut(Value a, Value b, Skips skips) {
  const auto has_all_of = [&skips](Value x, Value y) {
    for (auto [key, value] : x.members())
      if (!skips(key) && !Equal(value, y[key])) return false;
    return true;
  };
  return has_all_of(a, b) && has_all_of(b, a);
}

}  // namespace sextant::api
