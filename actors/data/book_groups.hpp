// The groups of the open updates, by update and slot, and what is asked about them. A pure value,
// which only TicketBook changes.
#pragma once

#include "actors/data/book_group.hpp"
#include "runtime/core/find_value.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::data {

class BookGroups {
 public:
  const BookGroup* find(const experience::Ticket& ticket) const {
    const BookGroup* const group = in_slot(ticket);
    return group == nullptr || group->ticket != ticket ? nullptr : group;
  }
  std::vector<const BookGroup*> groups_of(std::uint64_t update) const;  // by slot
  std::vector<const BookGroup*> groups() const;                         // by update and slot
  std::size_t open_groups() const noexcept { return groups_.size(); }
  bool any_failed(std::uint64_t update) const;
  bool ready(std::uint64_t update) const;    // every group ready, and there is one
  bool settled(std::uint64_t update) const;  // every group ready or failed, and there is one

  // True while an open group needs a score of this reward.
  bool waits_for(const std::string& reward) const;
  // True while the group waits for this member's scores.
  bool waits_for(const experience::Ticket& ticket, std::size_t member) const;

  // One more than the newest update that had tickets.
  std::uint64_t next_update() const noexcept { return next_update_; }
  std::uint64_t oldest_update() const noexcept;  // of the open ones; next_update() without any

 protected:
  using Slot = std::pair<std::uint64_t, std::uint32_t>;
  // The group that has the ticket's slot, with this ticket or another; that of the ticket.
  const BookGroup* in_slot(const experience::Ticket& ticket) const {
    return core::find_value(groups_, {ticket.update, ticket.slot});
  }
  BookGroup* in_slot(const experience::Ticket& ticket) {
    return core::find_value(groups_, {ticket.update, ticket.slot});
  }
  BookGroup* current(const experience::Ticket& ticket) {
    BookGroup* const group = in_slot(ticket);
    return group == nullptr || group->ticket != ticket ? nullptr : group;
  }
  void forget(std::uint64_t update) {
    groups_.erase(groups_.lower_bound({update, 0}), groups_.lower_bound({update + 1, 0}));
  }

  std::map<Slot, BookGroup> groups_;
  std::uint64_t next_update_ = 0;
};

}  // namespace troupe::actors::data
