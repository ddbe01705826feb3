// Advantages over turns and forks (docs/algorithms.md, "Over turns"). Plain C++ on doubles, pure.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/episodes.hpp"
#include "runtime/learn/settings.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::learn {

// Advantages (and the critic's targets, if any) of the tokens of one path. With algo.credit `turn`
// each turn is one action: its reward is the sum of its tokens', its value that of its first token,
// its log-weight the sum; all of its tokens get what the estimator gives it. `turns`: where they
// begin.
TokenReturns path_returns(const AlgoSettings& algo,
                          const SampleRewards& path,
                          std::span<const std::uint32_t> turns);

// The group step over episodes: an episode counts once, with the mean of its samples' scores, and
// each sample gets the advantage that its own score has in these statistics. `scores`: one a
// sample. Errors: those of group_advantages.
core::Result<std::vector<double>> episode_advantages(
    const AlgoSettings& algo,
    const std::vector<experience::Trajectory>& samples,
    std::span<const double> scores,
    const std::string& name);

// By sample and token: the mean over the paths that hold the token. `lists`: one number for each
// token of each path.
std::vector<std::vector<double>> mean_over_paths(const std::vector<experience::Trajectory>& samples,
                                                 const std::vector<experience::Path>& paths,
                                                 std::vector<std::vector<double>> lists);

}  // namespace troupe::learn
