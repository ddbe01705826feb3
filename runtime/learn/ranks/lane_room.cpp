#include "runtime/learn/ranks/lane_room.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::learn {

LaneRoom::LaneRoom(const model::ModelSpec& spec,
                   const model::ParamLayout& layout,
                   const BlockShards& shards,
                   core::TeamRunner& team)
    : shards_(shards),
      turn_(shards.ranks() * BlockShards::kBlock),
      room_(spec, layout, turn_),
      team_(team),
      carried_(turn_, team.memory()) {}

core::Result<void> LaneRoom::finish(std::int64_t part, float* lane, const Ship& ship) {
  const model::PartRoom::Place& place = room_.places(part).back();
  const core::Range steps = place.steps;
  float* const numbers = lane + place.at;
  core::Memory& memory = team_.memory();
  const auto bytes = [](std::int64_t count) {
    return static_cast<std::size_t>(count) * sizeof(float);
  };
  if (carries_ && place.tensors.end < steps.end) {
    // From where this part ends the turn belongs to those above.
    const std::int64_t end = place.tensors.end, inside = end % turn_;
    memory.copy(numbers + (end - steps.begin), carried_.data() + inside, bytes(steps.end - end));
  }
  const core::Range turns{(place.tensors.begin + turn_ - 1) / turn_, left_};
  if (!turns.empty()) {
    TROUPE_TRY(ship(turns, numbers + (shards_.in_buffer(turns).begin - steps.begin)));
    left_ = turns.begin;
  }
  carries_ = steps.begin < place.tensors.begin;
  if (carries_) memory.copy(carried_.data(), numbers, bytes(std::min(turn_, steps.size())));
  clear(numbers, steps.size());
  return {};
}

void LaneRoom::clear(float* numbers, std::int64_t count) {
  team_.run([&](core::Team member) { kernels::ops().zero(numbers, member.share(count, 64)); });
}

}  // namespace troupe::learn
