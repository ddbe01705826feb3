// Finds the LibTorch that training needs. Only looks for its files, loads nothing; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::learn {

inline constexpr const char* kTorchFile = "libtorch_cpu.so";

// Advice for error messages: how to install a LibTorch that fits.
extern const char* const kTorchHint;

struct LibTorch {
  std::filesystem::path folder;  // that has libtorch_cpu.so
  std::string version;           // "2.11.0+cpu"; empty: its folder does not say
};

// Searches, in this order: `lib` in the folder that TROUPE_TORCH names (if set, nothing else); the
// program's folder and `../lib` (core::program_folders); the environment that the program was built
// with; that environment under TROUPE_HOME (default ~/.cache/troupe). Returns the first that can be
// read. Error kResources: none can be read (names each place and why), or the first readable one
// has another version than the program was built for.
core::Result<LibTorch> find_libtorch();

}  // namespace troupe::learn
