// How often a batch is tried: a hang costs one deadline and is tried again once, a lost worker a
// few times, an exception never.
#include "actors/reward/reward_retries.hpp"

#include "actors/reward/blocking_reward.hpp"
#include "actors/reward/limits.hpp"
#include "actors/reward/python_reward.hpp"
#include "tests/unit/actors/reward/answered.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::actors::reward {
namespace {

using core::ErrorCode;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// Fails as often as it is told, then scores 1.
class ScriptedSource final : public RewardSource {
 public:
  explicit ScriptedSource(std::deque<ErrorCode> errors) : errors_(std::move(errors)) {}
  std::string name() const override { return "scripted"; }
  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration deadline) override {
    deadlines.push_back(deadline);
    if (errors_.empty()) return std::vector<RewardScore>(samples_in(groups), {1.0, ""});
    const ErrorCode code = errors_.front();
    errors_.pop_front();
    return core::fail(code, "as told");
  }
  std::vector<core::Duration> deadlines;

 private:
  std::deque<ErrorCode> errors_;
};

struct Tried {
  explicit Tried(std::deque<ErrorCode> errors) : source(std::move(errors)) {
    result.emplace(score_with_retries(source, {answered("p", "a"), answered("p", "b")}, 7s, tries));
  }
  ScriptedSource source;
  RewardTries tries;
  std::optional<core::Result<std::vector<RewardScore>>> result;
};

}  // namespace

TEST(RewardRetries, OneHangCostsOneDeadline) {
  const Tried tried({ErrorCode::kDeadline});
  EXPECT_TRUE(*tried.result);
  EXPECT_EQ(tried.source.deadlines, (std::vector<core::Duration>{7s, 7s}));
  EXPECT_EQ(tried.tries.hangs, 1u);
}

TEST(RewardRetries, ASecondHangIsTheLast) {
  const Tried tried({ErrorCode::kDeadline, ErrorCode::kDeadline, ErrorCode::kDeadline});
  ASSERT_FALSE(*tried.result);
  EXPECT_EQ(tried.result->error().code, ErrorCode::kDeadline);
  EXPECT_NE(tried.result->error().message.find("2 tries of 7 s"), std::string::npos)
      << tried.result->error().message;
  EXPECT_EQ(tried.tries.calls, 2u);
}

TEST(RewardRetries, ALostWorkerIsReplacedAFewTimes) {
  EXPECT_TRUE(*Tried({ErrorCode::kClosed, ErrorCode::kClosed}).result);
  const Tried tried(std::deque<ErrorCode>(9, ErrorCode::kClosed));
  ASSERT_FALSE(*tried.result);
  EXPECT_EQ(tried.tries.deaths, limits::kRewardRetries_max + 1);
  // The batch is judged: whoever asked must not wait for another worker.
  EXPECT_EQ(tried.result->error().code, ErrorCode::kData);
}

TEST(RewardRetries, ASourceThatIsAwayIsLeftToWhoCanWait) {
  const Tried tried({ErrorCode::kPeerLost});
  ASSERT_FALSE(*tried.result);
  EXPECT_EQ(tried.result->error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(tried.tries.calls, 1u);
  EXPECT_EQ(tried.tries.away, 1u);
  EXPECT_EQ(tried.tries.deaths, 0u) << "it has no worker";
}

TEST(RewardRetries, ACommandWaitsForItByItself) {
  ScriptedSource source({ErrorCode::kPeerLost, ErrorCode::kPeerLost, ErrorCode::kPeerLost});
  RewardTries tries;
  std::vector<std::string> said;
  SourcePatience patience{1ms, 2ms, 60s, nullptr,
                          [&](const std::string& text) { said.push_back(text); }};
  EXPECT_TRUE(score_patiently(source, {{}, {}}, 7s, tries, patience));
  EXPECT_EQ(tries.calls, 4u);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0], "reward scripted is away: as told; waiting up to 60 s");
  EXPECT_EQ(said[1].rfind("reward scripted is back after ", 0), 0u);

  ScriptedSource gone(std::deque<ErrorCode>(1000, ErrorCode::kPeerLost));
  patience.away_max = 0ms;
  EXPECT_EQ(score_patiently(gone, {{}}, 7s, tries, patience).error().code, ErrorCode::kPeerLost);
  patience.away_max = 60s;
  patience.stopped = [] { return true; };
  EXPECT_EQ(score_patiently(gone, {{}}, 7s, tries, patience).error().code, ErrorCode::kInterrupted);
}

TEST(RewardRetries, OtherErrorsAreNotTriedAgain) {
  for (const ErrorCode code : {ErrorCode::kData, ErrorCode::kConfig, ErrorCode::kUnsupported}) {
    const Tried tried({code});
    EXPECT_EQ(tried.result->error().code, code);
    EXPECT_EQ(tried.tries.calls, 1u);
  }
}

TEST(RewardRetries, AHangingPythonFunctionIsKilledAndItsBatchScored) {
  std::string pattern = (std::filesystem::temp_directory_path() / "retries_XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "reward.py") << "import os, time\n"
                                         "flag = os.path.join(os.path.dirname(__file__), 'seen')\n"
                                         "def reward_func(queries, prompts, labels):\n"
                                         "    if not os.path.exists(flag):\n"
                                         "        open(flag, 'w').close()\n"
                                         "        while True: time.sleep(1)\n"
                                         "    return [1.0] * len(queries)\n";
  auto reward = make_python_reward({folder / "reward.py"});
  ASSERT_TRUE(reward) << reward.error().message;
  const auto source = make_blocking_reward(std::move(*reward));
  RewardTries tries;
  const auto scores = score_with_retries(*source, {answered("q", "a")}, 3000ms, tries);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ(tries.calls, 2u);
  EXPECT_EQ(tries.hangs, 1u);
  std::filesystem::remove_all(folder);
}

}  // namespace troupe::actors::reward
