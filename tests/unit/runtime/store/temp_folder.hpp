// A folder of its own for one test, gone afterwards. In memory where there is /dev/shm, so that
// tests which sync often do not wait for a disk.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe::test {

class TempFolder {
 public:
  TempFolder() {
    const bool shm = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent = shm ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (parent / "troupe_test_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void put_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace troupe::test
