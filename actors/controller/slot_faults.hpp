// How often each slot of the open updates had a group that failed, or one that was filtered. A pure
// value. Bound: the slots of the open updates.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <map>
#include <utility>

namespace troupe::actors {

class SlotFaults {
 public:
  // The number of its slot by now.
  std::uint32_t add_failed(const experience::Ticket& ticket) { return ++failed_[slot_of(ticket)]; }
  std::uint32_t add_filtered(const experience::Ticket& ticket) { return ++filtered_[slot_of(ticket)]; }

  // Forgets the update and those before it; gives the groups of it that were filtered.
  std::uint64_t forget(std::uint64_t update) {
    std::uint64_t filtered = 0;
    for (const auto& [slot, count] : filtered_)
      filtered += slot.first == update ? count : 0;
    const auto over = [update](const auto& entry) { return entry.first.first <= update; };
    std::erase_if(failed_, over);
    std::erase_if(filtered_, over);
    return filtered;
  }

 private:
  using Slot = std::pair<std::uint64_t, std::uint32_t>;  // update and slot
  static Slot slot_of(const experience::Ticket& ticket) { return {ticket.update, ticket.slot}; }
  std::map<Slot, std::uint32_t> failed_, filtered_;
};

}  // namespace troupe::actors
