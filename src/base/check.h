// CHECK: an invariant of ours that must hold; stops the process with place and text. Never for
// input from outside (that is an Error). DCHECK is the same in debug builds only.
#pragma once

namespace sextant {
[[noreturn]] void CheckFailed(const char* file, int line, const char* what);
}  // namespace sextant

#define CHECK(cond) \
  (static_cast<bool>(cond) ? void(0) : ::sextant::CheckFailed(__FILE__, __LINE__, #cond))
#ifdef NDEBUG
#define DCHECK(cond) void(sizeof(static_cast<bool>(cond)))
#else
#define DCHECK(cond) CHECK(cond)
#endif
