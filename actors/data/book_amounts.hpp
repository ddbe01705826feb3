// The counts of the data role's books, for `status`. Pure functions.
#pragma once

#include "actors/data/ticket_book.hpp"
#include "runtime/wire/role_report.hpp"

namespace troupe::actors {

// Adds the groups of both books by state, and what became of groups and deliveries so far.
void add_book_amounts(const TicketBook& train, const TicketBook& held_out, wire::Amounts& amounts);

}  // namespace troupe::actors
