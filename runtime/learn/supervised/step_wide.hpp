// What some losses read of all rows of their step or run (StepWide): sorted log-ratios, and the
// mean of the rewards so far, with its file in a checkpoint. Plain C++ on doubles; sums run in the
// order of the rows. Any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/reward_shaping.hpp"
#include "runtime/learn/supervised/loss.hpp"

#include <filesystem>
#include <span>
#include <vector>

namespace troupe::learn {

// RowFacts::matched of a step: the reference's log-ratio of the rank that the row's own log-ratio,
// first - second, has in the step. Equal values are ranked in the order of the rows.
std::vector<double> matched_ratios(const RowFacts& facts,
                                   std::span<const double> first,
                                   std::span<const double> second);

// Running moments of a run's rewards, as reward_moments.json in `folder`. Load restores the same
// bits. Errors: kNotFound, kData.
core::Result<void> save_rewards(const std::filesystem::path& folder, const RunningMoments& moments);
core::Result<RunningMoments> load_rewards(const std::filesystem::path& folder);

}  // namespace troupe::learn
