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

}  // namespace troupe::core
