# LibTorch's CPU half out of the `build` environment's wheel, as one target: troupe::torch.
#
# Only libtorch_cpu and libc10 are linked, by full path: find_package(Torch) would pull CUDA in.
# libtorch_cpu itself needs the CUDA runtime and CUPTI as shared objects, which its own run path
# finds in the wheel. Tests that link LibTorch have torch/lib in their run path. The program does
# not link it, but opens it when it trains (troupe_opens_trainers). Nothing here imports torch.
#
#   troupe::torch      headers (SYSTEM) and libraries
#   troupe::torch_newest   the same of the `newest` environment, where it was made
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

# The newest version, which a second library with trainers is for (learn_newest). TROUPE_TORCH_NEWEST_ROOT
# is empty where its environment was not made.
file(STRINGS ${CMAKE_SOURCE_DIR}/runtime/cmake/requirements/newest.txt TROUPE_TORCH_NEWEST REGEX "^torch==")
string(REGEX MATCH "[0-9]+[.][0-9]+" TROUPE_TORCH_NEWEST "${TROUPE_TORCH_NEWEST}")
file(GLOB TROUPE_TORCH_NEWEST_ROOT "${CMAKE_SOURCE_DIR}/.venv/newest/lib/python3*/site-packages/torch")
if(TROUPE_TORCH_NEWEST_ROOT)
  # g++ writes the resolved path of a system header where it is the shorter one, so it gets no other.
  file(REAL_PATH ${TROUPE_TORCH_NEWEST_ROOT} TROUPE_TORCH_NEWEST_ROOT)
  file(STRINGS ${TROUPE_TORCH_NEWEST_ROOT}/version.py _newest REGEX "^__version__ = '${TROUPE_TORCH_NEWEST}[.]")
  if(NOT _newest) # of an older list
    set(TROUPE_TORCH_NEWEST_ROOT)
  endif()
endif()

# The headers and libraries of the LibTorch in `root`, as the target troupe::<name>. The C++ ABI must be
# the wheel's: the new one shows as std::__cxx11 in the symbols of libc10.
function(_troupe_import_torch name root)
  file(STRINGS ${root}/lib/libc10.so cxx11_symbol REGEX "__cxx11" LIMIT_COUNT 1)
  set(abi 0)
  if(cxx11_symbol)
    set(abi 1)
  endif()
  add_library(troupe_dep_${name} INTERFACE)
  add_library(troupe::${name} ALIAS troupe_dep_${name})
  target_include_directories(troupe_dep_${name} SYSTEM
                             INTERFACE ${root}/include ${root}/include/torch/csrc/api/include)
  target_compile_definitions(troupe_dep_${name} INTERFACE _GLIBCXX_USE_CXX11_ABI=${abi})
  foreach(lib torch_cpu c10)
    add_library(troupe_dep_${name}_${lib} SHARED IMPORTED GLOBAL)
    set_target_properties(troupe_dep_${name}_${lib} PROPERTIES IMPORTED_LOCATION ${root}/lib/lib${lib}.so)
    target_link_libraries(troupe_dep_${name} INTERFACE troupe_dep_${name}_${lib})
  endforeach()
endfunction()
_troupe_import_torch(torch ${TROUPE_TORCH_ROOT})
if(TROUPE_TORCH_NEWEST_ROOT)
  _troupe_import_torch(torch_newest ${TROUPE_TORCH_NEWEST_ROOT})
endif()

add_library(troupe_torch_pch OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/torch_pch.cpp)
# With our warnings, because g++ refuses a precompiled header that was made without -Wpedantic.
target_link_libraries(troupe_torch_pch PRIVATE troupe::torch troupe_warnings)
target_precompile_headers(troupe_torch_pch PRIVATE <ATen/ATen.h>
                          <torch/csrc/autograd/custom_function.h>)
