# Third-party libraries: distribution packages only (docs/adr/0001). Static where the distribution
# has the archive, so that the program needs little more than libc.
set(OPENSSL_USE_STATIC_LIBS ON)
set(Boost_USE_STATIC_LIBS ON)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost 1.81 REQUIRED)

# Finds lib<name>.a, or the shared library where the distribution has no archive.
function(sextant_archive target name)
  find_library(${target}_LIB NAMES lib${name}.a ${name} REQUIRED)
  add_library(dep_${target} INTERFACE)
  target_link_libraries(dep_${target} INTERFACE ${${target}_LIB} ${ARGN})
endfunction()

sextant_archive(nghttp2 nghttp2)
sextant_archive(simdjson simdjson)
sextant_archive(yaml yaml)
sextant_archive(sqlite sqlite3 ${CMAKE_DL_LIBS} m)
sextant_archive(zlib z)
sextant_archive(re2 re2)
# Releases of RE2 since 2023 are made of Abseil.
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
file(STRINGS ${RE2_INCLUDE_DIR}/re2/re2.h re2_on_absl REGEX "absl/" LIMIT_COUNT 1)
if(re2_on_absl)
  find_package(absl REQUIRED)
  target_link_libraries(dep_re2 INTERFACE absl::absl_check absl::absl_log absl::base
    absl::fixed_array absl::flat_hash_map absl::flat_hash_set absl::inlined_vector absl::optional
    absl::span absl::str_format absl::strings absl::synchronization)
endif()

# fmt and spdlog header-only.
add_library(dep_fmt INTERFACE)
target_compile_definitions(dep_fmt INTERFACE FMT_HEADER_ONLY SPDLOG_FMT_EXTERNAL)
