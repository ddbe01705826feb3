// Runs from which nothing is learned though nothing fails: what is said, once, and at the end.
#include "apps/session/silence_watch.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace troupe::session {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

// An update of a healthy run, with these values in the place of its own.
observe::MetricRow update(std::uint64_t step, const Values& other = {}) {
  observe::MetricRow row{step,
                         0,
                         {{"policy/lr", 1e-4},
                          {"policy/grad_norm", 0.5},
                          {"policy/skipped_steps", 0},
                          {"policy/zero_advantage_share", 0.5},
                          {"reward/missing", 0},
                          {"response/clip_ratio", 0.5}}};
  for (const auto& [name, value] : other)
    for (auto& [own, place] : row.values)
      if (own == name) place = value;
  return row;
}

std::vector<std::string> told(SilenceWatch& watch, const Values& values, int updates) {
  std::vector<std::string> lines;
  for (int i = 1; i <= updates; ++i)
    for (const std::string& line : watch.on_update(update(static_cast<std::uint64_t>(i), values)))
      lines.push_back(std::to_string(i) + " " + line);
  return lines;
}

}  // namespace

TEST(SilenceWatch, SaysEachCauseOnceAndAgainAtTheEnd) {
  struct Case {
    Values values;
    std::string said, at_the_end;
  };
  const std::vector<Case> cases = {
      {{{"policy/zero_advantage_share", 1}, {"policy/grad_norm", 0}},
       "3 nothing is learned from updates 1 to 3: all groups had equal scores "
       "(policy/zero_advantage_share); look at the reward, and at rollout.temperature and "
       "rollout.n_samples_per_prompt",
       "nothing was learned from 5 of 5 updates: all groups had equal scores"},
      {{{"response/clip_ratio", 1}, {"policy/zero_advantage_share", 1}, {"policy/grad_norm", 0}},
       "3 nothing is learned from updates 1 to 3: all answers were cut at their length limit "
       "(response/clip_ratio); raise rollout.max_new_tokens, and see that the model ends its "
       "answers with one of its end tokens",
       "nothing was learned from 5 of 5 updates: all answers were cut"},
      {{{"reward/missing", 9}},
       "1 in update 1 most samples had no score (reward/missing); the log names the causes: look "
       "at the reward, and at data.label_key",
       "in 5 of 5 updates most samples had no score"},
      {{{"policy/grad_norm", 0}},
       "3 nothing is learned from updates 1 to 3: all gradients were 0 (policy/grad_norm); look at "
       "the rows' targets, at what the objective clips (policy/clipfrac) and at what "
       "algo.correction leaves out",
       "nothing was learned from 5 of 5 updates: all gradients were 0"},
  };
  for (const Case& one : cases) {
    SilenceWatch watch(16);
    EXPECT_EQ(told(watch, one.values, 5), std::vector<std::string>{one.said});
    const auto lines = watch.summary();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].find(one.at_the_end), 0u) << lines[0];
  }
}

// Some of the updates are all cut by chance: the cause is that of all of them.
TEST(SilenceWatch, EqualScoresAreTheCauseWhereOnlySomeUpdatesAreCut) {
  SilenceWatch watch(16);
  std::vector<std::string> lines;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const double cut = step % 2 == 0 ? 1 : 0.9;
    const auto row =
        update(step, {{"response/clip_ratio", cut}, {"policy/zero_advantage_share", 1}});
    for (const std::string& line : watch.on_update(row))
      lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("nothing is learned from updates 1 to 3: all groups had equal scores"),
            0u)
      << lines[0];
  ASSERT_EQ(watch.summary().size(), 1u);
  EXPECT_EQ(watch.summary()[0].find("nothing was learned from 5 of 5 updates: all groups"), 0u);
}

// Where scores differ, few answers that are all cut say nothing: 256 in a row do.
TEST(SilenceWatch, ManyAnswersThatAreAllCutAreSaidThoughTheirScoresDiffer) {
  for (const std::uint64_t samples : {16, 64, 1024}) {
    SilenceWatch watch(samples);
    const std::uint64_t needed = std::max<std::uint64_t>(3, 256 / samples);
    std::uint64_t said = 0;
    for (std::uint64_t step = 1; step <= 20 && said == 0; ++step)
      if (!watch.on_update(update(step, {{"response/clip_ratio", 1}})).empty()) said = step;
    EXPECT_EQ(said, needed) << samples;
    EXPECT_EQ(watch.summary().at(0).find("in " + std::to_string(needed) + " of "), 0u);
  }
}

TEST(SilenceWatch, AnUpdateWithoutAStepHasNoGradient) {
  SilenceWatch watch(0);
  observe::MetricRow row{1, 0, {{"policy/lr", 1e-4}, {"policy/skipped_steps", 1}}};
  EXPECT_TRUE(watch.on_update(row).empty());
  EXPECT_TRUE(watch.on_update({2, 0, row.values}).empty());
  ASSERT_EQ(watch.on_update({3, 0, row.values}).size(), 1u);
  EXPECT_NE(watch.summary().at(0).find("all steps were skipped"), std::string::npos);
}

TEST(SilenceWatch, AHealthyRunHasBadMomentsAndNoLine) {
  SilenceWatch watch(16);
  const std::vector<Values> moments = {
      {},
      {{"policy/zero_advantage_share", 1}},
      {{"policy/zero_advantage_share", 1}, {"policy/grad_norm", 0}},
      {{"response/clip_ratio", 1}},
      {{"reward/missing", 8}},
      {{"policy/grad_norm", 0}}};
  std::uint64_t step = 0;
  for (int round = 0; round < 3; ++round) {
    for (const Values& moment : moments)
      EXPECT_TRUE(watch.on_update(update(++step, moment)).empty()) << step;
    EXPECT_TRUE(watch.on_update(update(++step)).empty());
  }
  EXPECT_TRUE(watch.summary().empty());
}

TEST(SilenceWatch, AShortRunIsToldAtItsEnd) {
  SilenceWatch watch(16);
  EXPECT_TRUE(watch.on_update(update(1, {{"policy/zero_advantage_share", 1}})).empty());
  EXPECT_EQ(watch.summary().size(), 1u);
}

TEST(SilenceWatch, ATeacherTeachesWithoutScores) {
  SilenceWatch watch(16);
  auto row = update(1, {{"policy/zero_advantage_share", 1}});
  row.values.emplace_back("kl/teacher", 0.1);
  for (std::uint64_t step = 1; step < 6; ++step) {
    row.step = step;
    EXPECT_TRUE(watch.on_update(row).empty());
  }
}

}  // namespace troupe::session
