// A trainer's state on disk. For the model: weights, first and second moment, f32, and
// trainer_state.json with the counts. One process, or rank 0 at stage 0, writes them as
// weights.safetensors, adam_m.safetensors and adam_v.safetensors with Hugging Face names; at stages
// 1 to 3 each rank writes its blocks (ranks/state_parts.hpp). With LoRA the weights are the
// adapters, and trainer_state.json holds the CRC of their base weights. The policy's trainer adds
// rl_state.json and, if it keeps an average, ema.safetensors. Everything else follows from the
// configuration. Loading checks all files of a model before it changes anything.
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/ranks/sharded_weights.hpp"
#include "runtime/learn/ranks/state_parts.hpp"
#include "runtime/learn/saved_lanes.hpp"
#include "runtime/learn/saved_state.hpp"
#include "runtime/learn/state_numbers.hpp"
#include "runtime/learn/trainable_model.hpp"
#include "runtime/model/weights_writer.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn {
namespace {

using core::ErrorCode;
using nlohmann::json;

constexpr const char* kCounts = "trainer_state.json";
constexpr const char* kLanes = "lanes";  // in kCounts, unless it is 1
constexpr const char* kRanks = "ranks";  // in kCounts: how many wrote the tensors in parts

constexpr std::int64_t kReadAtOnce = std::int64_t{1} << 20;  // numbers

core::Result<json> read_counts(const std::filesystem::path& folder,
                               std::initializer_list<const char*> whole) {
  TROUPE_TRY_ASSIGN(counts,
                    read_numbers(folder / kCounts, whole, {}, {kStateFormat, kDividedFormat}));
  const auto ranks = counts.find(kRanks);
  const bool parts = counts["format"] == kDividedFormat;
  if (parts && (ranks == counts.end() || !ranks->is_number_unsigned() || *ranks == 0))
    return core::fail(ErrorCode::kData,
                      (folder / kCounts).string() + ": needs a whole number '" + kRanks + "'");
  if (!parts) counts[kRanks] = 0;
  return counts;
}

Moment moment_of(StatePart part) {
  return part == StatePart::kFirstMoment ? Moment::kFirst : Moment::kSecond;
}

// Reads the elements `place` of a part to `to` in `memory`.
core::Result<void> read_to(
    SavedState& state, StatePart part, core::Range place, float* to, core::Memory& memory) {
  if (memory.on_host()) return state.read(part, place, to);
  std::vector<float> piece(static_cast<std::size_t>(std::min(place.size(), kReadAtOnce)));
  for (std::int64_t begin = place.begin; begin < place.end; begin += kReadAtOnce) {
    const core::Range some{begin, std::min(begin + kReadAtOnce, place.end)};
    TROUPE_TRY(state.read(part, some, piece.data()));
    memory.upload(to + (begin - place.begin), piece.data(),
                  static_cast<std::size_t>(some.size()) * sizeof(float));
  }
  return {};
}

// Reads a rank's blocks of some turns, one behind another.
core::Result<void> read_blocks(SavedState& state,
                               StatePart part,
                               const BlockShards& shards,
                               int rank,
                               core::Range turns,
                               float* to) {
  const core::Range own = shards.in_shard(rank, turns);
  for (std::int64_t i = own.begin; i < own.end; i += BlockShards::kBlock) {
    const std::int64_t place = shards.place(rank, i);
    const std::int64_t count = std::min(BlockShards::kBlock, own.end - i);
    TROUPE_TRY(state.read(part, {place, place + count}, to + (i - own.begin)));
  }
  return {};
}

}  // namespace

core::Result<void> TrainableModel::write_once(
    const std::function<core::Result<void>()>& write) const {
  if (!ranks_) return write();
  return ranks_->agree(ranks_->rank() == 0 ? write() : core::Result<void>());
}

core::Result<void> TrainableModel::gather() const {
  return divided_ ? divided_->gather_all() : core::Result<void>();
}

core::Result<void> TrainableModel::each_part(const See& see) const {
  TROUPE_CHECK(divided_, "divided weights");
  return divided_->each_part(see);
}

StateLayouts TrainableModel::layouts() const {
  // At stage 3 the gradient has room for one part alone.
  return {values().layout(), divided_ ? values().layout() : stepper_->working().layout()};
}

bool TrainableModel::saves_in_parts() const {
  return ranks_ != nullptr && optim_.ranks.zero_stage > 0;
}

bool TrainableModel::holds_whole(StatePart part) const {
  return !saves_in_parts() || (part == StatePart::kWeights && !divided_);
}

HeldNumbers TrainableModel::held(StatePart part) const {
  if (part != StatePart::kWeights) return stepper_->held(moment_of(part));
  if (divided_) return held_in(divided_->own());
  return held_in(lora_ ? lora_->values() : *master_);
}

core::Result<void> TrainableModel::save_state(const std::filesystem::path& folder) const {
  std::vector<store::CheckpointFile> files;
  if (saves_in_parts()) TROUPE_TRY_SET(files, save_parts(folder));
  json state = {{"format", saves_in_parts() ? kDividedFormat : kStateFormat},
                {"version", version_},
                {"adam_steps", stepper_->adam_steps()},
                {"skipped_in_row", skipped_in_row_}};
  if (lanes() != 1) state[kLanes] = lanes();
  if (saves_in_parts()) state[kRanks] = ranks_->size();
  if (lora_) state["base_crc32c"] = lora_->base_crc();
  return write_once([&]() -> core::Result<void> {
    TROUPE_TRY(remove_other_parts(folder, saves_in_parts() ? ranks_->size() : 0));
    if (!saves_in_parts()) TROUPE_TRY_SET(files, save_whole(folder));
    TROUPE_TRY(store::write_file(folder / kCounts, state.dump(2) + "\n"));
    return store::note_written(folder, files);
  });
}

