// The groups of one update or evaluation as the experience log has them: what is learned from can
// be learned from again, and what the rollout files show is what the log holds. Pure.
#pragma once

#include "actors/data/ticket_book.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::actors::data {

// Plays the events into `empty`, a book with the settings of `held`. Error kData: the groups that
// this gives are not those of `held`; it names the first that differs.
core::Result<std::shared_ptr<const TicketBook>> logged_groups(TicketBook empty,
                                                              std::uint64_t update,
                                                              std::vector<BookEvent> events,
                                                              const TicketBook& held,
                                                              const TicketBook::SetOf& set_of);

}  // namespace troupe::actors::data
