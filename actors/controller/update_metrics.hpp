// The metrics of an update that follow from its groups: rewards, lengths, staleness. Pure
// functions; docs/metrics.md says what the names mean.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "actors/protocol/messages.hpp"

namespace troupe::actors {

// Samples that have no score, those of replaced groups too.
std::uint64_t missing_scores(const GroupStatuses& statuses);

// Adds mean, deviation and extremes of the groups' mean scores, the number of samples without a
// score, and the mean length of a response.
void add_reward_metrics(const GroupStatuses& statuses, Metrics& metrics);

// Metrics of the ages, in updates, of the tokens learned from; none if data counted none.
void add_staleness_metrics(const GroupStatuses& statuses, Metrics& metrics);

}  // namespace troupe::actors
