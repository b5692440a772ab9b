# Writes a C++ file that holds PROGRAM's bytes.
file(WRITE ${OUTPUT} "#include \"kubelet/init_embedded.h\"
asm(R\"(
.section .rodata
.global sextant_init_begin
.global sextant_init_end
sextant_init_begin:
.incbin \"${PROGRAM}\"
sextant_init_end:
.previous
)\");
extern const char sextant_init_begin[], sextant_init_end[];
namespace sextant::kubelet {
std::string_view EmbeddedInit() {
  return {sextant_init_begin, static_cast<size_t>(sextant_init_end - sextant_init_begin)};
}
}  // namespace sextant::kubelet
")
