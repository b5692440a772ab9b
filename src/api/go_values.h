// Values as Go prints and converts them: Kubernetes' messages are full of that.
//
//   GoPrint(patch)   "map[a:1 b:[x y]]"
//   GoFloat(1234567.0)   "1.234567e+06"
//
// Source: Go's fmt and strconv. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/document.h"

namespace sextant::api {

// A value and a float64 as %v prints them.
std::string GoPrint(Value v);
std::string GoFloat(double v);

// int64(v): towards zero. What does not fit becomes the nearest that does, as arm64 has it (Go
// leaves it to the machine).
int64_t GoInt64(double v);

}  // namespace sextant::api
