#include "kernels/cuda/library.hpp"

#include "kernels/cuda/library_choice.hpp"
#include "runtime/core/program_files.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace troupe::kernels::cuda {
namespace {

namespace fs = std::filesystem;

struct Opened {
  const Entry* entry = nullptr;
  std::string path, error;
};

LibraryChoice find() {
  if (const char* named = std::getenv("TROUPE_CUDA_LIBRARY"); named != nullptr && *named != '\0')
    return {named, {}};
  return choose_library(cuda_of_driver(), core::program_file);
}

Opened open_library() {
  Opened opened;
  LibraryChoice choice = find();
  opened.path = choice.path.string();
  opened.error = std::move(choice.error);
  if (opened.path.empty()) return opened;
  void* const handle = dlopen(opened.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    opened.error =
        std::string("cannot be loaded: ") + dlerror() + " (TROUPE_CUDA_LIBRARY names another)";
    return opened;
  }
  const auto* entry = static_cast<const Entry*>(dlsym(handle, "troupe_cuda_entry"));
  if (entry == nullptr || entry->abi != kAbi) {
    opened.error = opened.path + " is of another build than this program; build both again";
    return opened;
  }
  opened.entry = entry;
  return opened;
}

const Opened& library() {
  static const Opened opened = open_library();
  return opened;
}

}  // namespace

LibraryState library_state() {
  const Opened& opened = library();
  LibraryState state{opened.path, 0, opened.error};
  if (opened.entry == nullptr) return state;
  state.devices = opened.entry->device_count();
  if (state.devices == 0) {
    state.why_none = std::string(opened.entry->why_none()) +
                     "; see that `nvidia-smi` lists a GPU and that the driver is " +
                     driver_for(state.path);
  }
  return state;
}

core::Result<void> find_device(int ordinal) {
  const LibraryState state = library_state();
  const std::string name = "cuda:" + std::to_string(ordinal);
  if (state.devices == 0)
    return core::fail(ErrorCode::kResources, "no device " + name + ": " + state.why_none);
  if (ordinal < 0 || ordinal >= state.devices) {
    return core::fail(ErrorCode::kResources, "no device " + name + ": this machine has " +
                                                 std::to_string(state.devices) +
                                                 " (counted from 0; see `troupe doctor`)");
  }
  return {};
}

core::Result<std::unique_ptr<Device>> open_device(int ordinal) {
  TROUPE_TRY(find_device(ordinal));
  const std::string name = "cuda:" + std::to_string(ordinal);
  try {
    return std::unique_ptr<Device>(library().entry->open(ordinal));
  } catch (const std::exception& error) {
    return core::fail(ErrorCode::kResources, "device " + name + ": " + error.what());
  }
}

}  // namespace troupe::kernels::cuda
