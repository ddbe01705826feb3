# Helpers that keep each room's CMakeLists.txt at a few lines. Sources are found by glob and
# re-checked at every build, so adding a file needs no list edit.
#
# A room is a unity build: groups of 8 sources (or GROUP) are compiled as one, because most of the
# time goes into headers that they share. Names in anonymous namespaces must therefore differ within
# a room, and `using namespace` stands only inside functions. CMake leaves sources that have compile
# options of their own out of the groups.
#
# troupe_library(NAME name [RECURSE] [ONLY regex...] [EXCLUDE regex...] [PUBLIC_DEPS t...]
#                [PRIVATE_DEPS t...] [GROUP n] [PCH torch] [INNER_LOOPS])
#   `troupe_<name>`, a static library from *.cpp of the current folder (RECURSE: and its subfolders;
#   ONLY: the files that match one of the expressions; EXCLUDE: those that match none). The include
#   path is the repository root. A room without sources is an INTERFACE library.
#   A release build optimises rooms with INNER_LOOPS fully, and all others lightly (-O1): these wait
#   for messages and files, and they compile in three quarters of the time.
# troupe_test(NAME name [DEPS t...] [LABELS l...] [TIMEOUT s] [GROUP n] [PCH torch]
#             [ONLY regex...] [EXCLUDE regex...] [CUDA | CUDA_TESTS filter | CUDA_ONLY filter])
#   One GoogleTest binary `test_<name>` from tests/unit/<current folder>/**/*_test.cpp. Extra
#   labels: `model` (needs the real small model), `full` (only in `./dev test --full`).
#   CUDA: each test runs on the emulated device, with threads and blocks in order, in reverse and in
#   random orders, and, if there is an nvcc, on the machine's GPU (label `gpu`; skipped without a GPU).
#   CUDA_TESTS: all tests run without a device, those of the GoogleTest filter also as with CUDA, in
#   reverse in `./dev test --full` alone.
#   CUDA_ONLY: those of the filter run only as with CUDA, all others without a device.
# troupe_program(NAME file SOURCES s... [DEPS t...])
#   A helper binary build/bin/<file> that oracle tests drive.
# troupe_opens_trainers(target)
#   For an executable that calls learn::trainers(), which opens libtroupe_learn.so: it exports the
#   functions that the library takes from it, and building it also builds the library.
# troupe_binary(name source library)
#   A program for users, build/<name>, stripped; its symbols lie next to it in <name>.debug, where
#   debuggers find them. It opens the trainers.
# troupe_oracle_test(NAME file.py [DEPENDS t...] [LABELS l...] [TIMEOUT s] [ENVIRONMENT name])
#   Runs tests/oracle/<file.py> under pytest in the `oracle` environment, or in the one that is
#   named, which the test itself makes at first need, and without which it fails.
#   tests/CMakeLists.txt registers every other *_test.py of that folder with the defaults, and the
#   files of TROUPE_TOGETHER_<name>, which one process runs, as oracle.<name>.
include(GoogleTest)

set(_troupe_home "$ENV{TROUPE_HOME}")
if(NOT _troupe_home)
  set(_troupe_home "$ENV{HOME}/.cache/troupe")
endif()
set(TROUPE_TEST_MODEL
    "${_troupe_home}/models/SmolLM2-135M-Instruct"
    CACHE PATH "Hugging Face folder of the real small model, for tests labelled `model`")
set(TROUPE_TEST_ENVIRONMENT
    "TROUPE_TEST_MODEL=${TROUPE_TEST_MODEL}"
    "TROUPE_SOURCE_DIR=${CMAKE_SOURCE_DIR}"
    "TROUPE_BUILD_DIR=${CMAKE_BINARY_DIR}"
    "TROUPE_GUIDE_LIBRARY=${CMAKE_BINARY_DIR}/libtroupe_guide.so"
    "TROUPE_TABLES_LIBRARY=${CMAKE_BINARY_DIR}/libtroupe_tables.so"
    "TROUPE_ORACLE_PYTHON=${CMAKE_SOURCE_DIR}/.venv/oracle/bin/python"
    "TROUPE_CHECK_INVARIANTS=1"
    "OMP_NUM_THREADS=1")

