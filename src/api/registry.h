// The built-in tables as a whole, for tests that walk over all of them.
#pragma once

#include <span>

#include "api/schema.h"

namespace sextant::api {

// Every built-in message, grouped by API group and version, in Go's order of declaration.
std::span<const Message> BuiltinMessages();

}  // namespace sextant::api
