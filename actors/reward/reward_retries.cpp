#include "actors/reward/reward_retries.hpp"

#include "actors/reward/limits.hpp"
#include "runtime/core/foreign_text.hpp"

#include <algorithm>
#include <optional>
#include <thread>

namespace troupe::actors::reward {
namespace {

std::string seconds_of(core::Duration span) {
  std::string text = std::to_string(std::chrono::duration<double>(span).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

// The tries of one batch.
class BatchTries {
 public:
  BatchTries(std::string name, std::size_t samples, core::Duration deadline, RewardTries& tries)
      : name_(std::move(name)), samples_(samples), deadline_(deadline), tries_(tries) {}

  // What the batch gets after this try; none: it is tried again.
  std::optional<RewardCalls::Answer> judge(RewardCalls::Answer scores) {
    ++tries_.calls;
    if (scores && scores->size() != samples_) {
      return core::fail(ErrorCode::kData, "reward " + name_ + " gave " +
                                              std::to_string(scores->size()) + " scores for " +
                                              std::to_string(samples_) + " samples");
    }
    if (scores) return scores;
    const ErrorCode code = scores.error().code;
    if (code == ErrorCode::kDeadline) {
      ++tries_.hangs;
      if (++hangs_ < kHangs_max) return std::nullopt;
      return core::fail(
          code,
          core::with_fact(scores.error().message,
                          std::to_string(hangs_) + " tries of " + seconds_of(deadline_)),
          "--reward.deadline_s allows more");
    }
    if (code == ErrorCode::kPeerLost) ++tries_.away;
    if (code != ErrorCode::kClosed) return scores;
    ++tries_.deaths;
    if (++deaths_ < kDeaths_max) return std::nullopt;
    // The batch kills every worker: a final error, so that no call waits for another one.
    return core::fail(ErrorCode::kData,
                      core::with_fact(scores.error().message, std::to_string(deaths_) + " tries"));
  }

 private:
  static constexpr std::uint64_t kHangs_max = 2;
  static constexpr std::uint64_t kDeaths_max = limits::kRewardRetries_max + 1;
  const std::string name_;
  const std::size_t samples_;
  const core::Duration deadline_;
  RewardTries& tries_;
  std::uint64_t hangs_ = 0, deaths_ = 0;
};

}  // namespace

void RewardTries::add(const RewardTries& other) {
  calls += other.calls;
  hangs += other.hangs;
  deaths += other.deaths;
  away += other.away;
}

core::Result<std::vector<RewardScore>> score_with_retries(RewardSource& source,
                                                          const std::vector<RewardGroup>& groups,
                                                          core::Duration deadline,
                                                          RewardTries& tries) {
  BatchTries batch(source.name(), samples_in(groups), deadline, tries);
  for (;;) {
    if (auto answer = batch.judge(source.score(groups, deadline))) return std::move(*answer);
  }
}

async::task<RewardCalls::Answer> score_with_retries(RewardCalls* calls,
                                                    std::vector<RewardGroup> groups,
                                                    core::Duration deadline,
                                                    std::shared_ptr<RewardTries> tries) {
  BatchTries batch(calls->name(), samples_in(groups), deadline, *tries);
  for (;;) {
    std::vector<RewardGroup> copy = groups;
    auto scores = co_await calls->score(std::move(copy), deadline);
    if (auto answer = batch.judge(std::move(scores))) co_return std::move(*answer);
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

}  // namespace troupe::actors::reward