function(_troupe_group_sources target size)
  if(NOT size)
    set(size 8)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

function(_troupe_optimise_lightly target)
  set(level -O1)
  if(ARGC GREATER 1)
    set(level ${ARGV1})
  endif()
  # With so little inlining g++ 12 gives false warnings about optionals and Asio's coroutine frames.
  target_compile_options(
    ${target}
    PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:${level};-Wno-maybe-uninitialized;-Wno-mismatched-new-delete>")
endfunction()

function(_troupe_use_pch target pch)
  if(pch STREQUAL "torch")
    target_precompile_headers(${target} REUSE_FROM troupe_torch_pch)
  elseif(pch)
    message(FATAL_ERROR "${target}: no precompiled header set named '${pch}'; there is: torch")
  endif()
endfunction()

function(troupe_library)
  cmake_parse_arguments(arg "RECURSE;INNER_LOOPS" "NAME;GROUP;PCH" "PUBLIC_DEPS;PRIVATE_DEPS;ONLY;EXCLUDE" ${ARGN})
  set(glob GLOB)
  if(arg_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(arg_ONLY)
    list(JOIN arg_ONLY "|" only)
    list(FILTER sources INCLUDE REGEX "${only}")
  endif()
  foreach(regex IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${regex})
  endforeach()
  set(target troupe_${arg_NAME})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC_DEPS}
                                    PRIVATE ${arg_PRIVATE_DEPS} troupe_warnings)
    _troupe_group_sources(${target} "${arg_GROUP}")
    if(NOT arg_INNER_LOOPS)
      _troupe_optimise_lightly(${target})
    endif()
    _troupe_use_pch(${target} "${arg_PCH}")
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${arg_PUBLIC_DEPS})
  endif()
endfunction()

# Registers the tests of a GoogleTest binary as <prefix>.<Suite>.<Case>. They run in
# TROUPE_TEST_ENVIRONMENT, where `environment` adds or replaces entries. The remaining arguments are
# labels and, after FILTER, a GoogleTest filter. If a binary is registered several times, prefix and
# timeout together must differ. Names are read when ctest runs, so a build never starts a test
# binary. Properties that are lists do not survive that late discovery; a file read after it sets
# them.
function(troupe_discover_tests target prefix timeout environment)
  cmake_parse_arguments(arg "" "FILTER" "" ${ARGN})
  set(filter)
  if(arg_FILTER)
    set(filter TEST_FILTER ${arg_FILTER})
  endif()
  set(list ${target}_${prefix}_${timeout})
  gtest_discover_tests(
    ${target}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${prefix}."
    TEST_LIST ${list}
    ${filter}
    PROPERTIES TIMEOUT ${timeout})
  set(properties ${CMAKE_CURRENT_BINARY_DIR}/${list}_properties.cmake)
  file(WRITE ${properties} "foreach(name IN LISTS ${list})
  set_tests_properties(\${name} PROPERTIES LABELS [==[${arg_UNPARSED_ARGUMENTS}]==]
                       ENVIRONMENT [==[${TROUPE_TEST_ENVIRONMENT};${environment}]==])
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties})
endfunction()