core::Result<std::vector<store::CheckpointFile>> TrainableModel::save_whole(
    const std::filesystem::path& folder) const {
  const StateLayouts layout = layouts();
  std::vector<store::CheckpointFile> files;
  for (const StatePart part : kStateParts) {
    const HeldNumbers numbers = held(part);
    const std::string name = whole_file(part);
    TROUPE_TRY_ASSIGN(
        digest, model::write_tensors(layout.of(part), {numbers.at, numbers.count, numbers.memory},
                                     folder / name));
    files.push_back({name, digest.bytes, digest.sha256});
  }
  return files;
}

core::Result<std::vector<store::CheckpointFile>> TrainableModel::save_parts(
    const std::filesystem::path& folder) const {
  const int rank = ranks_->rank();
  OwnParts own{layouts(), version_, {}};
  core::SerialTeam alone;
  core::TeamRunner& there = &values().memory() == &team_.memory() ? team_ : alone;
  core::Buffer<float> packed;  // where the weights are
  std::vector<float> host;
  own.blocks = [&](StatePart part, core::Range turns) -> const float* {
    const BlockShards shards(own.layouts.of(part).total, ranks_->size());
    const core::Range place = shards.in_shard(rank, turns);
    HeldNumbers numbers = held(part);
    if (holds_whole(part)) {
      packed.reserve_discard(place.size(), *numbers.memory);
      const float* const window = numbers.at + shards.in_buffer(turns).begin;
      there.run(
          [&](core::Team member) { shards.pack(member, window, rank, turns, packed.data()); });
      numbers.at = packed.data();
    } else {
      numbers.at += place.begin;
    }
    if (numbers.memory->on_host()) return numbers.at;
    host.resize(static_cast<std::size_t>(place.size()));
    numbers.memory->download(host.data(), numbers.at, host.size() * sizeof(float));
    return host.data();
  };
  return write_parts(*ranks_, folder, own);
}

core::Result<void> TrainableModel::save_model(const model::ModelFolder& folder) const {
  if (!divided_) return write_once([&] { return model::write_model(*master_, folder, true); });
  std::optional<model::ModelWriter> writer;
  core::Result<void> going;  // of rank 0, which takes part to the end all the same
  if (ranks_->rank() == 0) {
    auto begun = model::ModelWriter::begin(master_->spec(), master_->shared_layout(), folder);
    if (begun) writer.emplace(std::move(*begun));
    if (!begun) going = begun.failure();
  }
  TROUPE_TRY(divided_->bring_to_first([&](core::Range place, const float* numbers) {
    if (going) going = writer->add(place, numbers);
  }));
  return write_once([&]() -> core::Result<void> {
    TROUPE_TRY(going);
    return writer->commit(true);
  });
}

core::Result<void> TrainableModel::load_state(const std::filesystem::path& folder) {
  const core::Result<void> read = read_state(folder);
  return ranks_ ? ranks_->all_well(read, "load the state in " + folder.string()) : read;
}

core::Result<void> TrainableModel::read_state(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts,
                    read_counts(folder, {"format", "version", "adam_steps", "skipped_in_row"}));
  if (lora_ && counts.value("base_crc32c", json()) != lora_->base_crc()) {
    return core::fail(ErrorCode::kData, folder.string() +
                                            " holds adapters of other base weights than these; "
                                            "resume with the model that the run began with, --" +
                                            key_ + ".model_name_or_path");
  }
  const auto version = counts["version"].get<core::Version>();
  const int ranks = counts[kRanks].get<int>();
  auto opened = ranks == 0 ? open_whole_state(folder, layouts())
                           : open_parts(folder, ranks, version, layouts());
  if (!opened) return opened.failure();
  if (divided_) divided_->let_go();
  for (const StatePart part : kStateParts)
    TROUPE_TRY(read_part(**opened, part));
  stepper_->set_adam_steps(counts["adam_steps"].get<std::int64_t>());
  version_ = version;
  skipped_in_row_ = counts["skipped_in_row"].get<std::int64_t>();
  if (lora_) lora_->merge(team_, *master_);
  packed_.reset();  // of other weights, perhaps under the same version
  return {};
}

core::Result<void> TrainableModel::read_part(SavedState& state, StatePart part) {
  const HeldNumbers numbers = held(part);
  if (holds_whole(part))
    return read_to(state, part, {0, numbers.count}, numbers.at, *numbers.memory);
  const int rank = ranks_->rank();
  const BlockShards shards(layouts().of(part).total, ranks_->size());
  std::vector<float> blocks;
  return shards.each(kTurnsAtOnce, [&](core::Range turns) -> core::Result<void> {
    const core::Range own = shards.in_shard(rank, turns);
    float* const at = numbers.at + own.begin;
    if (numbers.memory->on_host()) return read_blocks(state, part, shards, rank, turns, at);
    blocks.resize(static_cast<std::size_t>(own.size()));
    TROUPE_TRY(read_blocks(state, part, shards, rank, turns, blocks.data()));
    numbers.memory->upload(at, blocks.data(), blocks.size() * sizeof(float));
    return {};
  });
}

core::Result<std::int64_t> saved_lanes(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts, read_counts(folder, {"format"}));
  const auto found = counts.find(kLanes);
  if (found == counts.end()) return std::int64_t{1};
  if (found->is_number_unsigned()) return found->get<std::int64_t>();
  return core::fail(ErrorCode::kData,
                    (folder / kCounts).string() + ": needs a whole number '" + kLanes + "'");
}

}  // namespace troupe::learn
