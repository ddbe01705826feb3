// Sessions of episodes: which episode a session takes, and when it is over.
#include "actors/environment/episode_sessions.hpp"

#include "runtime/async/deadline.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::environment {
namespace {

using namespace std::chrono_literals;

EpisodeSettings limits(core::Duration reward, core::Duration episode, bool needs = true) {
  EpisodeSettings settings;
  settings.reward_timeout = reward;
  settings.episode_timeout_s = episode;
  settings.needs_reward = needs;
  return settings;
}

VisitState state(core::Duration opened, core::Duration used) {
  return {core::TimePoint(opened), core::TimePoint(used)};
}

TEST(VisitEnd, AtTheEndWithARewardOrWithoutWhereNoneIsNeeded) {
  const auto settings = limits(10s, 100s);
  const core::TimePoint now(5s);
  VisitState one = state(0s, 4s);
  EXPECT_EQ(visit_end(one, settings, now).look, core::TimePoint(14s));
  one.rewarded = true;
  EXPECT_FALSE(visit_end(one, settings, now).over) << "more may be said";
  one.ended = true;
  EXPECT_TRUE(visit_end(one, settings, now).over);
  one.busy = true;
  EXPECT_FALSE(visit_end(one, settings, now).over) << "a call is being answered";
  VisitState silent = state(0s, 4s);
  silent.ended = true;
  EXPECT_FALSE(visit_end(silent, settings, now).over);
  EXPECT_TRUE(visit_end(silent, limits(10s, 100s, false), now).over);
}

TEST(VisitEnd, AfterASilenceAndAtTheLimitOfTheEpisode) {
  const auto settings = limits(10s, 100s);
  VisitState one = state(0s, 4s);
  EXPECT_FALSE(visit_end(one, settings, core::TimePoint(13s)).over);
  EXPECT_TRUE(visit_end(one, settings, core::TimePoint(14s)).over);
  one.busy = true;
  EXPECT_EQ(visit_end(one, settings, core::TimePoint(50s)).look, core::TimePoint(51s));
  EXPECT_TRUE(visit_end(one, settings, core::TimePoint(100s)).over);
  VisitState late = state(0s, 95s);
  EXPECT_EQ(visit_end(late, settings, core::TimePoint(96s)).look, core::TimePoint(100s));
  EXPECT_TRUE(visit_end(state(0s, 1s), limits(0s, 100s), core::TimePoint(1s)).over)
      << "a limit of 0 waits for nothing";
}

class Idle final : public dialects::Sampler {
 public:
  core::GroupId next_id() override { return {1}; }
  void submit(engine::GroupRequest, bool, async::Executor, Listener) override {}
  void abort(core::GroupId) override {}
  void close() override { closed = true; }
  core::Version version() const override { return 0; }
  bool closed = false;
};

EpisodeOrder order(std::uint32_t index, const std::string& columns = "{\"n\":1}") {
  auto task = std::make_shared<EpisodeTask>();
  task->columns = columns;
  return {std::move(task), index, {}, 0};
}

class EpisodeSessionsTest : public ::testing::Test {
 protected:
  EpisodeSessionsTest()
      : sessions_(timers_, {}, [this](const EpisodeOrder& order) { return sampler_of(order); }) {}
  core::Result<std::shared_ptr<dialects::Sampler>> sampler_of(const EpisodeOrder& order) {
    if (stale_) return core::fail(core::ErrorCode::kOverloaded, "stale");
    made_.push_back(order.index);
    return std::shared_ptr<dialects::Sampler>(last_ = std::make_shared<Idle>());
  }

  async::SteadyTimers timers_;
  bool stale_ = false;
  std::vector<std::uint32_t> made_;
  std::shared_ptr<Idle> last_;
  EpisodeSessions sessions_;
};

TEST_F(EpisodeSessionsTest, ASessionTakesTheEpisodeThatHasWaitedLongest) {
  EXPECT_EQ(sessions_.open({}, false).error().code, core::ErrorCode::kOverloaded);
  const auto gone = sessions_.offer(order(7)), first = sessions_.offer(order(1)),
             second = sessions_.offer(order(2));
  sessions_.leave(*gone);
  EXPECT_FALSE(sessions_.session(*first));
  const auto opened = sessions_.open(3, true);
  ASSERT_TRUE(opened);
  EXPECT_EQ(made_, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(opened->task, "{\"n\":1}");
  EXPECT_EQ(opened->owner, 3u);
  EXPECT_TRUE(opened->lock.in_path);
  EXPECT_EQ(sessions_.key(*first), opened->session->id() + "." + opened->lock.secret);
  EXPECT_EQ(sessions_.session(*first), opened->session);
  EXPECT_FALSE(sessions_.session(*second));
  EXPECT_EQ(sessions_.find(opened->session->id())->session, opened->session);
}

TEST_F(EpisodeSessionsTest, AnEpisodeWaitsOnWhereNothingCanAnswerItsCalls) {
  const auto visit = sessions_.offer(order(1));
  stale_ = true;
  EXPECT_FALSE(sessions_.open({}, false));
  stale_ = false;
  EXPECT_TRUE(sessions_.open({}, false));
}

TEST_F(EpisodeSessionsTest, LeavingClosesTheSession) {
  int told = 0;
  sessions_.when_changed([&] { ++told; });
  const auto visit = *sessions_.begin(order(1));
  const auto session = sessions_.session(*visit);
  EXPECT_TRUE(session->reward(0.5, {}));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(sessions_.state(*visit).rewarded);
  session->end();
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(sessions_.state(*visit).ended);
  sessions_.leave(*visit);
  EXPECT_TRUE(last_->closed);
  EXPECT_FALSE(session->reward(1, {}));
  EXPECT_FALSE(sessions_.find(session->id()));
}

}  // namespace
}  // namespace troupe::actors::environment