# The same, as <prefix>.<Suite>: one process for all tests of a suite, for a binary that takes long to
# start. Names are read from `sources`, the binary's own, when CMake runs; a test of the binary's
# list, <prefix>.suites, fails if some are missing.
function(troupe_suite_tests target prefix timeout environment)
  cmake_parse_arguments(arg "" "FILTER" "SOURCES" ${ARGN})
  string(REPLACE "*" ".*" regex "^${arg_FILTER}$")
  set(suites)
  foreach(source IN LISTS arg_SOURCES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} tests REGEX "^TEST(_F|_P)?[(]")
    foreach(test IN LISTS tests)
      string(REGEX REPLACE "^TEST([_FP]*)[(]([A-Za-z0-9]+), *([A-Za-z0-9]+).*" "\\1;\\2;\\3" test "${test}")
      list(GET test 0 kind)
      list(GET test 1 suite)
      list(GET test 2 name)
      if(arg_FILTER AND NOT "${suite}.${name}" MATCHES "${regex}")
        continue()
      endif()
      list(APPEND suites ${suite})
      if(kind STREQUAL "_P")
        list(APPEND tests_of_${suite} "*/${suite}.${name}/*")
      else()
        list(APPEND tests_of_${suite} "${suite}.${name}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES suites)
  foreach(suite IN LISTS suites)
    list(JOIN tests_of_${suite} ":" tests)
    if(NOT arg_FILTER)
      set(tests "${suite}.*:*/${suite}.*")
    endif()
    add_test(NAME ${prefix}.${suite} COMMAND ${target} --gtest_filter=${tests})
    set_tests_properties(
      ${prefix}.${suite}
      PROPERTIES TIMEOUT ${timeout} LABELS "${arg_UNPARSED_ARGUMENTS}"
                 ENVIRONMENT "${TROUPE_TEST_ENVIRONMENT};${environment}")
  endforeach()
  if(arg_FILTER)
    return()
  endif()
  list(SORT suites)
  list(JOIN suites " " suites)
  add_test(
    NAME ${prefix}.suites
    COMMAND
      sh -c
      "found=$('$<TARGET_FILE:${target}>' --gtest_list_tests | sed -n 's|^\\([^ /]*/\\)\\{0,1\\}\\([A-Za-z0-9]*\\)[.].*|\\2|p' | LC_ALL=C sort -u | xargs) && test \"$found\" = '${suites}' || { echo \"has $found\"; exit 1; }"
  )
  set_tests_properties(${prefix}.suites PROPERTIES LABELS "${arg_UNPARSED_ARGUMENTS}")
endfunction()

function(troupe_test)
  cmake_parse_arguments(arg "CUDA;BY_SUITE" "NAME;TIMEOUT;GROUP;PCH;CUDA_TESTS;CUDA_ONLY" "DEPS;LABELS;ONLY;EXCLUDE" ${ARGN})
  file(RELATIVE_PATH room ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${room}/*_test.cpp)
  if(arg_ONLY)
    list(JOIN arg_ONLY "|" only)
    list(FILTER sources INCLUDE REGEX "${only}")
  endif()
  foreach(regex IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${regex})
  endforeach()
  if(NOT sources)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(target test_${arg_NAME})
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target}
                             PRIVATE TROUPE_TEST_DATA_DIR="${CMAKE_SOURCE_DIR}/tests/data")
  target_link_libraries(${target} PRIVATE ${arg_DEPS} troupe::gtest troupe_warnings)
  _troupe_group_sources(${target} "${arg_GROUP}")
  _troupe_optimise_lightly(${target} -Og)
  _troupe_use_pch(${target} "${arg_PCH}")
  set(register troupe_discover_tests)
  set(from)
  if(arg_BY_SUITE)
    set(register troupe_suite_tests)
    set(from SOURCES ${sources})
  endif()
  if(NOT arg_CUDA)
    set(elsewhere)
    if(arg_CUDA_ONLY)
      set(elsewhere FILTER "-${arg_CUDA_ONLY}")
    endif()
    cmake_language(CALL ${register} ${target} ${arg_NAME} ${arg_TIMEOUT} "" unit ${arg_NAME}
                   ${arg_LABELS} ${elsewhere} ${from})
    if(NOT arg_CUDA_TESTS AND NOT arg_CUDA_ONLY)
      return()
    endif()
    list(APPEND arg_LABELS FILTER ${arg_CUDA_TESTS}${arg_CUDA_ONLY})
    string(APPEND arg_NAME _cuda)
    set(long full) # the kernels themselves run in reverse every day
  endif()
  add_dependencies(${target} troupe_cuda_emulated)
  set(emulated TROUPE_CUDA_LIBRARY=${CMAKE_BINARY_DIR}/bin/libtroupe_cuda_emulated.so)
  cmake_language(CALL ${register} ${target} ${arg_NAME} ${arg_TIMEOUT}
                 "${emulated};TROUPE_CUDA_EMULATOR=guard" unit ${arg_NAME} ${arg_LABELS} ${from})
  cmake_language(CALL ${register} ${target} ${arg_NAME}_reverse ${arg_TIMEOUT}
                 "${emulated};TROUPE_CUDA_EMULATOR=guard,reverse" unit ${arg_NAME} ${long} ${arg_LABELS} ${from})
  if(arg_CUDA)
    set(label_2) # thread by thread
    set(label_3 full) # by whole warps
    foreach(seed 2 3)
      troupe_discover_tests(${target} ${arg_NAME}_random_${seed} ${arg_TIMEOUT}
                            "${emulated};TROUPE_CUDA_EMULATOR=guard,random:${seed}" unit ${arg_NAME}
                            ${label_${seed}} ${arg_LABELS})
    endforeach()
  endif()
  if(TROUPE_CUDA_ROOT_13)
    troupe_discover_tests(${target} ${arg_NAME}_gpu ${arg_TIMEOUT}
                          TROUPE_CUDA_LIBRARY=${CMAKE_BINARY_DIR}/libtroupe_cuda.so gpu ${arg_LABELS})
  endif()
endfunction()

function(troupe_program)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;DEPS" ${ARGN})
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS} troupe_warnings)
endfunction()

# troupe_side_process_text(NAMESPACE N CONSTANT C HEADER H SOURCES a.py ...): texts of Python, one after the
# other, as the constant N::C in generated/H, so that the binary contains them. @VARIABLES@ are replaced.
function(troupe_side_process_text)
  cmake_parse_arguments(arg "" "NAMESPACE;CONSTANT;HEADER" "SOURCES" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_SOURCES})
  set(text "")
  foreach(source IN LISTS arg_SOURCES)
    file(READ ${source} one)
    string(APPEND text "${one}\n\n")
  endforeach()
  string(CONFIGURE "${text}" text @ONLY)
  # In pieces, because a literal of C++ has a bound.
  string(LENGTH "${text}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND pieces "R\"PYTHON(${piece})PYTHON\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  file(
    CONFIGURE
    OUTPUT ${CMAKE_BINARY_DIR}/generated/${arg_HEADER}
    CONTENT
      "// Texts of Python that the program starts.
#pragma once
namespace @arg_NAMESPACE@ {
inline constexpr char @arg_CONSTANT@[] =
@pieces@;
}
"
    @ONLY)
endfunction()

# The rooms whose functions libtroupe_learn.so takes from the program that opens it, lowest first.
set(TROUPE_TRAINERS_USE runtime/core kernels runtime/collective runtime/store runtime/text
                        runtime/data runtime/experience runtime/model)

# Links these rooms whole, not only what the program itself calls, so that the library finds them.
function(troupe_opens_trainers target)
  set(rooms)
  foreach(room IN LISTS TROUPE_TRAINERS_USE)
    get_filename_component(name ${room} NAME)
    list(APPEND rooms troupe_${name})
  endforeach()
  list(JOIN rooms "," rooms)
  set_target_properties(${target} PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${rooms}")
  target_link_options(${target} PRIVATE "LINKER:--export-dynamic-symbol=_Z*6troupe*")
  add_dependencies(${target} troupe_learn_library)
endfunction()

function(troupe_binary name source library)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${library} troupe_warnings)
  # A copied program finds its libraries in ../lib. The old kind of run path (RPATH) also serves the
  # libraries that those libraries need.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                           BUILD_RPATH "$ORIGIN/../lib")
  target_link_options(${name} PRIVATE LINKER:--disable-new-dtags)
  troupe_opens_trainers(${name})
  if(NOT TROUPE_SANITIZE)
    add_custom_command(
      TARGET ${name}
      POST_BUILD
      COMMAND ${CMAKE_OBJCOPY} --only-keep-debug ${name} ${name}.debug
      COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --add-gnu-debuglink=${name}.debug ${name}
      WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
      BYPRODUCTS ${CMAKE_BINARY_DIR}/${name}.debug
      VERBATIM)
  endif()
endfunction()

# The start of transformers and TRL takes 6 to 9 seconds of processor time, as long as many a file.
set(TROUPE_TOGETHER models learning templates serving)
set(TROUPE_TOGETHER_models
    model_logits_test.py model_gradients_test.py model_folder_test.py model_scores_test.py
    model_longrope_test.py model_real_test.py)
set(TROUPE_TOGETHER_learning test_learn.py test_learn_rl.py test_learn_step.py test_learn_turns.py
                             critic_test.py)
set(TROUPE_TOGETHER_templates text_template_test.py text_tokenizer_test.py tool_schema_test.py)
set(TROUPE_TOGETHER_serving serve_test.py serve_tools_test.py serve_guide_test.py whole_messages_test.py)

function(troupe_oracle_together name)
  list(TRANSFORM TROUPE_TOGETHER_${name} PREPEND ${CMAKE_SOURCE_DIR}/tests/oracle/ OUTPUT_VARIABLE files)
  add_test(
    NAME oracle.${name}
    COMMAND ${CMAKE_SOURCE_DIR}/.venv/oracle/bin/python -m pytest -q -rs -p no:cacheprovider ${files}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/oracle)
  set_tests_properties(
    oracle.${name} PROPERTIES LABELS "oracle" TIMEOUT 900 COST 100 SKIP_RETURN_CODE 77
                              ENVIRONMENT "${TROUPE_TEST_ENVIRONMENT}")
endfunction()

function(troupe_oracle_test)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT;ENVIRONMENT" "DEPENDS;LABELS" ${ARGN})
  set(script ${CMAKE_SOURCE_DIR}/tests/oracle/${arg_NAME})
  if(NOT EXISTS ${script})
    message(FATAL_ERROR "troupe_oracle_test: no ${script}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  get_filename_component(stem ${arg_NAME} NAME_WE)
  set_property(GLOBAL APPEND PROPERTY TROUPE_ORACLE_TESTS ${arg_NAME})
  # `ninja oracle_<file>` builds what this one test needs.
  add_custom_target(oracle_${stem})
  if(arg_DEPENDS)
    add_dependencies(oracle_${stem} ${arg_DEPENDS})
  endif()
  foreach(name IN LISTS TROUPE_TOGETHER)
    if(arg_NAME IN_LIST TROUPE_TOGETHER_${name})
      return()
    endif()
  endforeach()
  set(pytest ${CMAKE_SOURCE_DIR}/.venv/oracle/bin/python -m pytest -q -rs -p no:cacheprovider ${script})
  if(arg_ENVIRONMENT)
    set(pytest ${CMAKE_SOURCE_DIR}/tests/oracle/in_environment.sh ${arg_ENVIRONMENT} ${arg_NAME})
  endif()
  add_test(
    NAME oracle.${stem}
    COMMAND ${pytest}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/oracle)
  set_tests_properties(
    oracle.${stem}
    PROPERTIES LABELS "oracle;${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST 20 SKIP_RETURN_CODE 77
               ENVIRONMENT "${TROUPE_TEST_ENVIRONMENT}")
endfunction()
