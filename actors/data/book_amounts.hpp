// Reports the data role's counts of groups, samples and tokens for `troupe status`. Pure functions.
#pragma once

#include "actors/data/ticket_book.hpp"
#include "runtime/wire/role_report.hpp"

namespace troupe::actors::data {

// Adds for both books together: open groups by state, failed groups by cause, duplicate deliveries
// by kind, and totals since the start.
void add_book_amounts(const TicketBook& train, const TicketBook& held_out, wire::Amounts& amounts);

}  // namespace troupe::actors::data
