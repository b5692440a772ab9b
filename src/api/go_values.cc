#include "api/go_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "api/json.h"

namespace sextant::api {

std::string GoPrint(Value v) {
  switch (v.kind()) {
    case Kind::kAbsent:
    case Kind::kNull:
      return "<nil>";
    case Kind::kString:
      return std::string(v.AsString());
    case Kind::kDouble:
      return GoFloat(v.AsDouble());
    case Kind::kList: {
      std::string out = "[";
      for (Value item : v.items()) {
        if (out.size() > 1) out += ' ';
        out += GoPrint(item);
      }
      return out + "]";
    }
    case Kind::kMap: {
      std::vector<MemberView> members;
      for (MemberView m : v.members()) members.push_back(m);
      std::ranges::sort(members, {}, &MemberView::key);
      std::string out = "map[";
      for (const MemberView& m : members) {
        if (out.size() > 4) out += ' ';
        out += std::string(m.key) + ":" + GoPrint(m.value);
      }
      return out + "]";
    }
    default:
      return ToJson(v);
  }
}

std::string GoFloat(double v) {
  // The fewest digits that read back the same; an exponent below 1e-4 and from 1e6 on.
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), v, std::chars_format::general).ptr;
  return {text.data(), end};
}

int64_t GoInt64(double v) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (v >= kLimit) return std::numeric_limits<int64_t>::max();
  return v >= -kLimit ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

}  // namespace sextant::api
