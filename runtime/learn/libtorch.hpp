// Finds the LibTorch that training needs. Only looks for its files and loads nothing; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::learn {

inline constexpr const char* kTorchFile = "libtorch_cpu.so";

// Advice for error messages: how to name a LibTorch of the right version in TROUPE_TORCH.
extern const char* const kTorchHint;

struct LibTorch {
  std::filesystem::path folder;  // contains libtorch_cpu.so
  std::string version;           // such as "2.11.0+cpu"; empty: no file in its parent says it
};

// Searches, in this order: `lib` in the folder that TROUPE_TORCH names (if set, nothing else); the
// program's folder and `../lib` (core::program_folders); the PyTorch that the program was built
// with; the same PyTorch under TROUPE_HOME (default ~/.cache/troupe). Returns the first that can be
// read. Error kResources: none can be read (names each place and why), or the first readable one
// has another version than the program was built for.
core::Result<LibTorch> find_libtorch();
// The folder of Python packages that has that LibTorch in it, if it is PyTorch's; empty without
// one.
std::filesystem::path packages_beside_libtorch();

}  // namespace troupe::learn
