// Finds and opens the library for GPUs: the file that TROUPE_CUDA_LIBRARY names, else that of those
// next to the program or in its ../lib which fits the driver (library_choice.hpp). The program
// itself needs no CUDA. If the library, a driver or a GPU is missing, every call here says so.
// Thread-safe; the library stays open.
#pragma once

#include "kernels/cuda/device.hpp"
#include "runtime/core/result.hpp"

#include <memory>
#include <string>

namespace troupe::kernels::cuda {

struct LibraryState {
  std::string path;  // of the library; empty if not found
  int devices = 0;
  std::string why_none;  // what is missing, and what to do about it
};

// Queries the library; does not open a device.
LibraryState library_state();

// Whether `open_device` would find the device; does not open it.
core::Result<void> find_device(int ordinal);

// `ordinal`: as the driver counts with CUDA_VISIBLE_DEVICES applied. kResources errors say what is
// missing.
core::Result<std::unique_ptr<Device>> open_device(int ordinal);

}  // namespace troupe::kernels::cuda
