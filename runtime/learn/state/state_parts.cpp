#include "runtime/learn/state/state_parts.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/fixed_text.hpp"
#include "runtime/core/host_name.hpp"
#include "runtime/learn/state/part_files.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedFolder =
    "; the ranks of a trainer write a checkpoint together: let --run.path be a folder that all of "
    "their hosts share, or set --train.zero_stage 0, with which rank 0 alone writes";

// What a rank tells the others of its file.
struct PartNote {
  std::uint32_t failed = 0, code = 0;
  std::uint64_t bytes = 0;
  core::FixedText<65> sha256;
  core::FixedText<64> host;
  core::FixedText<768> error;
};

PartNote note_of(const Result<store::FileDigest>& written) {
  PartNote note;
  note.host = core::FixedText<64>(core::host_name("?"));
  if (written) {
    note.bytes = written->bytes;
    note.sha256 = core::FixedText<65>(written->sha256);
    return note;
  }
  note.failed = 1;
  note.code = static_cast<std::uint32_t>(written.error().code);
  note.error = core::FixedText<768>(written.error().message);
  return note;
}

std::string name_of_rank(std::size_t rank, const PartNote& note) {
  return "rank " + std::to_string(rank) + " on " + note.host.text();
}

Result<store::FileDigest> write_own(RankGroup& group,
                                    const fs::path& folder,
                                    const OwnParts& own,
                                    const std::string& description) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return core::fail(ErrorCode::kResources,
                      "there is no folder " + folder.string() + kSharedFolder);
  if (group.rank() == 0) TROUPE_TRY(store::write_file(folder / kRanksFile, description));
  std::vector<store::TensorShape> tensors;
  for (const StatePart part : own.layouts.parts()) {
    const BlockShards shards(own.layouts.of(part).total, group.size());
    tensors.push_back({name_of(part), store::Dtype::kF32, {shards.elements(group.rank())}});
  }
  const PartFacts facts =
      part_facts(group.rank(), group.size(), own.version, core::text_crc32c(description));
  TROUPE_TRY_ASSIGN(file, store::SafetensorsWriter::create(
                              folder / part_file(group.rank(), group.size()), tensors, facts));
  for (const StatePart part : own.layouts.parts()) {
    const BlockShards shards(own.layouts.of(part).total, group.size());
    TROUPE_TRY(shards.each(kTurnsAtOnce, [&](core::Range turns) -> Result<void> {
      const core::Range place = shards.in_shard(group.rank(), turns);
      if (place.empty()) return {};
      return file.append_f32(own.blocks(part, turns), place.size(), store::Dtype::kF32);
    }));
  }
  // Here, for no other host can sync what is still in this one's memory.
  TROUPE_TRY(file.sync());
  return file.close();
}

// Whether rank 0 sees what the others have written.
Result<void> look_for(const fs::path& folder, const std::vector<PartNote>& notes) {
  for (std::size_t rank = 0; rank < notes.size(); ++rank) {
    const fs::path path =
        folder / part_file(static_cast<int>(rank), static_cast<int>(notes.size()));
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (!error && bytes == notes[rank].bytes) continue;
    return core::fail(ErrorCode::kResources,
                      name_of_rank(0, notes[0]) + " does not see " + path.string() + " as " +
                          name_of_rank(rank, notes[rank]) + " has written it (" +
                          (error ? error.message() : "it has " + std::to_string(bytes) + " bytes") +
                          " instead of " + std::to_string(notes[rank].bytes) + " bytes)" +
                          kSharedFolder);
  }
  return {};
}

class PartsState final : public SavedState {
 public:
  explicit PartsState(std::vector<store::SafetensorsFile> files) : files_(std::move(files)) {}

  Result<void> read(StatePart part, core::Range place, float* to) override {
    constexpr std::int64_t kBlock = BlockShards::kBlock;
    const std::int64_t ranks = std::ssize(files_);
    for (std::int64_t at = place.begin; at < place.end;) {
      const std::int64_t block = at / kBlock;
      const std::int64_t end = std::min(place.end, (block + 1) * kBlock);
      const auto& file = files_[static_cast<std::size_t>(block % ranks)];
      const auto bytes = file.bytes(*file.find(name_of(part)));
      const std::int64_t from = block / ranks * kBlock + at % kBlock;
      std::memcpy(to + (at - place.begin),
                  bytes.data() + static_cast<std::size_t>(from) * sizeof(float),
                  static_cast<std::size_t>(end - at) * sizeof(float));
      at = end;
    }
    return {};
  }

 private:
  std::vector<store::SafetensorsFile> files_;  // by rank
};

}  // namespace

Result<std::vector<store::CheckpointFile>> write_parts(RankGroup& group,
                                                       const fs::path& folder,
                                                       const OwnParts& own) {
  const std::string description = describe_parts(own.layouts, group.size());
  const PartNote mine = note_of(write_own(group, folder, own, description));
  const std::vector<std::size_t> one_each(static_cast<std::size_t>(group.size()), 1);
  TROUPE_TRY_ASSIGN(notes, group.gather<PartNote>({&mine, 1}, one_each));
  std::vector<store::CheckpointFile> files;
  for (std::size_t rank = 0; rank < notes.size(); ++rank) {
    const PartNote& note = notes[rank];
    if (note.failed != 0)
      return core::fail(static_cast<ErrorCode>(note.code),
                        name_of_rank(rank, note) + ": " + note.error.text());
    files.push_back(
        {part_file(static_cast<int>(rank), group.size()), note.bytes, note.sha256.text()});
  }
  TROUPE_TRY(group.agree(group.rank() == 0 ? look_for(folder, notes) : Result<void>()));
  return files;
}

Result<void> remove_other_parts(const fs::path& folder, int ranks) {
  TROUPE_TRY_ASSIGN(entries, store::list_folder(folder));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!is_other_part(name, ranks) && name != store::kWrittenFiles) continue;
    std::error_code error;
    fs::remove(entry.path(), error);
    if (error) return store::io_failure("remove", entry.path(), error.value());
  }
  return {};
}

Result<std::unique_ptr<SavedState>> open_parts(const fs::path& folder,
                                               int ranks,
                                               core::Version version,
                                               const StateLayouts& layouts) {
  std::error_code error;
  const fs::path description = folder / kRanksFile;
  if (!fs::exists(description, error)) return unusable_part(description, "there is no such file");
  TROUPE_TRY_ASSIGN(text, store::read_all(description));
  TROUPE_TRY(check_description(description, text, layouts, ranks));
  std::vector<store::SafetensorsFile> files;
  for (int rank = 0; rank < ranks; ++rank) {
    const fs::path path = folder / part_file(rank, ranks);
    auto file = store::SafetensorsFile::open(path);
    if (!file) return unusable_part(path, file.error().message);
    TROUPE_TRY(check_facts(path, file->metadata(),
                           part_facts(rank, ranks, version, core::text_crc32c(text))));
    for (const StatePart part : layouts.parts()) {
      const store::TensorInfo* info = file->find(name_of(part));
      const BlockShards shards(layouts.of(part).total, ranks);
      if (info == nullptr || info->dtype != store::Dtype::kF32 ||
          info->count != shards.elements(rank))
        return unusable_part(path, std::string("its `") + name_of(part) +
                                       "` is not the blocks of rank " + std::to_string(rank));
    }
    files.push_back(std::move(*file));
  }
  std::unique_ptr<SavedState> state = std::make_unique<PartsState>(std::move(files));
  return state;
}

}  // namespace troupe::learn
