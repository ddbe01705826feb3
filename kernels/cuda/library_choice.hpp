// Which library for NVIDIA GPUs fits the driver. A driver opens libraries of its own CUDA version
// and of older ones: that of CUDA 13 is the first choice, that of CUDA 12 is for older drivers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::kernels::cuda {

struct LibraryChoice {
  std::filesystem::path path;  // empty: none fits
  std::string error;           // why none does: the driver, both libraries and what to do
};

// `cuda_of_driver`: the CUDA version that the driver says it has, 12040 for 12.4; 0 without a
// driver. Then the first library that is there is taken, which says what is missing. `find`: the
// path of a library next to the program, empty if there is none.
LibraryChoice choose_library(int cuda_of_driver,
                             const std::function<std::filesystem::path(const std::string&)>& find);

// The version of the driver that a library needs, such as "580 or newer".
std::string driver_for(const std::filesystem::path& library);

// Asks libcuda.so.1, which comes with the driver; 0 if there is none. Nothing is initialised.
int cuda_of_driver();

}  // namespace troupe::kernels::cuda
