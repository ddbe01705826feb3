// What `troupe doctor` says of NVIDIA GPUs: driver, devices, what reaches what, NCCL, and the
// speeds of memory and multiply-adds, measured now (a second a device).
#pragma once

#include "runtime/core/result.hpp"

#include <string>

namespace troupe::app {

// Lines for a person; never fails: without a GPU one line says what is missing.
void print_gpus();
// One JSON line for programs; kResources when there is no GPU.
core::Result<void> print_gpus_json();

}  // namespace troupe::app
