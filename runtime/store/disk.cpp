#include "runtime/store/disk.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"

namespace troupe::store {
namespace {

// A folder of the run that is gone: no matter of a wrong name.
template <class T>
core::Result<T> ours(core::Result<T> done) {
  if (done || done.error().code != core::ErrorCode::kNotFound) return done;
  core::Error error = done.error();
  error.code = core::ErrorCode::kResources;
  return core::fail(std::move(error));
}

class SystemDisk final : public Disk {
 public:
  bool exists(const std::filesystem::path& path) override {
    std::error_code error;
    return std::filesystem::exists(path, error);
  }
  core::Result<void> make_folder(const std::filesystem::path& path) override {
    return ours(store::make_folder(path));
  }
  core::Result<void> write_file(const std::filesystem::path& path,
                                std::string_view content) override {
    return ours(store::write_file(path, content));
  }
  core::Result<std::string> read_file(const std::filesystem::path& path) override {
    return read_all(path);
  }
  core::Result<void> append(const std::filesystem::path& path, std::string_view content) override {
    auto file = ours(AppendFile::open(path));
    return file ? ours(file->append(content)) : core::Result<void>(file.failure());
  }
  core::Result<void> sync(const std::filesystem::path& path) override {
    TROUPE_TRY(ours(sync_path(path)));
    return ours(sync_path(path.parent_path()));
  }
  core::Result<void> cut(const std::filesystem::path& path, std::uint64_t bytes) override {
    return cut_file(path, bytes);
  }
  core::Result<void> remove(const std::filesystem::path& path) override {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) return io_failure("remove", path, error.value());
    return {};
  }
  core::Result<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    TROUPE_TRY_ASSIGN(entries, list_folder(folder));
    std::vector<std::string> names;
    for (const auto& entry : entries)
      if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    return names;
  }
  core::Result<std::uint64_t> size_of(const std::filesystem::path& path) override {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error && error != std::errc::no_such_file_or_directory)
      return io_failure("look at", path, error.value());
    return error ? 0 : static_cast<std::uint64_t>(size);
  }
};

}  // namespace

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

}  // namespace troupe::store
