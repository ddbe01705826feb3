#include "actors/reward/reward_retries.hpp"

#include <algorithm>
#include <optional>
#include <thread>

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
                                                          const std::vector<RewardGroup>& groups,
                                                          core::Duration deadline,
                                                          RewardTries& tries) {
  constexpr std::uint64_t kHangs_max = 2;
  constexpr std::uint64_t kDeaths_max = limits::kRewardRetries_max + 1;
  for (std::uint64_t hangs = 0, deaths = 0;;) {
    ++tries.calls;
    auto scores = source.score(groups, deadline);
    if (scores && scores->size() != samples_in(groups)) {
      return core::fail(ErrorCode::kData, "reward " + source.name() + " gave " +
                                              std::to_string(scores->size()) + " scores for " +
                                              std::to_string(samples_in(groups)) + " samples");
    }
    if (scores) return scores;
    const ErrorCode code = scores.error().code;
    if (code == ErrorCode::kDeadline) {
      ++tries.hangs;
      if (++hangs < kHangs_max) continue;
      return core::fail(code, scores.error().message + " (" + std::to_string(hangs) + " tries of " +
                                  seconds_of(deadline) + "; --reward.deadline_s allows more)");
    }
    if (code == ErrorCode::kPeerLost) ++tries.away;
    if (code != ErrorCode::kClosed) return scores;
    ++tries.deaths;
    if (++deaths >= kDeaths_max) {
      // The batch kills every worker: a final error, so that nobody waits for another one.
      return core::fail(ErrorCode::kData,
                        scores.error().message + " (" + std::to_string(deaths) + " tries)");
    }
  }
}

core::Result<std::vector<RewardScore>> score_patiently(RewardSource& source,
                                                       const std::vector<RewardGroup>& groups,
                                                       core::Duration deadline,
                                                       RewardTries& tries,
                                                       const SourcePatience& patience) {
  constexpr core::Duration kLook = std::chrono::milliseconds(100);
  const core::SteadyClock clock;
  const std::string name = "reward " + source.name();
  const auto say = [&patience](const std::string& text) {
    if (patience.say) patience.say(text);
  };
  std::optional<core::TimePoint> since;
  for (core::Duration pause = patience.pause_min;;
       pause = std::min(2 * pause, patience.pause_max)) {
    auto scores = score_with_retries(source, groups, deadline, tries);
    const core::TimePoint now = clock.now();
    if (scores || scores.error().code != ErrorCode::kPeerLost) {
      if (since) say(name + " is back after " + seconds_of(now - *since));
      return scores;
    }
    if (!since) {
      say(name + " is away: " + scores.error().message + "; waiting up to " +
          seconds_of(patience.away_max));
      since = now;
    }
    if (now - *since >= patience.away_max) return scores;
    const core::TimePoint until = std::min(now + pause, *since + patience.away_max);
    while (clock.now() < until) {
      if (patience.stopped && patience.stopped()) {
        return core::fail(ErrorCode::kInterrupted, "interrupted");
      }
      std::this_thread::sleep_for(std::min<core::Duration>(kLook, until - clock.now()));
    }
  }
}

}  // namespace troupe::actors
