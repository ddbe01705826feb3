// From what the rewards of a set gave for a group's samples to the scores that are learned from:
// the formula of whole-sample scores, and the rewards of steps. Pure functions on the book's group.
#pragma once

#include "actors/data/book_group.hpp"

#include <vector>

namespace troupe::actors {

// Scores all samples, once every member has answered, and lists those without a score. A member
// that scores steps and that the set's formula does not name adds them to the samples' steps, by
// its weight, in place of its score (their sum).
void combine(BookGroup& group);

// Whether `steps` is empty, or has for each sample places of its tokens.
bool fit_samples(const std::vector<std::vector<experience::StepReward>>& steps,
                 const std::vector<experience::Trajectory>& samples);

}  // namespace troupe::actors
