// Rows of samples with turns, and the paths of episodes that fork.
#include "runtime/experience/episodes.hpp"

#include "runtime/experience/row.hpp"

#include <gtest/gtest.h>

namespace troupe::experience {
namespace {

using Ids = std::vector<std::int32_t>;
using Places = std::vector<std::uint32_t>;

Trajectory sample_of(Ids tokens, std::vector<Turn> turns = {}, std::uint32_t episode = 0) {
  Trajectory sample;
  sample.behaviour.assign(tokens.size(), -1.0f);
  sample.versions = VersionRuns::all(0, tokens.size());
  sample.tokens = std::move(tokens);
  sample.turns = std::move(turns);
  sample.episode = episode;
  return sample;
}

// Episode 1: 10 11 | 50 | 12 13, and a fork behind 10 11 that draws 20. Episode 2: one sample. Then
// a sample without a number.
std::vector<Trajectory> forked() {
  std::vector<Trajectory> samples = {sample_of({10, 11, 12, 13}, {{0, {}}, {2, {50}}}, 1),
                                     sample_of({20, 21}, {{0, {10, 11, 51}}, {1, {52, 53}}}, 1),
                                     sample_of({30}, {{0, {54}}}, 2), sample_of({40})};
  samples[1].shares = Shares{0, 2};
  return samples;
}

Ids ids_of(const std::vector<Trajectory>& samples, const Path& path) {
  Ids ids;
  for (const auto& [sample, token] : path.tokens)
    ids.push_back(samples[sample].tokens[token]);
  return ids;
}

std::string refusal_of(const std::vector<Trajectory>& samples) {
  const auto found = check_episodes(samples);
  return found ? "" : found.error().message;
}

TEST(Row, JoinsContextsAndDrawnTokens) {
  const auto samples = forked();
  Row row = row_of(samples[0]);
  EXPECT_EQ(row.ids, (Ids{10, 11, 50, 12, 13}));
  EXPECT_EQ(row.drawn, (Places{0, 1, 3, 4}));
  row = row_of(samples[1]);
  EXPECT_EQ(row.ids, (Ids{10, 11, 51, 20, 52, 53, 21}));
  EXPECT_EQ(row.drawn, (Places{3, 6}));
  EXPECT_EQ(row_length(samples[1]), 7u);
  EXPECT_EQ(context_length(samples[1]), 5u);
  EXPECT_TRUE(has_context(samples[1]));
}

TEST(Row, WithoutTurnsIsTheTokens) {
  const Trajectory sample = sample_of({4, 5, 6});
  EXPECT_EQ(row_of(sample).ids, sample.tokens);
  EXPECT_EQ(row_of(sample).drawn, (Places{0, 1, 2}));
  EXPECT_FALSE(has_context(sample));
  EXPECT_FALSE(has_context(sample_of({4}, {{0, {}}})));
  EXPECT_EQ(row_length(sample), 3u);
}

TEST(Episodes, SamplesOfANumberAreOneAndOthersAreTheirOwn) {
  const auto samples = forked();
  const auto episodes = episodes_of(samples);
  ASSERT_EQ(episodes.size(), 3u);
  EXPECT_EQ(episodes[0].leaves(), 2u);
  EXPECT_EQ(tokens_of(samples, episodes[0]), 6u);
  EXPECT_EQ(episodes_of({sample_of({1}), sample_of({2})}).size(), 2u);
}

TEST(Episodes, APathIsWhatWasDrawnOnTheWay) {
  const auto samples = forked();
  const auto paths = paths_of(samples);
  EXPECT_EQ(ids_of(samples, paths[0]), (Ids{10, 11, 12, 13}));
  EXPECT_EQ(paths[0].turns, (Places{0, 2}));
  EXPECT_EQ(ids_of(samples, paths[1]), (Ids{10, 11, 20, 21}));
  EXPECT_EQ(paths[1].turns, (Places{0, 2, 3}));
  EXPECT_EQ(ids_of(samples, paths[3]), (Ids{40}));
  EXPECT_EQ(paths[3].turns, (Places{0}));
}

// The fork of a fork shares tokens of two samples, and ends a turn of the first in its middle.
TEST(Episodes, AForkOfAForkSharesThroughIt) {
  auto samples = forked();
  samples.insert(samples.begin() + 2, sample_of({60}, {{0, {10, 11, 51, 20, 70}}}, 1));
  samples[2].shares = Shares{1, 3};
  EXPECT_EQ(refusal_of(samples), "");
  const auto paths = paths_of(samples);
  EXPECT_EQ(ids_of(samples, paths[2]), (Ids{10, 11, 20, 60}));
  EXPECT_EQ(paths[2].turns, (Places{0, 2, 3}));
  samples[2].shares = Shares{0, 1};
  samples[2].turns[0].context = {10, 99};
  EXPECT_EQ(refusal_of(samples), "");
  EXPECT_EQ(ids_of(samples, paths_of(samples)[2]), (Ids{10, 60}));
}

TEST(Episodes, AnEpisodeIsWorthTheMeanOfItsPaths) {
  auto samples = forked();
  samples[0].score = 3;
  samples[1].score = 1;
  samples[0].steps = {{1, 0.5}, {3, 0.25}};  // the second is not on the fork's path
  samples[1].steps = {{0, 2}};
  const auto paths = paths_of(samples);
  EXPECT_EQ(path_steps(samples, paths[1], &Trajectory::steps),
            (std::vector<StepReward>{{1, 0.5}, {2, 2}}));
  EXPECT_EQ(path_total(samples, paths[1], 1), 3.5);
  EXPECT_EQ(episode_total(samples, episodes_of(samples)[0]), (3.75 + 3.5) / 2);
}

TEST(Episodes, WhatDoesNotFitIsRefusedByName) {
  EXPECT_EQ(refusal_of(forked()), "");
  auto samples = forked();
  samples[3].episode = 1;
  EXPECT_EQ(refusal_of(samples),
            "sample 3 is of episode 1, whose other samples do not lie next to it");
  samples = forked();
  samples[2].shares = Shares{0, 1};
  EXPECT_EQ(refusal_of(samples),
            "sample 2 shares tokens of sample 0, which is not an earlier one of its episode");
  samples = forked();
  samples[1].shares = Shares{1, 1};
  EXPECT_NE(refusal_of(samples).find("not an earlier one"), std::string::npos);
  samples[1].shares = Shares{0, 5};
  EXPECT_EQ(refusal_of(samples), "sample 1 shares 5 tokens of sample 0, whose path has 4");
  samples[1].shares = Shares{0, 3};  // its context goes on otherwise behind 10 11
  EXPECT_EQ(
      refusal_of(samples),
      "sample 1 shares 3 tokens of sample 0, but its first context is not the 4 ids up to the "
      "last of them");
  samples[1].shares = Shares{0, 2};
  samples[1].turns[0].context[1] = 99;  // a token that was made again, and is another
  EXPECT_NE(refusal_of(samples).find("is not the 2 ids"), std::string::npos);
}

TEST(Episodes, DroppingOnesKeepsWhatOthersShare) {
  auto samples = forked();
  samples.insert(samples.begin(), sample_of({7}));
  samples[2].shares = Shares{1, 2};
  std::vector<bool> marks = {true, false, false, false, false};
  mark_episodes(samples, marks);
  EXPECT_EQ(marks, (std::vector<bool>{true, false, false, false, false}));
  drop_samples(samples, marks);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[1].shares, (Shares{0, 2}));
  marks = {false, true, false, false};
  mark_episodes(samples, marks);
  EXPECT_EQ(marks, (std::vector<bool>{true, true, false, false})) << "an episode goes whole";
}

TEST(Trajectory, TurnsBeginInOrderAtTokens) {
  Trajectory sample = sample_of({4, 5, 6}, {{0, {1}}, {2, {2}}});
  EXPECT_TRUE(check_delivered(sample));
  sample.turns[1].begin = 3;
  EXPECT_EQ(
      check_delivered(sample).error().message,
      "a sample of 3 tokens whose turn 2 begins with token 3; turns begin in order, the first "
      "with token 0, each with a token of its own");
  sample.turns[1].begin = 0;
  EXPECT_FALSE(check_delivered(sample));
  sample.turns = {{1, {}}};
  EXPECT_FALSE(check_delivered(sample));
}

TEST(Trajectory, FeedbackIsANumberAtATokenOrNone) {
  Trajectory sample = sample_of({4, 5});
  sample.feedback = 0.5;
  sample.feedback_steps = {{1, -2}};
  EXPECT_TRUE(check_delivered(sample));
  sample.feedback_steps = {{2, 1}};
  EXPECT_EQ(check_delivered(sample).error().message,
            "a sample with feedback at none of its tokens, or not a finite number");
  sample.feedback_steps.clear();
  sample.feedback = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(check_delivered(sample).error().message,
            "a sample whose feedback is not a finite number");
}

}  // namespace
}  // namespace troupe::experience
