// Finds and opens NCCL: the file that TROUPE_NCCL_LIBRARY names, else libnccl.so.2 on the loader's
// path, else the one among the Python packages of LibTorch. The program links none. Any thread;
// a library that was opened stays open.
#pragma once

#include "runtime/collective/nccl_api.hpp"
#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::collective {

struct NcclLibrary {
  nccl::Api api;
  int version = 0;  // 22809 is 2.28.9
  std::string version_text() const;
};

// `packages`: the folder that has `nvidia/nccl/lib`, as next to PyTorch; empty: none. Errors:
// kResources (none was found, or it cannot be loaded), kUnsupported (too old, or not NCCL).
core::Result<NcclLibrary> open_nccl(const std::filesystem::path& packages);

}  // namespace troupe::collective
