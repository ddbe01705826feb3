// Episodes of a group and the paths of their samples (docs/adr/0033-episodes.md). An episode is one
// sample, or several where it forks. A sample's path is all that the policy drew on the way to its
// end: the tokens that it shares, then its own. Each drawn token belongs to one sample. Pure
// functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::experience {

// Samples [begin, end) of the group.
struct Episode {
  std::size_t begin = 0, end = 0;
  std::size_t leaves() const { return end - begin; }
};

// In order. The samples of an episode must lie together (check_episodes).
std::vector<Episode> episodes_of(const std::vector<Trajectory>& samples);

// Drawn tokens of all its samples.
std::size_t tokens_of(const std::vector<Trajectory>& samples, const Episode& episode);

struct Path {
  struct Token {
    std::uint32_t sample = 0, token = 0;  // the sample that drew it, and its index there
  };
  std::vector<Token> tokens;
  std::vector<std::uint32_t> turns;  // where each turn begins; the first with 0
};

// The path of every sample, in their order.
std::vector<Path> paths_of(const std::vector<Trajectory>& samples);

// The rewards in `list` of the path's tokens, in their order, by their index on the path.
std::vector<StepReward> path_steps(const std::vector<Trajectory>& samples,
                                   const Path& path,
                                   std::vector<StepReward> Trajectory::*list);

// `score`, and the rewards of the steps on the path.
double path_total(const std::vector<Trajectory>& samples, const Path& path, double score);

// What a sample is worth: its score, 0 without one, and the rewards of the steps on its path.
double sample_total(const std::vector<Trajectory>& samples, std::size_t sample);

// What an episode is worth: the mean over its samples.
double episode_total(const std::vector<Trajectory>& samples, const Episode& episode);

// Checks how samples of one group refer to each other. Error kData, naming the sample: an episode
// whose samples lie apart, a fork of no earlier sample of its episode or with more tokens than
// there are, or one whose row does not begin with the other's up to the last token that it shares.
core::Result<void> check_episodes(const std::vector<Trajectory>& samples);

// Marks all samples of an episode of which one is marked. One entry a sample.
void mark_episodes(const std::vector<Trajectory>& samples, std::vector<bool>& marks);

// Takes out the marked samples, of whole episodes; the others share what they shared.
void drop_samples(std::vector<Trajectory>& samples, const std::vector<bool>& marks);

}  // namespace troupe::experience
