#include "runtime/learn/model/held_state.hpp"

#include "runtime/learn/state/state_parts.hpp"
#include "runtime/model/weights_writer.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace troupe::learn {
namespace {

constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;  // numbers; whole blocks

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

// Reads a rank's blocks of some turns, one after another.
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

core::Result<store::FileDigest> write_numbers(const HeldNumbers& numbers,
                                              core::TeamRunner& team,
                                              const model::ParamLayout& layout,
                                              const std::filesystem::path& path) {
  if (numbers.compact == nullptr)
    return model::write_tensors(
        layout, model::FlatNumbers{numbers.at, numbers.count, numbers.memory}, path);
  std::vector<float> host(static_cast<std::size_t>(std::min(numbers.count, kAtOnce)));
  const model::EachPiece each = [&](const model::UsePiece& use) {
    return each_piece(numbers.count, [&](core::Range place) {
      numbers.read(team, place, host.data());
      return use(place, host.data());
    });
  };
  return model::write_tensors(layout, each, path);
}

}  // namespace

core::Result<HeldState::Files> HeldState::write_whole(const std::filesystem::path& folder) const {
  Files files;
  for (const StatePart part : layouts_.parts()) {
    const std::string name = whole_file(part);
    TROUPE_TRY_ASSIGN(digest,
                      write_numbers(of(part).numbers, team_, layouts_.of(part), folder / name));
    files.push_back({name, digest.bytes, digest.sha256});
  }
  return files;
}

core::Result<HeldState::Files> HeldState::write_own(const std::filesystem::path& folder,
                                                    core::Version version) const {
  const int rank = group_->rank();
  OwnParts own{layouts_, version, {}};
  core::SerialTeam alone;
  core::Buffer<float> packed;  // where the numbers are
  std::vector<float> host;
  own.blocks = [&](StatePart part, core::Range turns) -> const float* {
    const BlockShards shards(layouts_.of(part).total, group_->size());
    const core::Range place = shards.in_shard(rank, turns);
    HeldNumbers numbers = of(part).numbers;
    core::Range own_place = place;
    if (of(part).whole) {
      packed.reserve_discard(place.size(), *numbers.memory);
      const float* const window = numbers.at + shards.in_buffer(turns).begin;
      core::TeamRunner& there = numbers.memory == &team_.memory() ? team_ : alone;
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
  return write_parts(*group_, folder, own);
}

core::Result<void> HeldState::read(SavedState& state) const {
  for (const StatePart part : layouts_.parts())
    TROUPE_TRY(read_part(state, part));
  return {};
}

core::Result<void> HeldState::read_part(SavedState& state, StatePart part) const {
  const HeldNumbers& numbers = of(part).numbers;
  std::vector<float> host;
  const auto room = [&](core::Range place) -> float* {
    if (in_place(numbers)) return numbers.at + place.begin;
    host.resize(static_cast<std::size_t>(place.size()));
    return host.data();
  };
  const auto put = [&](core::Range place) {
    if (!in_place(numbers)) numbers.write(team_, place, host.data());
  };
  if (of(part).whole) {
    return each_piece(numbers.count, [&](core::Range place) -> core::Result<void> {
      TROUPE_TRY(state.read(part, place, room(place)));
      put(place);
      return {};
    });
  }
  const int rank = group_->rank();
  const BlockShards shards(layouts_.of(part).total, group_->size());
  return shards.each(kTurnsAtOnce, [&](core::Range turns) -> core::Result<void> {
    const core::Range own = shards.in_shard(rank, turns);
    TROUPE_TRY(read_blocks(state, part, shards, rank, turns, room(own)));
    put(own);
    return {};
  });
}

}  // namespace troupe::learn
