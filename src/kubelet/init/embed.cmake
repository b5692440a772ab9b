# Writes a C++ file with functions that give the bytes of programs: NAMES and PROGRAMS, lists of
# the same length, joined by "|" (kubelet/embedded.h).
string(REPLACE "|" ";" NAMES "${NAMES}")
string(REPLACE "|" ";" PROGRAMS "${PROGRAMS}")
set(text "#include \"kubelet/embedded.h\"\n")
foreach(name program IN ZIP_LISTS NAMES PROGRAMS)
  string(APPEND text "
asm(R\"(
.section .rodata
.global sextant_${name}_begin
.global sextant_${name}_end
sextant_${name}_begin:
.incbin \"${program}\"
sextant_${name}_end:
.previous
)\");
extern const char sextant_${name}_begin[], sextant_${name}_end[];
namespace sextant::kubelet {
std::string_view Embedded${name}() {
  return {sextant_${name}_begin,
          static_cast<size_t>(sextant_${name}_end - sextant_${name}_begin)};
}
}  // namespace sextant::kubelet
")
endforeach()
file(WRITE ${OUTPUT} "${text}")
