#include "runtime/core/program_files.hpp"

namespace troupe::core {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code code;
  return fs::read_symlink("/proc/self/exe", code).parent_path();
}

std::array<fs::path, 2> program_folders() {
  const fs::path own = program_folder();
  return {own, (own / ".." / "lib").lexically_normal()};
}

fs::path program_file(const std::string& name) {
  std::error_code code;
  for (const fs::path& folder : program_folders()) {
    if (fs::exists(folder / name, code)) return folder / name;
  }
  return {};
}

std::string remedy_of_missing(const std::string& build, const std::string& package) {
  std::error_code code;
  const bool built_here = fs::exists(program_folder() / "CMakeCache.txt", code) ||
                          fs::exists(program_folder() / ".." / "CMakeCache.txt", code);
  return built_here ? "`" + build + "` makes it" : package;
}

}  // namespace troupe::core
