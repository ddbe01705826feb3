// Which groups are worth learning from, and what becomes of a group that is scored. Pure.
#pragma once

#include "actors/data/sample_scores.hpp"

#include <optional>
#include <string>

namespace troupe::actors::data {

// The range of mean scores of groups that are worth learning from; both ends are excluded.
struct MeanRange {
  double low = 0, high = 1;
  bool holds(double mean) const { return low < mean && mean < high; }
};

// Keeps groups whose episodes differ in worth (by more than rounding), or, with a range,
// those whose mean score is inside it.
struct GroupFilter {
  std::optional<MeanRange> range{};

  // A single sample cannot differ from another.
  bool keeps(const ScoredEpisodes& scored) const;
  // Why it does not keep them.
  std::string refusal(const ScoredEpisodes& scored) const;
};

// What becomes of a group whose samples came, by what its rewards and frozen models gave.
struct GroupOutcome {
  bool waits = false;                    // for more scores
  std::optional<FailureKind> failure{};  // why the group fails; else it is ready
  std::string cause{};
};
GroupOutcome outcome_of(const BookGroup& group,
                        const FrozenModels& needed,
                        const std::optional<GroupFilter>& filter);

}  // namespace troupe::actors::data
