# troupe_cuda_library(NAME name TOOLKIT 13|12 LIBRARY file.so ARCHS a... SOURCES s...)
#
# Target <name>, no part of the default build, since nvcc takes as long as half of the rest: LIBRARY,
# a shared library of .cu files for the GPUs of ARCHS. It contains the CUDA runtime, so only the
# driver is needed where it runs. CMake's own CUDA language is not used: it wants an installed toolkit
# and compiles trial programs.
#
# TROUPE_CUDA_ROOT_13: the `cuda` environment (.venv/cuda, made by `./dev build --cuda` and, where there
# is a GPU, by `./dev test`). TROUPE_CUDA_ROOT_12: .venv/cuda12 (cuda12_toolkit.sh, for
# `./dev build --cuda=12`). Each is empty where it was not made.
set(TROUPE_CUDA_ARCHS "90" CACHE STRING "Compute capabilities of the usual build, without the dot")

file(GLOB TROUPE_CUDA_ROOT_13 "${CMAKE_SOURCE_DIR}/.venv/cuda/lib/python3*/site-packages/nvidia/cu13")
set(TROUPE_CUDA_ROOT_12)
if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/cuda12/.complete)
  set(TROUPE_CUDA_ROOT_12 ${CMAKE_SOURCE_DIR}/.venv/cuda12)
  # The compiler of CUDA 12.4 takes g++ up to 13 alone.
  find_program(TROUPE_CUDA12_GXX NAMES g++-12 g++-13)
endif()

# The arithmetic is that of docs/adr/0003: denormals flushed, no contraction to fused multiply-add,
# divisions and roots correctly rounded.
set(TROUPE_NVCC_FLAGS
    -std=c++20
    -O3
    -ftz=true
    -fmad=false
    -prec-div=true
    -prec-sqrt=true
    --expt-relaxed-constexpr
    --diag-suppress=20012
    -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off)

set(_flags_13 -compress-mode=size)
set(_flags_12 -Xfatbin -compress-all -ccbin=${TROUPE_CUDA12_GXX})

function(troupe_cuda_library)
  cmake_parse_arguments(arg "" "NAME;TOOLKIT;LIBRARY" "ARCHS;SOURCES" ${ARGN})
  set(root ${TROUPE_CUDA_ROOT_${arg_TOOLKIT}})
  set(archs)
  foreach(arch IN LISTS arg_ARCHS)
    list(APPEND archs -gencode=arch=compute_${arch},code=sm_${arch})
  endforeach()
  # PTX of the newest architecture, which the driver compiles for GPUs newer than that.
  list(GET arg_ARCHS -1 newest)
  list(APPEND archs -gencode=arch=compute_${newest},code=compute_${newest})
  set(objects)
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(stem ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.${stem}.cu.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${root}/bin/nvcc ${TROUPE_NVCC_FLAGS} ${_flags_${arg_TOOLKIT}} ${archs} -I${CMAKE_SOURCE_DIR} -MD -MF ${object}.d
              -c ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "nvcc ${arg_TOOLKIT} ${stem}.cu"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(
    OUTPUT ${arg_LIBRARY}
    COMMAND ${CMAKE_CXX_COMPILER} -shared -o ${arg_LIBRARY} ${objects} -Wl,--no-undefined
            ${root}/lib/libcudart_static.a -ldl -lrt -lpthread
    DEPENDS ${objects}
    COMMENT "${arg_NAME}"
    VERBATIM)
  add_custom_target(${arg_NAME} DEPENDS ${arg_LIBRARY})
endfunction()
