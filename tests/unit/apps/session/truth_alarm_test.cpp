// The alarm on a training reward that rises while held-out truth falls.
#include "apps/session/truth_alarm.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace troupe::session {
namespace {

// Twenty problems of a set of which `right` are solved.
std::vector<EvalProblem> solved(int right, const std::string& set = "truth") {
  std::vector<EvalProblem> problems;
  for (int i = 0; i < 20; ++i) {
    EvalProblem problem;
    problem.set = set;
    problem.id = static_cast<std::uint64_t>(i);
    problem.scores = {i < right ? 1.0 : 0.0, i < right ? 1.0 : 0.0};
    problems.push_back(std::move(problem));
  }
  return problems;
}

void rewards(TruthAlarm& alarm, std::initializer_list<double> means) {
  for (const double mean : means)
    alarm.on_reward(mean);
}

TEST(TruthAlarm, RingsWhenTheRewardRisesAndTheTruthFalls) {
  TruthAlarm alarm;
  EXPECT_TRUE(alarm.on_evaluation(0, solved(15)).empty());
  rewards(alarm, {0.2, 0.4});
  EXPECT_TRUE(alarm.on_evaluation(2, solved(16)).empty()) << "both rise";
  rewards(alarm, {0.6, 0.8});
  const auto alarms = alarm.on_evaluation(4, solved(8));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].set, "truth");
  EXPECT_EQ(alarms[0].since, 2u);
  EXPECT_DOUBLE_EQ(alarms[0].reward_before, 0.3);  // of updates 1 and 2
  EXPECT_DOUBLE_EQ(alarms[0].reward_now, 0.7);
  EXPECT_DOUBLE_EQ(alarms[0].truth_before, 0.8);
  EXPECT_DOUBLE_EQ(alarms[0].truth_now, 0.4);
  EXPECT_LT(alarms[0].fall.high, 0);
  EXPECT_NE(alarms[0].text().find("rose from 0.3 to 0.7 since update 2 while held-out truth fell"),
            std::string::npos)
      << alarms[0].text();
}

TEST(TruthAlarm, ComparesWithTheUntrainedPolicyByItsFirstUpdate) {
  TruthAlarm alarm;
  EXPECT_TRUE(alarm.on_evaluation(0, solved(18)).empty());
  rewards(alarm, {0.1, 0.9});
  const auto alarms = alarm.on_evaluation(2, solved(3));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_DOUBLE_EQ(alarms[0].reward_before, 0.1);
  EXPECT_DOUBLE_EQ(alarms[0].reward_now, 0.5);
}

TEST(TruthAlarm, IsSilentWithoutReason) {
  TruthAlarm alarm;
  alarm.on_evaluation(0, solved(15));
  rewards(alarm, {0.5});
  EXPECT_TRUE(alarm.on_evaluation(1, solved(5)).empty()) << "the reward did not rise";
  rewards(alarm, {0.4});
  EXPECT_TRUE(alarm.on_evaluation(2, solved(5)).empty()) << "both fell";
  rewards(alarm, {0.9});
  EXPECT_TRUE(alarm.on_evaluation(3, solved(14)).empty()) << "one problem of 20 is chance";
  EXPECT_TRUE(alarm.on_evaluation(3, solved(1)).empty()) << "nothing was learned in between";
}

TEST(TruthAlarm, AFewProblemsAreTooFew) {
  TruthAlarm alarm;
  const auto few = [](int right) {
    auto problems = solved(right);
    problems.resize(9);
    return problems;
  };
  alarm.on_evaluation(0, few(9));
  rewards(alarm, {0.1, 0.9});
  EXPECT_TRUE(alarm.on_evaluation(2, few(0)).empty());
}

TEST(TruthAlarm, ASlowDeclineIsMeasuredFromTheBest) {
  TruthAlarm alarm;
  alarm.on_evaluation(0, solved(16));
  std::size_t rung = 0;
  for (std::uint64_t done = 1; done <= 10; ++done) {
    rewards(alarm, {0.1 * static_cast<double>(done)});
    rung += alarm.on_evaluation(done, solved(16 - static_cast<int>(done))).size();
  }
  EXPECT_GE(rung, 5u) << "one problem each time is chance, ten are not";
}

TEST(TruthAlarm, SetsAreWatchedOneByOne) {
  TruthAlarm alarm;
  const auto both = [](int one, int other) {
    auto problems = solved(one, "");
    for (EvalProblem& problem : solved(other, "sums"))
      problems.push_back(std::move(problem));
    return problems;
  };
  alarm.on_evaluation(0, both(10, 15));
  rewards(alarm, {0.1, 0.9});
  const auto alarms = alarm.on_evaluation(2, both(18, 2));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].set, "sums");
}

// A run that goes on in another process rings as it would have without the break.
TEST(TruthAlarm, IsRestoredFromTheRunFolder) {
  std::string pattern = (std::filesystem::temp_directory_path() / "alarm_XXXXXX").string();
  const std::filesystem::path path = ::mkdtemp(pattern.data());
  {
    auto folder = store::RunFolder::open(path);
    ASSERT_TRUE(folder) << folder.error().message;
    const auto evaluated = [&](std::uint64_t done, int right) {
      std::filesystem::create_directories(folder->eval_file(done).parent_path());
      std::ofstream out(folder->eval_file(done));
      for (const EvalProblem& problem : solved(right)) {
        out << nlohmann::json{{"mode", "sampled"},
                              {"set", problem.set},
                              {"prompt_id", problem.id},
                              {"rewards", problem.scores}}
            << "\n";
      }
    };
    evaluated(0, 15);
    evaluated(2, 16);
    std::ofstream(folder->metrics_file())
        << R"({"step":0,"eval/greedy":1,"time/eval":1})"
        << "\n"
        << R"({"step":0,"alarm/reward_up_truth_down":0,"time/eval":1})"
        << "\n"
        << R"({"step":1,"reward/mean":0.2})"
        << "\n"
        << R"({"step":2,"reward/mean":0.4})"
        << "\n"
        << R"({"step":2,"alarm/reward_up_truth_down":0,"time/eval":1})"
        << "\n"
        << R"({"step":3,"reward/mean":0.6})"
        << "\n";
    TruthAlarm alarm;
    alarm.restore(*folder);
    rewards(alarm, {0.8});
    const auto alarms = alarm.on_evaluation(4, solved(8));
    ASSERT_EQ(alarms.size(), 1u);
    EXPECT_EQ(alarms[0].since, 2u);
    EXPECT_DOUBLE_EQ(alarms[0].reward_before, 0.3);
    EXPECT_DOUBLE_EQ(alarms[0].reward_now, 0.7);
  }
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace troupe::session
