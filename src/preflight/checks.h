// The checks that a walk plans: one record each, in this order, whatever happens.
// Ids and codes: reference/gpu-faults.md section 3, and ours; docs/evidence.md lists them.
// Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

#include "preflight/evidence.h"

namespace sextant::preflight {

struct CheckKind {
  std::string_view id;
  Layer layer;
  bool required;
  // By the capability Pod: without it nothing can be said.
  bool by_probe;
  std::string_view codes;  // what it may fail with, with blanks between
  std::string_view proves;
  std::string_view does_not_prove;
};

std::span<const CheckKind> CheckKinds();
const CheckKind* FindCheckKind(std::string_view id);

}  // namespace sextant::preflight
