# troupe_cuda_library(NAME name LIBRARY file.so ARCHS a... SOURCES s...)
#
# Target <name>, no part of the default build, since nvcc takes as long as half of the rest: LIBRARY,
# a shared library of .cu files for the GPUs of ARCHS. It contains the CUDA runtime, so only the
# driver is needed where it runs. The nvcc comes from the `cuda` environment (.venv/cuda, made by
# `./dev build --cuda` and, where there is a GPU, by `./dev test`); TROUPE_NVCC is empty without it. CMake's own CUDA language is not used: it wants an installed
# toolkit and compiles trial programs.
set(TROUPE_CUDA_ARCHS "90" CACHE STRING "Compute capabilities of the usual build, without the dot")

file(GLOB _nvcc "${CMAKE_SOURCE_DIR}/.venv/cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc")
set(TROUPE_NVCC "${_nvcc}")
if(TROUPE_NVCC)
  get_filename_component(_bin "${TROUPE_NVCC}" DIRECTORY)
  get_filename_component(TROUPE_CUDA_ROOT "${_bin}" DIRECTORY)
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
    -compress-mode=size
    --diag-suppress=20012
    -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off)

function(troupe_cuda_library)
  cmake_parse_arguments(arg "" "NAME;LIBRARY" "ARCHS;SOURCES" ${ARGN})
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
      COMMAND ${TROUPE_NVCC} ${TROUPE_NVCC_FLAGS} ${archs} -I${CMAKE_SOURCE_DIR} -MD -MF ${object}.d
              -c ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "nvcc ${stem}.cu"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(
    OUTPUT ${arg_LIBRARY}
    COMMAND ${CMAKE_CXX_COMPILER} -shared -o ${arg_LIBRARY} ${objects} -Wl,--no-undefined
            ${TROUPE_CUDA_ROOT}/lib/libcudart_static.a -ldl -lrt -lpthread
    DEPENDS ${objects}
    COMMENT "${arg_NAME}"
    VERBATIM)
  add_custom_target(${arg_NAME} DEPENDS ${arg_LIBRARY})
endfunction()
