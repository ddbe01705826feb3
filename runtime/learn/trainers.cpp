#include "runtime/learn/trainers.hpp"

#include "runtime/core/program_files.hpp"
#include "runtime/core/shortage.hpp"
#include "runtime/learn/build_id.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;

core::Result<void> find_a_library() {
  if (!learn_libraries_here().empty()) return {};
  const auto folders = core::program_folders();
  return core::fail(ErrorCode::kResources,
                    std::string("training needs ") + kLearnLibraries[0].file +
                        ", which is neither in " + folders[0].string() + " nor in " +
                        folders[1].string(),
                    "copy it there from where the program was built");
}

bool holds(std::ifstream& in, std::string_view id) {
  std::string window;
  std::vector<char> piece(std::size_t{1} << 20);
  while (in.read(piece.data(), std::ssize(piece)), in.gcount() > 0) {
    window.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (window.find(id) != window.npos) return true;
    window.erase(0, window.size() - std::min(window.size(), id.size()));
  }
  return false;
}

// Searches the library file for the program's build id before opening it: the loader's own error
// for another build would only name missing symbols.
core::Result<void> check_build(const fs::path& library) {
  std::ifstream in(library, std::ios::binary);
  if (!in) {
    return core::fail(ErrorCode::kResources, "cannot read " + library.string(),
                      "check that this user may read it");
  }
  if (holds(in, kBuildId)) return {};
  return core::fail(ErrorCode::kResources,
                    library.string() + " is of another build than this program",
                    "copy both from the same build");
}

// MKL, inside LibTorch, chooses its functions by the maker and kind of processor, and their last
// bits differ. Its "compatible" functions are the same everywhere. MKL reads the choice at its
// first call, so this runs before; if LibTorch was built without MKL it does nothing.
void choose_same_bits_everywhere(void* torch) {
  constexpr int kCompatible = 3;  // MKL_CBWR_COMPATIBLE of mkl.h
  using Choose = int (*)(int);
  if (const auto choose = reinterpret_cast<Choose>(dlsym(torch, "mkl_serv_cbwr_set")))
    choose(kCompatible);
}

// The loader has no error code: it says in words when there is no memory for a library.
std::string hint_for(const std::string& why) {
  const bool full = why.find("failed to map segment") != why.npos ||
                    why.find("annot allocate memory") != why.npos;
  return full ? std::string(core::kMoreMemory) : torch_hint();
}

core::Result<const Trainers*> open_library() {
  TROUPE_TRY_ASSIGN(files, find_trainers());
  // Loads LibTorch by full path first; our library, which needs it by name, then gets this one.
  const std::string torch = (files.torch.folder / kTorchFile).string();
  void* const torch_handle = dlopen(torch.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (torch_handle == nullptr) {
    const std::string why = dlerror();
    return core::fail(ErrorCode::kResources, "LibTorch cannot be loaded: " + why, hint_for(why));
  }
  choose_same_bits_everywhere(torch_handle);
  void* const handle = dlopen(files.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string why = dlerror();
    return core::fail(
        ErrorCode::kResources,
        "cannot be loaded: " + why + ", next to LibTorch in " + files.torch.folder.string(),
        hint_for(why));
  }
  const auto* entry = static_cast<const Trainers*>(dlsym(handle, "troupe_learn_entry"));
  if (entry == nullptr) {
    return core::fail(ErrorCode::kResources, files.library.string() + " has no entry",
                      "copy it anew from its build");
  }
  return entry;
}

}  // namespace

core::Result<TrainersFiles> find_trainers() {
  TROUPE_TRY(find_a_library());
  TROUPE_TRY_ASSIGN(torch, find_libtorch());
  fs::path library = core::program_file(torch.library);
  TROUPE_TRY(check_build(library));
  return TrainersFiles{std::move(library), std::move(torch)};
}

core::Result<const Trainers*> trainers() {
  static std::mutex mutex;
  static const Trainers* opened = nullptr;
  const std::lock_guard lock(mutex);
  // A failure is not remembered: the file may be there at the next call.
  if (opened == nullptr) {
    TROUPE_TRY_ASSIGN(now, open_library());
    opened = now;
  }
  return opened;
}

}  // namespace troupe::learn
