# troupe_build_id(NAME name PREFIX text NAMESPACE n SYMBOL s HEADER h ROOMS folder...)
#   `troupe_<name>`, a static library with one constant, the build id: PREFIX and a SHA-256 over all
#   .cpp, .hpp and .def files of the rooms, the compiler's version and the flags. Two binaries with the
#   same id were built from the same sources in the same way. Generated anew when a source changes.
function(troupe_build_id)
  cmake_parse_arguments(arg "" "NAME;PREFIX;NAMESPACE;SYMBOL;HEADER" "ROOMS" ${ARGN})
  set(sources)
  foreach(room IN LISTS arg_ROOMS)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.cpp
         ${CMAKE_SOURCE_DIR}/${room}/*.hpp ${CMAKE_SOURCE_DIR}/${room}/*.def)
    list(APPEND sources ${found})
  endforeach()
  set(folder ${CMAKE_BINARY_DIR}/generated/build_id)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  file(CONFIGURE OUTPUT ${folder}/${arg_NAME}.list CONTENT "${sources}" @ONLY)
  set(source ${folder}/${arg_NAME}.cpp)
  set(script ${CMAKE_SOURCE_DIR}/runtime/cmake/write_build_id.cmake)
  add_custom_command(
    OUTPUT ${source}
    COMMAND
      ${CMAKE_COMMAND} -DOUT=${source} -DROOT=${CMAKE_SOURCE_DIR} -DLIST=${folder}/${arg_NAME}.list
      "-DBUILD=${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${TROUPE_SANITIZE}"
      -DPREFIX=${arg_PREFIX} -DNAMESPACE=${arg_NAMESPACE} -DSYMBOL=${arg_SYMBOL}
      -DHEADER=${arg_HEADER} -P ${script}
    DEPENDS ${sources} ${folder}/${arg_NAME}.list ${script}
    COMMENT "build id ${arg_NAME}"
    VERBATIM)
  add_library(troupe_${arg_NAME} STATIC ${source})
  target_include_directories(troupe_${arg_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(troupe_${arg_NAME} PRIVATE troupe_warnings)
  set_target_properties(troupe_${arg_NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
