#include "runtime/store/disk.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::store {
namespace {

class SystemDisk final : public Disk {
 public:
  bool exists(const std::filesystem::path& path) override {
    std::error_code error;
    return std::filesystem::exists(path, error);
  }
  core::Result<void> make_folder(const std::filesystem::path& path) override {
    return store::make_folder(path);
  }
  core::Result<void> write_file(const std::filesystem::path& path,
                                std::string_view content) override {
    return store::write_file(path, content);
  }
  core::Result<std::string> read_file(const std::filesystem::path& path) override {
    return read_all(path);
  }
};

}  // namespace

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

}  // namespace troupe::store
