# Compile and link flags that hold for every target.
#
# Arithmetic: the baseline is x86-64-v2 everywhere, never -march=native; kernels/CMakeLists.txt sets
# more for single source files. Contraction is off, because a fused multiply-add that the compiler
# chose would differ between kernel levels: kernels write std::fma where they mean it.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(TROUPE_SANITIZE "" CACHE STRING "Value for -fsanitize=; empty for none")

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(WARNING "Troupe is checked with g++ 12; this is ${CMAKE_CXX_COMPILER_ID} "
                  "${CMAKE_CXX_COMPILER_VERSION}. The exactness tests are what tells.")
endif()

add_compile_options(
  -march=x86-64-v2
  -ffp-contract=off
  -fno-math-errno
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
endif()

# mold links a binary against libtorch_cpu in under a second; plain ld takes ten.
find_program(TROUPE_MOLD mold)
if(TROUPE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# ccache with relative paths, so that a second clone of the same commit compiles from the cache.
find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  set(launcher
      ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros
      ${TROUPE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# The warnings of our own targets, which link it privately; third-party headers are SYSTEM.
add_library(troupe_warnings INTERFACE)
target_compile_options(
  troupe_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)

# g++ collects its own garbage less often: 5 to 7 % of the time of a unit, for some 250 MiB more.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=100 --param ggc-min-heapsize=800000>")
endif()

# In a unity build g++ sees sources as included files, and warns of types that use an anonymous
# namespace of one. The warning is meant for headers; no source is included twice.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(troupe_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# g++ 12 falsely warns of overlapping copies where a string literal is put before a std::string
# (https://gcc.gnu.org/PR105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(troupe_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
