// When node processes of this host are started, started again and given up, by hand-worked times.
#include "actors/company/local_processes.hpp"

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "actors/protocol/limits.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace troupe::actors::company {
namespace {

using namespace std::chrono_literals;

core::TimePoint after(core::Duration since) {
  return core::TimePoint{} + 1h + since;
}

class ScriptedLauncher final : public NodeLauncher {
 public:
  core::Result<void> start(const std::string& node,
                           const std::vector<std::string>&,
                           const std::string& pass) override {
    EXPECT_TRUE(passes.insert(pass).second) << "a pass is good once";
    if (broken) return core::fail(core::ErrorCode::kResources, "no process");
    started.push_back(node);
    return {};
  }
  bool adopt(const std::string& node,
             const std::vector<std::string>&,
             const std::string& pass) override {
    if (!left.contains(node)) return false;
    EXPECT_TRUE(passes.insert(pass).second) << "a pass is good once";
    adopted.push_back(node);
    return true;
  }
  void kill(const std::string& node) override { killed.push_back(node); }
  std::vector<Exit> exits() override { return std::exchange(ended, {}); }

  std::set<std::string> passes;
  std::set<std::string> left;  // processes of an earlier head
  std::vector<std::string> started, adopted, killed;
  std::vector<Exit> ended;
  bool broken = false;
};

class LocalProcessesTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;
  ScriptedLauncher launcher_;
  Admission admission_;
  LocalProcesses processes_{
      {{"node/a", {"policy"}}, {"node/b", {"reward"}}}, launcher_, admission_};
};

TEST_F(LocalProcessesTest, EachIsStartedOnce) {
  ASSERT_TRUE(processes_.start_due(after(0s)));
  ASSERT_TRUE(processes_.start_due(after(1s)));
  EXPECT_EQ(launcher_.started, (Names{"node/a", "node/b"}));
  EXPECT_TRUE(processes_.any_running());
  EXPECT_TRUE(processes_.has("node/a"));
  EXPECT_FALSE(processes_.has("node/guest"));
}

TEST_F(LocalProcessesTest, AProcessOfAnEarlierHeadIsAdoptedOnceAndKilledWhenItDoesNotCome) {
  launcher_.left = {"node/a"};
  ASSERT_TRUE(processes_.start_due(after(0s)));
  EXPECT_EQ(launcher_.adopted, Names{"node/a"});
  EXPECT_EQ(launcher_.started, Names{"node/b"});
  EXPECT_TRUE(processes_.kill_late(after(limits::kAdoption)).empty());
  EXPECT_EQ(processes_.kill_late(after(limits::kAdoption + 1ms)), Names{"node/a"});
  launcher_.ended = {{"node/a", "has ended"}};
  processes_.collect(after(4s));
  ASSERT_TRUE(processes_.start_due(after(10s)));
  EXPECT_EQ(launcher_.adopted, Names{"node/a"});
  EXPECT_EQ(launcher_.started, (Names{"node/b", "node/a"}));
}

TEST_F(LocalProcessesTest, OneThatEndedIsStartedAgainAfterAPauseThatDoubles) {
  ASSERT_TRUE(processes_.start_due(after(0s)));
  core::TimePoint now = after(10s);
  for (const int factor : {2, 4, 8, 16, 32, 32}) {
    launcher_.ended = {{"node/b", "was ended by signal 9 (Killed)"}, {"node/other", "ended"}};
    const auto ended = processes_.collect(now);
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].node, "node/b");
    EXPECT_EQ(ended[0].how, "was ended by signal 9 (Killed)");
    EXPECT_FALSE(ended[0].joined);
    const std::size_t before = launcher_.started.size();
    ASSERT_TRUE(processes_.start_due(now + controller::limits::kRestartAfter * factor - 1ms));
    EXPECT_EQ(launcher_.started.size(), before);
    now += controller::limits::kRestartAfter * factor;
    ASSERT_TRUE(processes_.start_due(now));
    EXPECT_EQ(launcher_.started.size(), before + 1);
  }
}

TEST_F(LocalProcessesTest, OneThatNeverJoinsIsSaidToBeSo) {
  ASSERT_TRUE(processes_.start_due(after(0s)));
  for (std::uint64_t i = 1; i <= limits::kRestarts_max + 1; ++i) {
    launcher_.ended = {{"node/a", "ended with status 1"}};
    const auto ended = processes_.collect(after(i * 1min));
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].over_and_over, i == limits::kRestarts_max + 1);
    ASSERT_TRUE(processes_.start_due(after(i * 1min + 30s)));
  }
}

TEST_F(LocalProcessesTest, JoiningForgetsEarlierFailures) {
  ASSERT_TRUE(processes_.start_due(after(0s)));
  for (std::uint64_t i = 1; i <= 3 * limits::kRestarts_max; ++i) {
    processes_.joined("node/a");
    launcher_.ended = {{"node/a", "ended with status 1"}};
    const auto ended = processes_.collect(after(i * 1min));
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_TRUE(ended[0].joined);
    EXPECT_FALSE(ended[0].over_and_over);
    ASSERT_TRUE(processes_.start_due(after(i * 1min + 30s)));
  }
}

TEST_F(LocalProcessesTest, OneThatDoesNotJoinInTimeIsKilled) {
  ASSERT_TRUE(processes_.start_due(after(0s)));
  processes_.joined("node/a");
  EXPECT_EQ(processes_.kill_late(after(actors::limits::kNodeStart)), Names{});
  EXPECT_EQ(processes_.kill_late(after(actors::limits::kNodeStart + 1ms)), Names{"node/b"});
  EXPECT_EQ(launcher_.killed, Names{"node/b"});
}

TEST_F(LocalProcessesTest, OnlyThisHostsAreKilledAndAnErrorOfTheLauncherIsGiven) {
  launcher_.broken = true;
  EXPECT_FALSE(processes_.start_due(after(0s)));
  EXPECT_FALSE(processes_.any_running());
  processes_.kill("node/guest");
  EXPECT_EQ(launcher_.killed, Names{});
  launcher_.broken = false;
  ASSERT_TRUE(processes_.start_due(after(1s)));
  processes_.joined("node/b");
  processes_.kill_unjoined();
  processes_.kill("node/b");
  EXPECT_EQ(launcher_.killed, (Names{"node/a", "node/b"}));
}

}  // namespace
}  // namespace troupe::actors::company
