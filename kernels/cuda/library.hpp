// Finds and opens libtroupe_cuda.so: the file that TROUPE_CUDA_LIBRARY names, else the one beside
// the program or in ../lib beside it. The program itself needs no CUDA; without the library, a
// driver or a GPU every call here says what is missing. Thread-safe; the library stays open.
#pragma once

#include "kernels/cuda/device.hpp"
#include "runtime/core/result.hpp"

#include <memory>
#include <string>

namespace troupe::kernels::cuda {

struct LibraryState {
  std::string path;  // of the library; empty: not found
  int devices = 0;
  std::string why_none;  // what is missing, and what to do about it
};

// Asks, opens nothing on a device.
LibraryState library_state();

// Whether `open_device` would find it; opens nothing.
core::Result<void> find_device(int ordinal);

// `ordinal`: as the driver counts, after CUDA_VISIBLE_DEVICES. kResources errors say what is
// missing.
core::Result<std::unique_ptr<Device>> open_device(int ordinal);

}  // namespace troupe::kernels::cuda
