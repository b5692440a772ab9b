# api_gen and what it makes: ${CMAKE_BINARY_DIR}/gen/api/tables.cc and views/*.h. Included by
# src/CMakeLists.txt, since a rule holds in the folder of the target that needs its output.
set(proto_dir ${CMAKE_SOURCE_DIR}/src/api/proto)
set(gen_dir ${CMAKE_BINARY_DIR}/gen/api)
file(GLOB protos CONFIGURE_DEPENDS RELATIVE ${proto_dir} ${proto_dir}/*.proto)
list(TRANSFORM protos PREPEND ${proto_dir}/ OUTPUT_VARIABLE proto_paths)
file(MAKE_DIRECTORY ${gen_dir}/views ${gen_dir}/options)

add_custom_command(
  OUTPUT ${gen_dir}/options/options.pb.cc ${gen_dir}/options/options.pb.h
  COMMAND protobuf::protoc -I ${proto_dir} -I ${Protobuf_INCLUDE_DIRS}
          --cpp_out=${gen_dir}/options options.proto
  DEPENDS ${proto_dir}/options.proto VERBATIM)
set(src ${CMAKE_SOURCE_DIR}/src/api/gen)
add_executable(api_gen ${src}/gen_main.cc ${src}/model.cc ${src}/tables.cc ${src}/views.cc
  ${gen_dir}/options/options.pb.cc)
set_source_files_properties(${gen_dir}/options/options.pb.cc PROPERTIES COMPILE_OPTIONS -w)
target_include_directories(api_gen SYSTEM PRIVATE ${gen_dir}/options)
target_link_libraries(api_gen PRIVATE sextant_flags protobuf::libprotobuf)

add_custom_command(
  OUTPUT ${gen_dir}/api.pb
  COMMAND protobuf::protoc -I ${proto_dir} -I ${Protobuf_INCLUDE_DIRS} --include_imports
          --include_source_info --descriptor_set_out=${gen_dir}/api.pb ${protos}
  DEPENDS ${proto_paths} VERBATIM)

# A view file for each file with messages.
set(SEXTANT_API_GENERATED ${gen_dir}/tables.cc)
foreach(proto ${protos})
  string(REGEX REPLACE "\\.proto$" "" stem ${proto})
  if(NOT stem MATCHES "^(any|options|quantity|intstr|runtime)$")
    list(APPEND SEXTANT_API_GENERATED ${gen_dir}/views/${stem}.h ${gen_dir}/views/${stem}_mut.h)
  endif()
endforeach()
set(resources ${proto_dir}/resources.txt ${proto_dir}/resources_sextant.txt)
add_custom_command(
  OUTPUT ${SEXTANT_API_GENERATED}
  COMMAND api_gen ${gen_dir}/api.pb ${gen_dir} ${resources}
  DEPENDS api_gen ${gen_dir}/api.pb ${resources} VERBATIM)

# The same input gives the same output, byte by byte.
add_test(NAME api_gen_repeats COMMAND sh -c
  "$<TARGET_FILE:api_gen> ${gen_dir}/api.pb again ${proto_dir}/resources.txt ${proto_dir}/resources_sextant.txt
   cd again && for f in tables.cc views/*; do cmp $f ${gen_dir}/$f || exit 1; done"
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
set_tests_properties(api_gen_repeats PROPERTIES LABELS room)
