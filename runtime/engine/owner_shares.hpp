// How owners share an engine: what each computes, and whose running sample gives way to whom. An
// owner that computes more than another leaves the difference to it, so that none keeps the others
// out. Pure functions on the scheduler's groups.
#pragma once

#include "runtime/engine/group.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace troupe::engine {

using ActiveGroups = std::vector<std::unique_ptr<Group>>;

// Of an owner's running samples.
struct OwnerUse {
  std::int64_t samples = 0;
  std::int64_t blocks = 0;  // in their tables; one that several share counts for each
};
std::map<std::uint32_t, OwnerUse> uses_of(const ActiveGroups& active);

// A running sample; none: `group` is null.
struct Seat {
  Group* group = nullptr;
  std::int32_t sample = 0;
};

// What a group lacks that wants to enter.
enum class Lack { kSeats, kBlocks };

// The seat that the group may take: the youngest of the owner that has most of what is lacking, as
// long as that is more than the group's owner then has. A sample that has drawn fewer than
// kEngineSeat_tokens since it took its seat keeps it, as do samples of more urgent groups.
Seat seat_for(const ActiveGroups& active, const Group& entering, std::int64_t wants, Lack lack);

// Of the groups that are least urgent and have computed their prompts: the youngest running sample
// of the owner with most blocks.
Seat seat_of_heaviest(const ActiveGroups& active);

}  // namespace troupe::engine
