# troupe_capnp(NAME name SCHEMAS a.capnp b.capnp ...)
#
# Generates C++ from Cap'n Proto schemas of the current folder and makes `troupe_<name>`, a static
# library. Sources include "<folder>/a.capnp.h"; the generated headers are SYSTEM, so that our
# warnings do not apply to them. A schema may import another as "/<folder>/b.capnp" or "b.capnp".
find_package(CapnProto 0.9 REQUIRED)
add_library(troupe_dep_capnp INTERFACE)
target_link_libraries(troupe_dep_capnp INTERFACE CapnProto::capnp CapnProto::kj)
add_library(troupe::capnp ALIAS troupe_dep_capnp)

find_program(TROUPE_CAPNP capnp REQUIRED)
find_program(TROUPE_CAPNPC_CPP capnpc-c++ REQUIRED)

function(troupe_capnp)
  cmake_parse_arguments(arg "" "NAME" "SCHEMAS" ${ARGN})
  file(RELATIVE_PATH room ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(out_root ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out_root}/${room})
  set(inputs)
  foreach(schema IN LISTS arg_SCHEMAS)
    get_filename_component(schema ${schema} ABSOLUTE)
    list(APPEND inputs ${schema})
  endforeach()
  set(sources)
  foreach(schema IN LISTS inputs)
    get_filename_component(file ${schema} NAME)
    set(stem ${out_root}/${room}/${file})
    # Any schema may import any other: all of them are inputs of each.
    add_custom_command(
      OUTPUT ${stem}.h ${stem}.c++
      COMMAND ${TROUPE_CAPNP} compile -o ${TROUPE_CAPNPC_CPP}:${out_root}
              --src-prefix=${CMAKE_SOURCE_DIR} -I ${CMAKE_SOURCE_DIR} ${schema}
      DEPENDS ${inputs}
      COMMENT "capnp ${room}/${file}"
      VERBATIM)
    list(APPEND sources ${stem}.c++ ${stem}.h)
  endforeach()
  add_library(troupe_${arg_NAME} STATIC ${sources})
  target_include_directories(troupe_${arg_NAME} SYSTEM PUBLIC ${out_root})
  target_link_libraries(troupe_${arg_NAME} PUBLIC troupe::capnp)
endfunction()
