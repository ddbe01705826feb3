// Which row of its dataset each open ticket's prompt is, so that failures of one prompt can be told
// from failures of many. A pure value. Bound: the groups of the open updates.
#pragma once

#include "actors/protocol/messages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace troupe::actors::controller {

class PromptRows {
 public:
  // Two tickets of one prompt have the same.
  using Id = std::pair<std::uint64_t, std::uint64_t>;

  void add(const Tickets& issued) {
    const std::size_t known = std::min(issued.tickets.size(), issued.rows.size());
    for (std::size_t i = 0; i < known; ++i)
      add(issued.tickets[i], issued.rows[i], issued.prompts);
  }
  void add(const experience::Ticket& ticket, std::uint64_t row, std::uint64_t prompts) {
    rows_[ticket] = row;
    prompts_[held_out(ticket)] = prompts;
  }
  void forget(std::uint64_t update) {
    std::erase_if(rows_, [update](const auto& entry) { return entry.first.update == update; });
  }

  // A ticket whose row is not known counts as a prompt of its own.
  Id id_of(const experience::Ticket& ticket) const {
    const auto found = rows_.find(ticket);
    if (found != rows_.end()) return {held_out(ticket) ? 1 : 0, found->second};
    return {2 + ticket.update, std::uint64_t{ticket.slot} << 32 | ticket.attempt};
  }
  // How many prompts of the ticket's kind there are; more than any number when that is not known.
  std::size_t all(const experience::Ticket& ticket) const {
    const std::uint64_t prompts = prompts_[held_out(ticket)];
    return prompts == 0 ? std::numeric_limits<std::size_t>::max() : prompts;
  }

 private:
  static bool held_out(const experience::Ticket& ticket) {
    return ticket.kind() == experience::TicketKind::kEvaluation;
  }

  std::map<experience::Ticket, std::uint64_t> rows_;
  std::uint64_t prompts_[2] = {0, 0};  // to train on, held out; 0: not known
};

}  // namespace troupe::actors::controller
