// The metrics of an update that follow from its groups: rewards, lengths, staleness. Pure
// functions; docs/metrics.md says what the names mean.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "actors/protocol/messages.hpp"

namespace troupe::actors::controller {

// Samples that have no score, those of replaced groups too.
std::uint64_t missing_scores(const GroupStatuses& statuses);

// Adds mean, standard deviation and extremes of the groups' mean scores, the number of samples
// without a score, the means of the single rewards and of their extra values, and the mean response
// length in tokens.
void add_reward_metrics(const GroupStatuses& statuses, Metrics& metrics);

// Adds mean and maximum age, in updates, of the tokens learned from, and the number of samples of
// several versions. Adds nothing when no ages were counted.
void add_staleness_metrics(const GroupStatuses& statuses, Metrics& metrics);

}  // namespace troupe::actors::controller
