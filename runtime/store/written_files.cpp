#include "runtime/store/written_files.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"

#include <nlohmann/json.hpp>

#include <system_error>

namespace troupe::store {
namespace {

using NoteJson = nlohmann::ordered_json;

core::Result<std::vector<CheckpointFile>> read_written(const std::filesystem::path& file) {
  TROUPE_TRY_ASSIGN(text, read_all(file));
  std::vector<CheckpointFile> files;
  if (text.empty()) return files;
  try {
    for (const NoteJson& entry : NoteJson::parse(text))
      files.push_back({entry.at("path").get<std::string>(), entry.at("bytes").get<std::uint64_t>(),
                       entry.at("sha256").get<std::string>()});
  } catch (const nlohmann::json::exception&) {
    return core::fail(core::ErrorCode::kData, file.string() + " is damaged");
  }
  return files;
}

}  // namespace

core::Result<void> note_written(const std::filesystem::path& folder,
                                std::span<const CheckpointFile> files) {
  TROUPE_TRY_ASSIGN(all, read_written(folder / kWrittenFiles));
  for (const CheckpointFile& file : files) {
    std::erase_if(all, [&](const CheckpointFile& known) { return known.path == file.path; });
    all.push_back(file);
  }
  NoteJson list = NoteJson::array();
  for (const CheckpointFile& file : all)
    list.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return write_file(folder / kWrittenFiles, list.dump(1) + "\n");
}

core::Result<std::vector<CheckpointFile>> take_written(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(files, read_written(folder / kWrittenFiles));
  std::error_code error;
  std::filesystem::remove(folder / kWrittenFiles, error);
  if (error) return io_failure("remove", folder / kWrittenFiles, error.value());
  return files;
}

}  // namespace troupe::store
