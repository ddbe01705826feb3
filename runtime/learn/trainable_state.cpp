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

constexpr const char* kOptim = "optim";  // in kCounts, unless it is AdamW with f32 moments

constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;  // numbers; whole blocks

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

constexpr const char* kAdamW = "adamw";  // the kind of a state that names none

// Calls `piece` for all numbers, some at a time.
core::Result<void> each_piece(std::int64_t count,
                              const std::function<core::Result<void>(core::Range)>& piece) {
  for (std::int64_t begin = 0; begin < count; begin += kAtOnce)
    TROUPE_TRY(piece({begin, std::min(begin + kAtOnce, count)}));
  return {};
}

// Whether the numbers can be read and written where they are.
bool in_place(const HeldNumbers& numbers) {
  return numbers.at != nullptr && numbers.memory->on_host();
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
  return {values().layout(), divided_ ? values().layout() : stepper_->working().layout(),
          optim_.kind->adam};
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
  if (optim_.kind != Chosen<OptimKind>(kAdamW)) state[kOptim] = optim_.kind->name;
  return write_once([&]() -> core::Result<void> {
    TROUPE_TRY(remove_other_parts(folder, saves_in_parts() ? ranks_->size() : 0));
    if (!saves_in_parts()) TROUPE_TRY_SET(files, save_whole(folder));
    TROUPE_TRY(store::write_file(folder / kCounts, state.dump(2) + "\n"));
    return store::note_written(folder, files);
  });
}

core::Result<store::FileDigest> TrainableModel::write_numbers(
    const HeldNumbers& numbers,
    const model::ParamLayout& layout,
    const std::filesystem::path& path) const {
  if (numbers.compact == nullptr)
    return model::write_tensors(
        layout, model::FlatNumbers{numbers.at, numbers.count, numbers.memory}, path);
  std::vector<float> host(static_cast<std::size_t>(std::min(numbers.count, kAtOnce)));
  const model::EachPiece each = [&](const model::UsePiece& use) {
    return each_piece(numbers.count, [&](core::Range place) {
      numbers.read(team_, place, host.data());
      return use(place, host.data());
    });
  };
  return model::write_tensors(layout, each, path);
}

core::Result<std::vector<store::CheckpointFile>> TrainableModel::save_whole(
    const std::filesystem::path& folder) const {
  const StateLayouts layout = layouts();
  std::vector<store::CheckpointFile> files;
  for (const StatePart part : layout.parts()) {
    const HeldNumbers numbers = held(part);
    const std::string name = whole_file(part);
    TROUPE_TRY_ASSIGN(digest, write_numbers(numbers, layout.of(part), folder / name));
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
    core::Range own_place = place;
    if (holds_whole(part)) {
      packed.reserve_discard(place.size(), *numbers.memory);
      const float* const window = numbers.at + shards.in_buffer(turns).begin;
      there.run(
          [&](core::Team member) { shards.pack(member, window, rank, turns, packed.data()); });
      numbers = {packed.data(), place.size(), numbers.memory};
      own_place = {0, place.size()};
    }
    if (in_place(numbers)) return numbers.at + own_place.begin;
    host.resize(static_cast<std::size_t>(place.size()));
    numbers.read(team_, own_place, host.data());
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

// Kinds of AdamW read each other's moments.
bool TrainableModel::reads_moments_of(const std::string& kind) const {
  const auto kinds = OptimKind::all();
  return std::any_of(kinds.begin(), kinds.end(), [&](const OptimKind& one) {
    return one.name == kind && one.adam == optim_.kind->adam && one.muon == optim_.kind->muon;
  });
}

core::Result<void> TrainableModel::read_state(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts,
                    read_counts(folder, {"format", "version", "adam_steps", "skipped_in_row"}));
  if (lora_ && counts.value("base_crc32c", json()) != lora_->base_crc()) {
    return core::fail(
        ErrorCode::kData, folder.string() + " holds adapters of other base weights than these",
        "resume with the model that the run began with, --" + key_ + ".model_name_or_path");
  }
  const std::string theirs = counts.value(kOptim, kAdamW);
  if (!reads_moments_of(theirs)) {
    return core::fail(ErrorCode::kData,
                      folder.string() + " holds the state of " + theirs + ", which " +
                          std::string(optim_.kind->name) + " cannot go on with",
                      "give --" + key_ + ".optim " + theirs);
  }
  const auto version = counts["version"].get<core::Version>();
  const int ranks = counts[kRanks].get<int>();
  auto opened = ranks == 0 ? open_whole_state(folder, layouts())
                           : open_parts(folder, ranks, version, layouts());
  if (!opened) return opened.failure();
  if (divided_) divided_->let_go();
  for (const StatePart part : layouts().parts())
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
  std::vector<float> host;
  const auto room = [&](core::Range place) -> float* {
    if (in_place(numbers)) return numbers.at + place.begin;
    host.resize(static_cast<std::size_t>(place.size()));
    return host.data();
  };
  const auto put = [&](core::Range place) {
    if (!in_place(numbers)) numbers.write(team_, place, host.data());
  };
  if (holds_whole(part)) {
    return each_piece(numbers.count, [&](core::Range place) -> core::Result<void> {
      TROUPE_TRY(state.read(part, place, room(place)));
      put(place);
      return {};
    });
  }
  const int rank = ranks_->rank();
  const BlockShards shards(layouts().of(part).total, ranks_->size());
  return shards.each(kTurnsAtOnce, [&](core::Range turns) -> core::Result<void> {
    const core::Range own = shards.in_shard(rank, turns);
    TROUPE_TRY(read_blocks(state, part, shards, rank, turns, room(own)));
    put(own);
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
