// Finds the LibTorch that training needs. Only looks for its files and loads nothing; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::learn {

inline constexpr const char* kTorchFile = "libtorch_cpu.so";

// A library with the trainers, and the version of LibTorch that it was built with, such as "2.11".
struct LearnLibrary {
  const char* torch;
  const char* file;
};
// The first is always built; the second, for the newest LibTorch, is a package's.
extern const LearnLibrary kLearnLibraries[2];

// Those that lie next to the program.
std::vector<LearnLibrary> learn_libraries_here();

// Advice for error messages: how to name a LibTorch of the right version in TROUPE_TORCH.
std::string torch_hint();
// The packages of PyPI that are a LibTorch for this build, `torch==2.11.0` first, with blanks
// between.
extern const char* const kTorchPackages;

struct LibTorch {
  std::filesystem::path folder;  // contains libtorch_cpu.so
  std::string version;           // such as "2.11.0+cpu"; empty: no file in its parent says it
  const char* library;           // file of kLearnLibraries that goes with it
};

// Searches, in this order: `lib` in the folder that TROUPE_TORCH names (if set, nothing else); the
// program's folder and `../lib` (core::program_folders); the folder that TROUPE_PYTHON_TORCH names,
// which is the torch of the Python environment that the program was installed in; private_torch();
// the PyTorch that the program was built with, and the same PyTorch under TROUPE_HOME (default
// ~/.cache/troupe), where these exist. Returns the first that can be read and has the version of
// one of learn_libraries_here(); without any, of the first of kLearnLibraries. Error kResources:
// there is none (names each place with what is wrong there, and the version of each other
// LibTorch), or the one that TROUPE_TORCH names has another version.
core::Result<LibTorch> find_libtorch();
// Where `troupe doctor --install-torch` puts one: a folder below TROUPE_HOME, named after the
// version; `torch` is in it. Empty: there is no TROUPE_HOME.
std::filesystem::path private_torch();
// The folder of Python packages that has that LibTorch in it, if it is PyTorch's; empty without
// one.
std::filesystem::path packages_beside_libtorch();

}  // namespace troupe::learn
