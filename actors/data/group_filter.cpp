#include "actors/data/group_filter.hpp"

#include "runtime/core/texts.hpp"

#include <algorithm>

namespace troupe::actors::data {
namespace {

std::string number_text(double value) {
  return core::printed("%.6g", value);
}

}  // namespace

bool GroupFilter::keeps(const ScoredEpisodes& scored) const {
  if (range) return range->holds(scored.mean_score);
  return scored.differ || scored.count < 2;
}

std::string GroupFilter::refusal(const ScoredEpisodes& scored) const {
  const std::string mean = number_text(scored.mean_score);
  if (!range) return "all of its samples have the score " + mean;
  return "its mean score of " + mean + " is not between " + number_text(range->low) + " and " +
         number_text(range->high) + " (--algo.dynamic_filtering_range)";
}

GroupOutcome outcome_of(const BookGroup& group,
                        const FrozenModels& needed,
                        const std::optional<GroupFilter>& filter) {
  if (std::count(group.scored.begin(), group.scored.end(), false) > 0) return {.waits = true};
  const std::size_t least = group.wanted >= 2 ? 2 : 1;
  const ScoredEpisodes scored = scored_episodes(group);
  // A filtered group need not wait for frozen models.
  if (filter && scored.count >= least && !filter->keeps(scored))
    return {.failure = FailureKind::kFiltered, .cause = filter->refusal(scored)};
  if (needed.reference && !group.referenced) return {.waits = true};
  if (needed.teacher && !group.taught) return {.waits = true};
  if (scored.count >= least) return {};
  return {.failure = FailureKind::kUnscored,
          .cause = "too few of its samples could be scored: " + group.unscored.front().cause};
}

}  // namespace troupe::actors::data
