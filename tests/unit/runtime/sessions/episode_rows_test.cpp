#include "runtime/sessions/episode_rows.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/experience/episodes.hpp"
#include "runtime/experience/row.hpp"
#include "runtime/sessions/trace.hpp"

#include <gtest/gtest.h>

#include <map>

namespace troupe::sessions {
namespace {

using experience::Trajectory;
using experience::Turn;
using Ids = std::vector<std::int32_t>;

class EpisodeRows : public ::testing::Test {
 protected:
  // Log-probs and versions are those of no other token.
  std::size_t add(const Ids& prompt, const Ids& drawn, std::optional<double> reward = {}) {
    Call call;
    call.drawn.tokens = drawn;
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      call.drawn.behaviour.push_back(-static_cast<float>(next_));
      call.drawn.versions.add(next_++ / 2);
    }
    call.text = "text " + std::to_string(tree_.size());
    call.reward = reward;
    return tree_.add(prompt, tree_.place(prompt), std::move(call));
  }
  std::vector<Trajectory> samples(EpisodeRewards rewards = {}) const {
    return samples_of(tree_, 1, 0, rewards);
  }
  Ids row(const Trajectory& sample) const { return experience::row_of(sample).ids; }

  SessionTree tree_;
  std::uint64_t next_ = 1;
};

TEST_F(EpisodeRows, ADialogueIsOneSampleWithATurnForEachCall) {
  add({1, 2}, {3, 4});
  add({1, 2, 3, 4, 5, 6}, {7});
  auto made = samples({.score = 0.5});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].tokens, (Ids{3, 4, 7}));
  EXPECT_EQ(made[0].behaviour, (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ(made[0].versions, (experience::VersionRuns{0, 1, 1}));
  EXPECT_EQ(made[0].turns, (std::vector<Turn>{{0, {1, 2}}, {2, {5, 6}}}));
  EXPECT_EQ(made[0].text, "text 1");
  EXPECT_EQ(made[0].feedback, 0.5);
  EXPECT_FALSE(made[0].shares);
  auto prompt = take_prompt(made);
  ASSERT_TRUE(prompt);
  EXPECT_EQ(*prompt, (Ids{1, 2}));
  EXPECT_EQ(made[0].turns, (std::vector<Turn>{{0, {}}, {2, {5, 6}}}));
  EXPECT_EQ(row(made[0]), (Ids{3, 4, 5, 6, 7}));
  EXPECT_TRUE(experience::check_delivered(made[0]));
}

// Of two calls one was guided: its first token was the only one that the grammar allowed.
TEST_F(EpisodeRows, KeptMassLiesAtItsTokens) {
  add({1, 2}, {3, 4});
  Call guided;
  guided.drawn = {{7, 8}, {-2, -3}, experience::VersionRuns::all(1, 2), {{-2, -0.5f}}};
  const Ids prompt = {1, 2, 3, 4, 5};
  tree_.add(prompt, tree_.place(prompt), std::move(guided));
  add({1, 2, 3, 4, 5, 7, 8, 9}, {10});
  const auto made = samples();
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].facts.log_kept_mass, (std::vector<float>{0, 0, -2, -0.5f, 0}));
  EXPECT_TRUE(experience::check_delivered(made[0]));
  const auto trace = training_trace("t", {}, made);
  EXPECT_EQ(trace["turns"][1]["metadata"]["log_kept_mass"].dump(), "[-2.0,-0.5]");
  auto short_of = made[0];
  short_of.facts.log_kept_mass.pop_back();
  EXPECT_FALSE(experience::check_delivered(short_of));
}

TEST_F(EpisodeRows, AForkHasWhatItSharesAsContext) {
  add({1}, {2, 3});
  add({1, 2, 3, 4}, {5});  // goes on
  add({1, 2, 9}, {6, 7});  // leaves within the first answer
  auto made = samples();
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].tokens, (Ids{2, 3, 5}));
  EXPECT_EQ(made[1].tokens, (Ids{6, 7}));
  EXPECT_EQ(made[1].turns, (std::vector<Turn>{{0, {1, 2, 9}}}));
  ASSERT_TRUE(made[1].shares);
  EXPECT_EQ(*made[1].shares, (experience::Shares{0, 1}));
  EXPECT_FALSE(made[0].feedback) << "nobody gave a reward";
  EXPECT_EQ(*take_prompt(made), Ids{1});
  EXPECT_TRUE(experience::check_episodes(made));
}

