// Tries of one batch.
#include "actors/reward/reward_retries.hpp"

#include "runtime/core/limits.hpp"

#include <string>

namespace troupe::actors {
namespace {

using core::ErrorCode;

std::string seconds_of(core::Duration span) {
  std::string text = std::to_string(std::chrono::duration<double>(span).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

core::Result<std::vector<RewardScore>> score_with_retries(RewardSource& source,
                                                          const std::vector<RewardItem>& items,
                                                          core::Duration deadline,
                                                          RewardTries& tries) {
  constexpr std::uint64_t kHangs_max = 2;
  constexpr std::uint64_t kDeaths_max = core::limits::kRewardRetries_max + 1;
  for (std::uint64_t hangs = 0, deaths = 0;;) {
    ++tries.calls;
    auto scores = source.score(items, deadline);
    if (scores && scores->size() != items.size()) {
      return core::fail(ErrorCode::kData, "reward " + source.name() + " gave " +
                                              std::to_string(scores->size()) + " scores for " +
                                              std::to_string(items.size()) + " samples");
    }
    if (scores) return scores;
    const ErrorCode code = scores.error().code;
    if (code == ErrorCode::kDeadline) {
      ++tries.hangs;
      if (++hangs < kHangs_max) continue;
      return core::fail(code, scores.error().message + " (" + std::to_string(hangs) + " tries of " +
                                  seconds_of(deadline) + "; --reward.deadline_s allows more)");
    }
    if (code != ErrorCode::kPeerLost) return scores;
    ++tries.deaths;
    if (++deaths >= kDeaths_max) {
      // The role is there; its worker is not. Who asked must not wait for the role to come back.
      return core::fail(ErrorCode::kData,
                        scores.error().message + " (" + std::to_string(deaths) + " tries)");
    }
  }
}

}  // namespace troupe::actors
