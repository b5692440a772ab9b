# sextant_room(<name> [DEPS lib...] [TEST_DEPS lib...])
# One folder under src/ is one room: its *.cc become the library room_<name>, its *_test.cc the
# program <name>_test, its *_bench.cc the program <name>_bench. Its *_fuzz.cc go into <name>_test,
# which runs them over the inputs in testdata/fuzz, and with SEXTANT_FUZZ into <name>_fuzz. Files are
# found by glob, so a new file needs no entry here.
#
# Two targets build the tests and nothing else: room_tests those of the rooms (ctest label "room"),
# program_tests the program and the tests of the whole (label "program", tests/CMakeLists.txt).
add_custom_target(room_tests)
add_custom_target(program_tests)

add_library(sextant_flags INTERFACE)
target_include_directories(sextant_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/gen)
target_compile_options(sextant_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wno-missing-field-initializers
  -fno-omit-frame-pointer -fstack-protector-strong -ffunction-sections -fdata-sections)
target_compile_definitions(sextant_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_link_libraries(sextant_flags INTERFACE dep_fmt Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(sextant_flags INTERFACE -ftrivial-auto-var-init=zero)
  if(SEXTANT_SANITIZE)
    target_compile_options(sextant_flags INTERFACE $<$<CONFIG:Debug>:-gline-tables-only>)
  endif()
endif()
# Newer standard libraries deprecate what packaged headers (RapidCheck) still use.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles([[
#include <version>
#if _GLIBCXX_RELEASE < 13
#error old
#endif
int main() {}
]] SEXTANT_NEW_LIBSTDCXX)
if(SEXTANT_NEW_LIBSTDCXX)
  target_compile_options(sextant_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SEXTANT_SANITIZE)
  target_compile_options(sextant_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  set(sextant_static_runtime -static-libstdc++ -static-libgcc)
endif()
if(SEXTANT_SANITIZE)
  # Not optimised: -O1 takes two and a half times as long to compile, and its tests find no more.
  target_compile_options(sextant_flags INTERFACE -fsanitize=${SEXTANT_SANITIZE} -O0
    -fno-sanitize-recover=all)
  if(SEXTANT_SANITIZE MATCHES undefined)
    # What these find, the address sanitizer finds as well; they cost a third of the compile time.
    target_compile_options(sextant_flags INTERFACE -fno-sanitize=null,vptr,object-size)
  endif()
  target_link_options(sextant_flags INTERFACE -fsanitize=${SEXTANT_SANITIZE})
endif()

# The precompiled header: the standard library and fmt, nothing of ours.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
add_library(sextant_pch STATIC ${CMAKE_BINARY_DIR}/pch.cc)
target_link_libraries(sextant_pch PUBLIC sextant_flags)
target_precompile_headers(sextant_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(sextant_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

function(sextant_room name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS;SOURCES" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzes ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER fuzzes INCLUDE REGEX "_fuzz\\.cc$")
  if(fuzzes)
    list(APPEND tests ${fuzzes} ${CMAKE_SOURCE_DIR}/src/base/fuzz_replay_main.cc)
  endif()
  list(FILTER sources EXCLUDE REGEX "(_(test|bench|fuzz|main)|/main)\\.cc$")
  if(NOT sources AND NOT ARG_SOURCES)
    set(sources ${CMAKE_BINARY_DIR}/pch.cc)  # a room of headers only, so far
  endif()
  add_library(room_${name} STATIC ${sources} ${ARG_SOURCES})
  set_target_properties(room_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_precompile_headers(room_${name} REUSE_FROM sextant_pch)
  target_link_libraries(room_${name} PUBLIC sextant_flags ${ARG_DEPS})
  if(tests)
    add_executable(${name}_test ${tests})
    target_precompile_headers(${name}_test REUSE_FROM sextant_pch)
    target_link_libraries(${name}_test PRIVATE room_${name} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE SEXTANT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS room)
    add_dependencies(room_tests ${name}_test)
  endif()
  if(fuzzes AND SEXTANT_FUZZ)
    add_executable(${name}_fuzz EXCLUDE_FROM_ALL ${fuzzes} ${CMAKE_SOURCE_DIR}/src/base/fuzz_main.cc)
    target_precompile_headers(${name}_fuzz REUSE_FROM sextant_pch)
    target_link_libraries(${name}_fuzz PRIVATE room_${name} ${ARG_TEST_DEPS})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
  if(benches)
    add_executable(${name}_bench EXCLUDE_FROM_ALL ${benches})
    target_precompile_headers(${name}_bench REUSE_FROM sextant_pch)
    target_link_libraries(${name}_bench PRIVATE room_${name} benchmark benchmark_main)
  endif()
endfunction()

# sextant_program(<name> <source>... DEPS lib...): a program, at the top of the build folder. In
# release builds the C++ runtime is linked in, so that it runs on any distribution of its age.
function(sextant_program name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_precompile_headers(${name} REUSE_FROM sextant_pch)
  target_link_libraries(${name} PRIVATE sextant_flags ${ARG_DEPS} ${sextant_static_runtime})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
