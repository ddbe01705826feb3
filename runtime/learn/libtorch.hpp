// Finds the LibTorch that training needs. Only looks for its files, loads nothing; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::learn {

inline constexpr const char* kTorchFile = "libtorch_cpu.so";

// What to do when there is none that fits.
extern const char* const kTorchHint;

struct LibTorch {
  std::filesystem::path folder;  // that has libtorch_cpu.so
  std::string version;           // "2.11.0+cpu"; empty: its folder does not say
};

// The first that is there of: the folder `lib` in what TROUPE_TORCH names, and nothing else when
// that is set; the program's folder and `../lib` (core::program_folders); the environment that the
// program was built with; that environment under TROUPE_HOME (default ~/.cache/troupe). kResources,
// naming each place and what is wrong there: none can be read, or it is of another version than
// the program was built for.
core::Result<LibTorch> find_libtorch();

}  // namespace troupe::learn
