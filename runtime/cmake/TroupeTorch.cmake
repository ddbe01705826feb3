# LibTorch's CPU half out of the `build` environment's wheel, as one target: troupe::torch.
#
# Only libtorch_cpu and libc10 are linked, by full path: find_package(Torch) would pull CUDA in.
# libtorch_cpu itself needs the CUDA runtime and CUPTI as shared objects, which its own run path
# finds in the wheel. Tests that link LibTorch have torch/lib in their run path. The program does
# not link it, but opens it when it trains (troupe_opens_trainers). Nothing here imports torch.
#
#   troupe::torch      headers (SYSTEM) and libraries
#   troupe_torch_pch   precompiled ATen headers; use `PCH torch` in troupe_library
set(TROUPE_VENV "${CMAKE_SOURCE_DIR}/.venv/build" CACHE PATH "The `build` Python environment")

file(REAL_PATH "${TROUPE_VENV}" _venv)
file(GLOB _torch_dirs "${_venv}/lib/python3*/site-packages/torch")
list(LENGTH _torch_dirs _torch_count)
if(NOT _torch_count EQUAL 1)
  message(FATAL_ERROR "no torch in ${TROUPE_VENV}: run ./dev setup (or set TROUPE_VENV)")
endif()
set(TROUPE_TORCH_ROOT ${_torch_dirs})
# What the program looks for when it trains: a LibTorch of this version ("2.11"), among other places
# in this environment below the TROUPE_HOME of that time.
string(REGEX MATCH "venv/[^/]+/lib/.*$" TROUPE_TORCH_IN_HOME "${TROUPE_TORCH_ROOT}")
file(STRINGS ${TROUPE_TORCH_ROOT}/version.py TROUPE_TORCH_VERSION REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+[.][0-9]+" TROUPE_TORCH_VERSION "${TROUPE_TORCH_VERSION}")

# What of the environment's list is LibTorch and what it needs, as `pip` takes it.
file(STRINGS ${CMAKE_SOURCE_DIR}/runtime/cmake/requirements/build.txt TROUPE_TORCH_PACKAGES
     REGEX "^(torch|nvidia-[a-z-]+)==")
list(JOIN TROUPE_TORCH_PACKAGES " " TROUPE_TORCH_PACKAGES)

# The C++ ABI must be the wheel's. The new one shows as std::__cxx11 in the symbols of libc10.
file(STRINGS ${TROUPE_TORCH_ROOT}/lib/libc10.so _cxx11_symbol REGEX "__cxx11" LIMIT_COUNT 1)
set(_torch_abi 0)
if(_cxx11_symbol)
  set(_torch_abi 1)
endif()

foreach(lib torch_cpu c10)
  add_library(troupe_dep_${lib} SHARED IMPORTED GLOBAL)
  set_target_properties(troupe_dep_${lib} PROPERTIES IMPORTED_LOCATION
                                                     ${TROUPE_TORCH_ROOT}/lib/lib${lib}.so)
endforeach()

add_library(troupe_dep_torch INTERFACE)
add_library(troupe::torch ALIAS troupe_dep_torch)
target_include_directories(
  troupe_dep_torch SYSTEM
  INTERFACE ${TROUPE_TORCH_ROOT}/include ${TROUPE_TORCH_ROOT}/include/torch/csrc/api/include)
target_compile_definitions(troupe_dep_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${_torch_abi})
target_link_libraries(troupe_dep_torch INTERFACE troupe_dep_torch_cpu troupe_dep_c10)

add_library(troupe_torch_pch OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/torch_pch.cpp)
# With our warnings, because g++ refuses a precompiled header that was made without -Wpedantic.
target_link_libraries(troupe_torch_pch PRIVATE troupe::torch troupe_warnings)
target_precompile_headers(troupe_torch_pch PRIVATE <ATen/ATen.h>
                          <torch/csrc/autograd/custom_function.h>)
