# troupe_rust_staticlib(NAME name CRATE dir LIB stem [HEADERS dir])
#
# Builds the cargo crate in CRATE (crate-type "staticlib") by `cargo build --release --locked` into
# the build folder and makes `troupe_<name>`, an imported static library, from lib<LIB>.a; HEADERS
# is its include path. The cargo must support the crate's rust-version: it is the one in the
# variable CARGO, cargo on the PATH, or Debian's cargo-web. An edit of a source rebuilds the crate.
#
# troupe_rust_library(NAME name CRATE dir LIB stem)
#
# Builds the crate in CRATE (crate-type "cdylib") in the same way: the target <name>, not part of the
# default build, makes lib<LIB>.so next to the program.
add_custom_target(troupe_rust) # builds every crate
find_program(TROUPE_CARGO NAMES $ENV{CARGO} cargo cargo-web)
# One cargo at a time: they share a folder, and a second would only wait for the first.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS cargo=1)

# Adds the command that builds `lib` from the crate in folder `crate`.
function(_troupe_cargo_build name crate lib)
  if(NOT TROUPE_CARGO)
    message(FATAL_ERROR "no cargo found: run ./dev setup")
  endif()
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${crate}/src/*.rs)
  list(APPEND inputs ${CMAKE_SOURCE_DIR}/runtime/text/rust/src/edge.rs)  # of all crates
  list(APPEND inputs ${crate}/Cargo.toml ${crate}/Cargo.lock)
  # Without sanitizers in all builds: they would need an instrumented Rust standard library.
  add_custom_command(
    OUTPUT ${lib}
    COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${CMAKE_BINARY_DIR}/cargo CARGO_TERM_COLOR=never
            ${TROUPE_CARGO} build --release --locked --quiet --manifest-path ${crate}/Cargo.toml
    COMMAND ${CMAKE_COMMAND} -E touch ${lib}
    DEPENDS ${inputs}
    COMMENT "cargo build ${name}"
    JOB_POOL cargo
    VERBATIM)
endfunction()

function(troupe_rust_staticlib)
  cmake_parse_arguments(arg "" "NAME;CRATE;LIB;HEADERS" "" ${ARGN})
  get_filename_component(crate ${arg_CRATE} ABSOLUTE)
  set(lib ${CMAKE_BINARY_DIR}/cargo/release/lib${arg_LIB}.a)
  _troupe_cargo_build(${arg_NAME} ${crate} ${lib})
  add_custom_target(troupe_${arg_NAME}_cargo DEPENDS ${lib})
  add_dependencies(troupe_rust troupe_${arg_NAME}_cargo)
  add_library(troupe_${arg_NAME} STATIC IMPORTED GLOBAL)
  set_target_properties(troupe_${arg_NAME} PROPERTIES IMPORTED_LOCATION ${lib})
  if(arg_HEADERS)
    get_filename_component(headers ${arg_HEADERS} ABSOLUTE)
    target_include_directories(troupe_${arg_NAME} INTERFACE ${headers})
  endif()
  find_package(Threads REQUIRED)
  target_link_libraries(troupe_${arg_NAME} INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
  add_dependencies(troupe_${arg_NAME} troupe_${arg_NAME}_cargo)
endfunction()

function(troupe_rust_library)
  cmake_parse_arguments(arg "" "NAME;CRATE;LIB" "" ${ARGN})
  get_filename_component(crate ${arg_CRATE} ABSOLUTE)
  set(built ${CMAKE_BINARY_DIR}/cargo/release/lib${arg_LIB}.so)
  set(lib ${CMAKE_BINARY_DIR}/lib${arg_LIB}.so)
  _troupe_cargo_build(${arg_NAME} ${crate} ${built})
  add_custom_command(
    OUTPUT ${lib}
    COMMAND ${CMAKE_COMMAND} -E copy ${built} ${lib}
    DEPENDS ${built}
    COMMENT "lib${arg_LIB}.so"
    VERBATIM)
  add_custom_target(${arg_NAME} DEPENDS ${lib})
endfunction()
