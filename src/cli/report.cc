#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"

namespace sextant::cli {

int Report(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return error.code == 400 && error.reason.empty() ? 2 : 1;
}

}  // namespace sextant::cli
