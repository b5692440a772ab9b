// Base64 as Go writes and reads it. Line breaks are skipped in reading.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sextant {

std::string Base64(std::string_view bytes);     // standard alphabet, padded
std::string Base64Url(std::string_view bytes);  // URL alphabet, no padding

// As Go's StdEncoding: padded; the bits that the last character has too many may be anything.
Result<std::string> Base64Decode(std::string_view text);
// URL alphabet, padding allowed. One form for each value: those bits are zero.
Result<std::string> Base64UrlDecode(std::string_view text);

}  // namespace sextant
