# Finds the C++ Actor Framework 0.17 (Debian ships neither a CMake package nor a .pc file).
#
# Imported targets: CAF::core, CAF::io, CAF::openssl. Sets CAF_FOUND and CAF_VERSION.
find_path(CAF_INCLUDE_DIR caf/all.hpp)
set(_caf_required CAF_INCLUDE_DIR)
foreach(part core io openssl)
  find_library(CAF_${part}_LIBRARY caf_${part})
  list(APPEND _caf_required CAF_${part}_LIBRARY)
endforeach()

if(CAF_INCLUDE_DIR AND EXISTS ${CAF_INCLUDE_DIR}/caf/config.hpp)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp _caf_line REGEX "#define CAF_VERSION ")
  if(_caf_line MATCHES "CAF_VERSION ([0-9]+)")
    math(EXPR _caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _caf_minor "(${CMAKE_MATCH_1} / 100) % 100")
    math(EXPR _caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CAF
  REQUIRED_VARS ${_caf_required}
  VERSION_VAR CAF_VERSION)

if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  foreach(part core io openssl)
    add_library(CAF::${part} SHARED IMPORTED)
    set_target_properties(
      CAF::${part} PROPERTIES IMPORTED_LOCATION ${CAF_${part}_LIBRARY}
                              INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
  endforeach()
  target_link_libraries(CAF::core INTERFACE Threads::Threads)
  target_link_libraries(CAF::io INTERFACE CAF::core)
  target_link_libraries(CAF::openssl INTERFACE CAF::io)
endif()
