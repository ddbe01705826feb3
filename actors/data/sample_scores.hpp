// From what the rewards of a set gave for a group's samples to the scores that are learned from:
// the formula of whole-sample scores, and the rewards of steps. Pure functions on the book's group.
#pragma once

#include "actors/data/book_events.hpp"
#include "actors/data/book_group.hpp"

#include <vector>

namespace troupe::actors::data {

// Adds what one member of the set gave. When every member has answered, all samples get their
// score, and those without one are listed. A member that scores steps and that the set's formula
// does not name adds them to the samples' steps, by its weight, in place of its score (their sum);
// feedback adds that of its turns so, besides that of the episode.
void add_scores(BookGroup& group, const GroupScored& given);

// The episodes whose samples all have a score: their number, and the mean of what they are worth,
// summed in their order.
struct ScoredEpisodes {
  std::size_t count = 0;
  double mean_score = 0;
  // Whether one differs from another by more than rounding: in what it is worth, or in the rewards
  // of its steps.
  bool differ = false;
};
ScoredEpisodes scored_episodes(const BookGroup& group);

// Drops the other episodes, and returns how many samples those had.
std::size_t keep_scored(BookGroup& group);

// What came with the samples, as the scores of that member of their group's set: for each the sum
// of its episode's feedback and of that of the turns on its path, and the turns' at their tokens. A
// sample without any has no score, and says why.
GroupScored feedback_scores(const BookGroup& group, std::size_t member);

// Whether `steps` is empty, or has for each sample places of its tokens.
bool fit_samples(const std::vector<std::vector<experience::StepReward>>& steps,
                 const std::vector<experience::Trajectory>& samples);

}  // namespace troupe::actors::data
