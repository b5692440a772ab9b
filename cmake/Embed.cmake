# sextant_embed(<out.cc> <namespace> <Function> <file>): a source file that defines
# `std::string_view <namespace>::<Function>()` over the bytes of <file>, by .incbin.
function(sextant_embed out namespace function file)
  set(symbol sextant_embedded_${function})
  file(CONFIGURE OUTPUT ${out} CONTENT [[
// Written by cmake/Embed.cmake.
#include <string_view>

__asm__(
    ".section .rodata\n"
    ".global @symbol@\n"
    "@symbol@:\n"
    ".incbin \"@file@\"\n"
    ".global @symbol@_end\n"
    "@symbol@_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char @symbol@[];
extern "C" const char @symbol@_end[];

namespace @namespace@ {
std::string_view @function@();
std::string_view @function@() {
  return {@symbol@, static_cast<std::size_t>(@symbol@_end - @symbol@)};
}
}  // namespace @namespace@
]] @ONLY)
  set_property(SOURCE ${out} APPEND PROPERTY OBJECT_DEPENDS ${file})
endfunction()
