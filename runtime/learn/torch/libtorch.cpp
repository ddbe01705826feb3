#include "runtime/learn/torch/libtorch.hpp"

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

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// True also for a folder that this user may not look into.
bool is_there(const fs::path& path) {
  return ::access(path.c_str(), F_OK) == 0 || errno == EACCES;
}

std::vector<fs::path> places() {
  if (const std::string named = variable("TROUPE_TORCH"); !named.empty())
    return {fs::path(named) / "lib"};
  const auto own = core::program_folders();
  std::vector<fs::path> list(own.begin(), own.end());
  if (const std::string beside = variable("TROUPE_PYTHON_TORCH"); !beside.empty())
    list.push_back(fs::path(beside) / "lib");
  const fs::path home = store::troupe_home();
  if (!home.empty()) list.push_back(private_torch() / "torch/lib");
  const fs::path built = fs::path(TROUPE_TORCH_BUILT) / "lib";
  const fs::path there = home / TROUPE_TORCH_IN_HOME / "lib";
  // Where the program was built they are there; elsewhere their names would tell nobody anything.
  if (is_there(built)) list.push_back(built);
  const bool named = !home.empty() && *TROUPE_TORCH_IN_HOME != '\0';
  if (named && there != built && is_there(there)) list.push_back(there);
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

std::vector<LearnLibrary> usable() {
  std::vector<LearnLibrary> list = learn_libraries_here();
  if (list.empty()) list.push_back(kLearnLibraries[0]);
  return list;
}

std::string versions_of(const std::vector<LearnLibrary>& libraries) {
  std::string text;
  for (const LearnLibrary& one : libraries)
    text += (text.empty() ? "" : " or ") + std::string(one.torch);
  return text;
}

}  // namespace

const LearnLibrary kLearnLibraries[2] = {
    {TROUPE_TORCH_VERSION, "libtroupe_learn.so"},
    {TROUPE_TORCH_NEWEST, "libtroupe_learn_torch" TROUPE_TORCH_NEWEST ".so"}};

std::vector<LearnLibrary> learn_libraries_here() {
  std::vector<LearnLibrary> list;
  for (const LearnLibrary& one : kLearnLibraries)
    if (!core::program_file(one.file).empty()) list.push_back(one);
  return list;
}

std::string torch_hint() {
  const std::string versions = versions_of(usable());
  return "set TROUPE_TORCH to the folder of a LibTorch " + versions +
         ", or to the folder `torch` of an installed PyTorch " + versions +
         ", or make a private one: `troupe doctor --install-torch`";
}
const char* const kTorchPackages = TROUPE_TORCH_PACKAGES;

core::Result<LibTorch> find_libtorch() {
  std::string looked;
  const bool named = !variable("TROUPE_TORCH").empty();
  bool another = false;
  const std::vector<LearnLibrary> libraries = usable();
  const std::string needed = versions_of(libraries);
  for (const fs::path& folder : places()) {
    const fs::path file = folder / kTorchFile;
    looked += looked.empty() ? "" : ", ";
    if (::access(file.c_str(), R_OK) != 0) {
      looked += file.string() + ": " + std::strerror(errno);
      continue;
    }
    LibTorch found{folder, version_in(folder.parent_path()), libraries.front().file};
    if (found.version.empty()) return found;
    for (const LearnLibrary& one : libraries) {
      found.library = one.file;
      if (found.version.starts_with(std::string(one.torch) + ".")) return found;
    }
    const std::string other = folder.parent_path().string() + " is LibTorch " + found.version;
    if (named) {
      return core::fail(ErrorCode::kResources, other + ", this build needs " + needed,
                        torch_hint());
    }
    looked += other;
    another = true;
  }
  return core::fail(ErrorCode::kResources,
                    "training needs LibTorch " + needed + ", and there is none " +
                        (another ? "of that version " : "") + "(" + looked + ")",
                    torch_hint());
}

fs::path private_torch() {
  const std::string first(kTorchPackages);
  const auto begin = first.find("==") + 2;
  const fs::path home = store::troupe_home();
  return home.empty() ? home : home / "torch" / first.substr(begin, first.find(' ') - begin);
}

fs::path packages_beside_libtorch() {
  const auto torch = find_libtorch();
  return torch ? torch->folder.parent_path().parent_path() : fs::path();
}

}  // namespace troupe::learn
