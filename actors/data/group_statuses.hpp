// Summarises an update's groups for the controller: states, causes of failures, token ages in
// updates and the mean of each reward. Pure functions of the book's groups.
#pragma once

#include "actors/data/book_group.hpp"
#include "actors/protocol/messages.hpp"

#include <vector>

namespace troupe::actors::data {

// `groups`: of one update, by slot. Ages, `crossed` and means cover the groups that are ready.
//
// `starts`: the version of the weights at the start of each of the newest updates, this update's
// last. A token's age is the number of those starts with newer weights than the token's: 0 for the
// weights that this update started from (or newer ones), 1 for those before. Versions before the
// first of `starts` count as one update older than it. Without `starts` no ages are given.
GroupStatuses statuses_of(const std::vector<const BookGroup*>& groups,
                          const std::vector<core::Version>& starts);

// Progress of the groups, for the user.
GroupCounts counts_of(const std::vector<const BookGroup*>& groups);

}  // namespace troupe::actors::data
