// Text between double quotes as Go's %q (strconv.Quote) prints it; Kubernetes' messages are full
// of it. Printable UTF-8 stays, the rest becomes an escape.
//
//   Quote("a\nb") == "\"a\\nb\""
//
// Runes above U+00FF that Go calls unprintable are known here only by their main blocks (format
// characters, separators, surrogates, private use): text of that kind may differ from Go's.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

std::string Quote(std::string_view text);

}  // namespace sextant
