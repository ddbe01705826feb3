#include "runtime/learn/libtorch.hpp"

#include "runtime/core/program_files.hpp"
#include "runtime/store/troupe_home.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<fs::path> places() {
  if (const std::string named = variable("TROUPE_TORCH"); !named.empty())
    return {fs::path(named) / "lib"};
  const auto own = core::program_folders();
  std::vector<fs::path> list(own.begin(), own.end());
  list.push_back(fs::path(TROUPE_TORCH_BUILT) / "lib");
  const fs::path home = store::troupe_home();
  const fs::path there = home / TROUPE_TORCH_IN_HOME / "lib";
  if (!home.empty() && *TROUPE_TORCH_IN_HOME != '\0' && there != list.back()) list.push_back(there);
  return list;
}

// LibTorch has a file `build-version`, PyTorch the line `__version__ = '2.11.0+cpu'` in version.py.
std::string version_in(const fs::path& root) {
  std::string line;
  if (std::ifstream in(root / "build-version"); std::getline(in, line)) return line;
  std::ifstream in(root / "version.py");
  const std::string start = "__version__ = '";
  while (std::getline(in, line)) {
    if (line.starts_with(start) && line.ends_with("'"))
      return line.substr(start.size(), line.size() - start.size() - 1);
  }
  return {};
}

}  // namespace

const char* const kTorchHint =
    "set TROUPE_TORCH to the folder of a LibTorch " TROUPE_TORCH_VERSION
    ", or to the folder `torch` of an installed PyTorch " TROUPE_TORCH_VERSION;

core::Result<LibTorch> find_libtorch() {
  std::string looked;
  for (const fs::path& folder : places()) {
    const fs::path file = folder / kTorchFile;
    if (::access(file.c_str(), R_OK) != 0) {
      looked += (looked.empty() ? "" : ", ") + file.string() + ": " + std::strerror(errno);
      continue;
    }
    LibTorch found{folder, version_in(folder.parent_path())};
    if (found.version.empty() || found.version.starts_with(TROUPE_TORCH_VERSION ".")) return found;
    return core::fail(ErrorCode::kResources,
                      folder.parent_path().string() + " is LibTorch " + found.version +
                          ", this build needs " + TROUPE_TORCH_VERSION,
                      kTorchHint);
  }
  return core::fail(
      ErrorCode::kResources,
      "training needs LibTorch " TROUPE_TORCH_VERSION ", and there is none (" + looked + ")",
      kTorchHint);
}

fs::path packages_beside_libtorch() {
  const auto torch = find_libtorch();
  return torch ? torch->folder.parent_path().parent_path() : fs::path();
}

}  // namespace troupe::learn
