#include "runtime/guide/library.hpp"

#include "runtime/core/program_files.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace troupe::guide {
namespace {

constexpr const char* kFile = "libtroupe_guide.so";

struct Opened {
  const troupe_guide_table* table = nullptr;
  std::string error;
};

Opened open_library() {
  const char* const named = std::getenv("TROUPE_GUIDE_LIBRARY");
  const std::string path =
      named != nullptr && *named != '\0' ? named : core::program_file(kFile).string();
  const std::string remedy =
      "; " + core::remedy_of_missing(kGuideBuild, "every package has it: install Troupe again") +
      " (TROUPE_GUIDE_LIBRARY names another place)";
  if (path.empty()) return {nullptr, std::string(kFile) + " is not next to the program" + remedy};
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return {nullptr, std::string(kFile) + " cannot be loaded: " + (why ? why : "") + remedy};
  }
  const auto* const table =
      static_cast<const troupe_guide_table*>(dlsym(handle, "troupe_guide_entry"));
  if (table == nullptr || table->abi != TROUPE_GUIDE_ABI)
    return {nullptr, path + " is of another build than this program" + remedy};
  return {table, ""};
}

}  // namespace

core::Result<const troupe_guide_table*> library() {
  static const Opened opened = open_library();
  if (opened.table == nullptr) return core::fail(core::ErrorCode::kUnsupported, opened.error);
  return opened.table;
}

}  // namespace troupe::guide