TEST_F(EpisodeRows, RewardsOfTurnsAddUpAlongThePathOrStayAtTheirTurns) {
  add({1}, {2}, 1.0);
  add({1, 2, 3}, {4}, 0.25);
  add({1, 2, 5}, {6, 7}, 0.5);
  auto summed = samples();
  EXPECT_EQ(summed[0].feedback, 1.25);
  EXPECT_EQ(summed[1].feedback, 1.5);
  EXPECT_TRUE(summed[0].feedback_steps.empty());
  EXPECT_EQ(samples({.score = 3.0})[1].feedback, 3.0);
  auto kept = samples({.by_turn = true});
  EXPECT_EQ(kept[0].feedback, 0.0);
  EXPECT_EQ(kept[0].feedback_steps, (std::vector<experience::StepReward>{{0, 1.0}, {1, 0.25}}));
  EXPECT_EQ(kept[1].feedback_steps, (std::vector<experience::StepReward>{{1, 0.5}}));
}

TEST_F(EpisodeRows, PromptsThatBeginWithDifferentTokensHaveNothingInCommon) {
  add({1}, {2});
  auto made = samples();
  auto others = made;
  others[0].turns[0].context = {7};
  made.push_back(others[0]);
  EXPECT_FALSE(take_prompt(made));
}

// Random trees: every drawn token that counts is in one sample once, with its own log-prob; each
// row is the sequence of its leaf; and what is shared is what the paths have in common.
TEST_F(EpisodeRows, EveryDrawnTokenIsInOneSampleOnce) {
  core::Rng rng(7);
  const auto below = [&](std::uint64_t n) { return rng.next_u64() % n; };
  for (int round = 0; round < 200; ++round) {
    tree_ = {};
    next_ = 1;
    const std::size_t calls = 1 + below(12);
    for (std::size_t i = 0; i < calls; ++i) {
      Ids prompt = {1};
      if (i > 0 && below(8) > 0) {
        prompt = tree_.sequence(below(i));
        if (below(3) == 0) prompt.resize(1 + below(prompt.size()));
      }
      for (std::uint64_t k = below(3); k > 0; --k)
        prompt.push_back(static_cast<std::int32_t>(2 + below(2)));
      Ids drawn;
      for (std::uint64_t k = 1 + below(3); k > 0; --k)
        drawn.push_back(static_cast<std::int32_t>(2 + below(2)));
      const std::size_t call = add(prompt, drawn);
      Ids whole = prompt;
      whole.insert(whole.end(), drawn.begin(), drawn.end());
      ASSERT_EQ(tree_.sequence(call), whole);
      if (below(6) == 0) tree_.drop(call);
    }
    const auto leaves = tree_.leaves();
    if (leaves.empty()) continue;
    auto made = samples();
    ASSERT_EQ(made.size(), leaves.size());
    std::map<float, int> seen;
    for (std::size_t i = 0; i < made.size(); ++i) {
      ASSERT_EQ(row(made[i]), tree_.sequence(leaves[i]));
      for (const float logprob : made[i].behaviour)
        ++seen[logprob];
    }
    std::map<float, int> wanted;
    for (std::size_t i = 0; i < tree_.size(); ++i) {
      if (tree_.at(i).dropped) continue;
      for (const float logprob : tree_.at(i).drawn.behaviour)
        wanted[logprob] = 1;
    }
    // A dropped call that a fork shares a part of is drawn there.
    for (const auto& [logprob, count] : seen)
      ASSERT_EQ(count, 1) << round;
    for (const auto& [logprob, count] : wanted)
      ASSERT_TRUE(seen.contains(logprob)) << round << ": " << logprob;
    auto prompt = take_prompt(made);
    ASSERT_TRUE(prompt);
    const auto checked = experience::check_episodes(made);
    ASSERT_TRUE(checked) << checked.error().message;
    // The trace has every turn with all that came before it.
    const auto trace = training_trace("e", *prompt, made);
    std::size_t traced = 0;
    for (const auto& turn : trace["turns"]) {
      traced += turn["completion_token_ids"].size();
      ASSERT_EQ(turn["loss_mask"].size(),
                turn["prompt_token_ids"].size() + turn["completion_token_ids"].size());
    }
    ASSERT_EQ(traced, seen.size());
  }
}

}  // namespace
}  // namespace troupe::sessions
