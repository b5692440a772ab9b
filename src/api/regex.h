// The text that the distribution's RE2 takes. Releases on Abseil take absl::string_view, which a
// distribution may have built as a type of its own; older ones take re2::StringPiece. Neither
// always converts from std::string_view by itself.
#pragma once

#include <re2/re2.h>
#include <re2/stringpiece.h>

#include <string_view>

namespace sextant::api {

// A view of the same characters; `text` has to outlive it.
inline re2::StringPiece Re2Text(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace sextant::api
