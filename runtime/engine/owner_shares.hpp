// How owners share an engine: what each computes, and whose running sample gives way to whom. An
// owner that computes more than another leaves the difference to it, so that none keeps the others
// out. On the scheduler's groups; only OwnerTurns has a state.
#pragma once

#include "runtime/engine/group.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

namespace troupe::engine {

// What an owner's running samples use.
struct OwnerUse {
  std::int64_t samples = 0;
  std::int64_t blocks = 0;  // in their tables; shared blocks count for each
};
std::map<std::uint32_t, OwnerUse> uses_of(const ActiveGroups& active);

// A running sample; none: `group` is null.
struct Seat {
  Group* group = nullptr;
  std::int32_t sample = 0;
};

// What a group lacks in order to enter.
enum class Lack { kSeats, kBlocks };

// The seat that the group may take: the youngest of the owner that has most of what is lacking, as
// long as that is more than the group's owner then has. A sample that has drawn fewer than
// kEngineSeat_tokens since it took its seat keeps it, as do samples of more urgent groups.
Seat seat_for(const ActiveGroups& active, const Group& entering, std::int64_t wants, Lack lack);

// Among the least urgent groups whose prompts are computed: the youngest running sample
// of the owner with most blocks.
Seat seat_of_heaviest(const ActiveGroups& active);

using WaitingGroups =
    std::deque<std::unique_ptr<Group>>;  // in the order in which they are admitted

// A group that wants to enter, or one of its samples that wants to go on; none: `group` is null.
struct Entrant {
  Group* group = nullptr;
  SampleState* sample = nullptr;      // the sample to resume; null: the whole group enters
  WaitingGroups::iterator waiting{};  // where the group waits
};

// Whose turn it is to enter.
class OwnerTurns {
 public:
  // Picks, among the most urgent, from the owner with fewest blocks, or the one that has waited
  // for longest.
  Entrant next(const ActiveGroups& active, WaitingGroups& waiting) const;
  void entered(std::uint32_t owner) { entered_[owner] = ++turns_; }

 private:
  std::map<std::uint32_t, std::uint64_t> entered_;  // when an owner's sample last did, in turns
  std::uint64_t turns_ = 0;
};

}  // namespace troupe::engine
