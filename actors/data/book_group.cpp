#include "actors/data/book_group.hpp"

#include "runtime/experience/episodes.hpp"

#include <algorithm>

namespace troupe::actors::data {

bool waits(const BookGroup& group, const std::string& reward) {
  const auto member = group.rewards->member(reward);
  return is_open(group) && member && !group.scored[*member];
}

std::optional<DuplicateKind> duplicate_kind(const BookGroup* group,
                                            const experience::Ticket& ticket) {
  if (group == nullptr) return DuplicateKind::kClosed;
  // A ticket of an earlier life counts once it is issued in this one.
  const bool waits = group->state == GroupState::kIssued && !group->restored;
  if (group->ticket == ticket && waits) return std::nullopt;
  if (group->ticket == ticket)
    return group->samples.empty() ? DuplicateKind::kFailed : DuplicateKind::kRepeated;
  return group->ticket.attempt > ticket.attempt ? DuplicateKind::kReplaced : DuplicateKind::kClosed;
}

core::Result<void> check_count(const BookGroup& group,
                               const std::vector<experience::Trajectory>& samples,
                               bool cut) {
  const auto count = static_cast<std::int32_t>(experience::episodes_of(samples).size());
  const std::int32_t least = cut ? std::min(2, group.wanted) : group.wanted;
  if (count >= least && count <= group.wanted) return {};
  const bool forked = std::any_of(samples.begin(), samples.end(),
                                  [](const auto& sample) { return sample.episode != 0; });
  return core::fail(ErrorCode::kData, name_of(group.ticket) + ": " + std::to_string(count) +
                                          (forked ? " episodes" : " samples") +
                                          " came for a group of " + std::to_string(group.wanted));
}

core::Result<void> check_age(const BookGroup& group,
                             const std::vector<experience::Trajectory>& samples) {
  for (const experience::Trajectory& sample : samples) {
    const core::Version oldest = sample.versions.oldest();
    if (oldest >= group.version_min) continue;
    return core::fail(ErrorCode::kData, name_of(group.ticket) +
                                            ": a token was drawn with version " +
                                            std::to_string(oldest) +
                                            " of the weights, but its ticket allows none before " +
                                            std::to_string(group.version_min));
  }
  return {};
}

bool fit_tokens(const std::vector<std::vector<float>>& logprobs,
                const std::vector<experience::Trajectory>& samples) {
  return std::equal(
      logprobs.begin(), logprobs.end(), samples.begin(), samples.end(),
      [](const auto& list, const auto& sample) { return list.size() == sample.tokens.size(); });
}

std::string fault_of(const BookGroup& group, const FrozenModels& needed) {
  const std::size_t samples = group.samples.size();
  if (group.wanted < 1 || group.rewards == nullptr) return "wants no sample or has no rewards";
  if (group.scored.size() != group.rewards->members.size()) return "has other rewards than its set";
  if (group.state == GroupState::kIssued)
    return samples > 0 || !group.scores.empty() ? "has samples before they came" : "";
  if (group.state == GroupState::kFailed)
    return group.cause.empty() ? "failed without a cause" : "";
  if (samples == 0) return "has no samples";
  const bool all = std::count(group.scored.begin(), group.scored.end(), false) == 0;
  const bool frozen = (!needed.reference || group.referenced) && (!needed.teacher || group.taught);
  if (group.state == GroupState::kGenerated) {
    if (group.scores.size() != samples) return "has scores of other samples";
    return all && frozen ? "waits for nothing and is not ready" : "";
  }
  if (!all || !frozen) return "is ready without all that it waits for";
  const bool each = std::all_of(group.samples.begin(), group.samples.end(),
                                [](const auto& sample) { return sample.score.has_value(); });
  return each ? "" : "is ready with a sample without a score";
}

}  // namespace troupe::actors::data
