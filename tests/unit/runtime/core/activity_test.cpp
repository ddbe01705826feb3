// A role's time: every moment counted once, in one state; spans touch and the ring is bounded.
#include "runtime/core/activity.hpp"

#include "runtime/core/limits.hpp"
#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace troupe::core {
namespace {

using namespace std::chrono_literals;

Duration idle_sum(const Activity::Report& report) {
  Duration sum{};
  for (const auto& [cause, span] : report.idle)
    sum += span;
  return sum;
}

TEST(Activity, BeginsIdleWithNothingAsked) {
  ManualClock clock;
  Activity activity(clock);
  clock.advance(3s);
  const auto report = activity.report();
  EXPECT_EQ(report.wall, 3s);
  EXPECT_EQ(report.idle.at("nothing asked"), 3s);
  EXPECT_EQ(report.busy, 0s);
  EXPECT_TRUE(report.spans.empty());
  EXPECT_EQ(report.now.cause, "nothing asked");
  EXPECT_EQ(report.now.end - report.now.begin, 3s);
}

TEST(Activity, CountsEachStateAndEachCause) {
  ManualClock clock;
  Activity activity(clock);
  activity.set_busy("step");
  clock.advance(5s);
  activity.set_idle("no tickets");
  clock.advance(2s);
  activity.set_paused("lease");
  clock.advance(1s);
  activity.set_idle("no tickets");
  clock.advance(4s);
  const auto report = activity.report();
  EXPECT_EQ(report.busy, 5s);
  EXPECT_EQ(report.paused, 1s);
  EXPECT_EQ(report.idle.at("no tickets"), 6s);
  EXPECT_EQ(report.wall, 12s);
}

TEST(Activity, AGuardGivesBackWhatWasBeforeAndNests) {
  ManualClock clock;
  Activity activity(clock);
  activity.set_paused("lease");
  {
    const Activity::Busy outer(&activity, "outer");
    clock.advance(1s);
    {
      const Activity::Busy inner(&activity, "inner");
      clock.advance(1s);
    }
    EXPECT_EQ(activity.report().now.cause, "outer");
  }
  EXPECT_EQ(activity.report().now.state, Activity::State::kPaused);
  EXPECT_EQ(activity.report().busy, 2s);
}

TEST(Activity, SumsAddUpToTheWallWhateverHappens) {
  ManualClock clock;
  Activity activity(clock);
  Rng rng(7, 0);
  for (int i = 0; i < 20'000; ++i) {
    const std::string cause = std::to_string(rng.next_below(100));
    switch (rng.next_below(3)) {
      case 0:
        activity.set_busy(cause);
        break;
      case 1:
        activity.set_idle(cause);
        break;
      default:
        activity.set_paused(cause);
    }
    clock.advance(Duration(rng.next_below(400'000)));  // many under the shortest span
  }
  const auto report = activity.report();
  EXPECT_EQ(report.busy + report.paused + idle_sum(report), report.wall);
  EXPECT_LE(report.idle.size(), limits::kActivityCauses_max + 1);
  EXPECT_GT(report.idle.at("other"), 0s);
  EXPECT_LE(report.spans.size(), limits::kActivitySpans_max);
  for (std::size_t i = 1; i < report.spans.size(); ++i) {
    ASSERT_EQ(report.spans[i].begin, report.spans[i - 1].end);
  }
}

TEST(Activity, ShortSpansJoinTheirNeighboursInTheRingOnly) {
  ManualClock clock;
  Activity activity(clock);
  activity.set_busy("step");
  for (int i = 0; i < 10; ++i) {
    clock.advance(1ms);
    activity.set_idle("breath");
    clock.advance(20us);
    activity.set_busy("step");
  }
  clock.advance(1ms);
  activity.set_idle("done");
  clock.advance(1s);
  activity.set_busy("again");
  const auto report = activity.report();
  EXPECT_EQ(report.idle.at("breath"), 200us);
  ASSERT_EQ(report.spans.size(), 1u);
  EXPECT_EQ(report.spans[0].cause, "step");
  EXPECT_EQ(report.spans[0].end - report.spans[0].begin, 11ms + 200us);
}

TEST(Activity, SpansAreGivenOnceWithTheirNumbers) {
  ManualClock clock;
  Activity activity(clock);
  std::uint64_t have = 0;
  std::vector<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    activity.set_busy("step " + std::to_string(i));
    clock.advance(1s);
    const auto report = activity.report(have);
    for (const auto& span : report.spans)
      seen.push_back(span.cause);
    have = report.next_span;
  }
  EXPECT_EQ(seen.size(), 8u);  // the open one and the newest finished one are still to come
  EXPECT_EQ(seen.front(), "step 0");
  EXPECT_EQ(seen.back(), "step 7");
}

TEST(Activity, AnAskerWhoCameTooLateGetsWhatIsLeft) {
  ManualClock clock;
  Activity activity(clock);
  const auto most = limits::kActivitySpans_max;
  for (std::uint64_t i = 0; i < 2 * most; ++i) {
    activity.set_busy(std::to_string(i));
    clock.advance(1ms);
  }
  const auto report = activity.report(5);
  EXPECT_EQ(report.spans.size(), most - 1);
  EXPECT_EQ(activity.report(report.next_span).spans.size(), 0u);
}

TEST(Activity, ReportsAreExactWhileOtherThreadsChangeTheState) {
  SteadyClock clock;
  Activity activity(clock);
  std::atomic<bool> over{false};
  std::thread role([&] {
    while (!over.load()) {
      const Activity::Busy busy(&activity, "step");
      activity.set_paused("lease");
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const auto report = activity.report();
    ASSERT_EQ(report.busy + report.paused + idle_sum(report), report.wall);
  }
  over = true;
  role.join();
}

}  // namespace
}  // namespace troupe::core
