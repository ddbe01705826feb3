#include "runtime/collective/nccl_library.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace troupe::collective {
namespace {

constexpr const char* kNcclFile = "libnccl.so.2";

std::string text_of_version(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

core::Result<void*> load_nccl(const std::filesystem::path& packages) {
  const char* const named = std::getenv("TROUPE_NCCL_LIBRARY");
  if (named != nullptr && *named != '\0') {
    if (void* const library = ::dlopen(named, RTLD_NOW | RTLD_LOCAL)) return library;
    return fail(
        ErrorCode::kResources,
        std::string("the NCCL that TROUPE_NCCL_LIBRARY names cannot be loaded: ") + ::dlerror());
  }
  if (void* const library = ::dlopen(kNcclFile, RTLD_NOW | RTLD_LOCAL)) return library;
  std::string where = "neither on the loader's path nor next to PyTorch";
  if (!packages.empty()) {
    const std::string path = packages / "nvidia/nccl/lib" / kNcclFile;
    if (void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    where = std::string("not on the loader's path, and next to PyTorch: ") + ::dlerror();
  }
  return fail(ErrorCode::kResources, std::string("no NCCL: ") + kNcclFile + " is " + where +
                                         " (TROUPE_NCCL_LIBRARY names another place)");
}

}  // namespace

std::string NcclLibrary::version_text() const {
  return text_of_version(version);
}

core::Result<NcclLibrary> open_nccl(const std::filesystem::path& packages) {
  TROUPE_TRY_ASSIGN(handle, load_nccl(packages));
  NcclLibrary library;
  const char* missing = nullptr;
#define TROUPE_NCCL_FIND(result, name, arguments)                                        \
  library.api.name = reinterpret_cast<decltype(library.api.name)>(dlsym(handle, #name)); \
  if (library.api.name == nullptr && missing == nullptr) missing = #name;
  TROUPE_NCCL_ENTRIES(TROUPE_NCCL_FIND)
#undef TROUPE_NCCL_FIND
  if (library.api.ncclGetVersion != nullptr) library.api.ncclGetVersion(&library.version);
  if (library.version > 0 && library.version < nccl::kOldest) {
    return fail(ErrorCode::kUnsupported, "NCCL " + library.version_text() + " is too old",
                text_of_version(nccl::kOldest) + " or newer is needed");
  }
  if (missing != nullptr || library.version == 0) {
    return fail(ErrorCode::kUnsupported,
                std::string("the library that was found is not NCCL: it has no working ") +
                    (missing == nullptr ? "ncclGetVersion" : missing));
  }
  return library;
}

}  // namespace troupe::collective
