#include "runtime/sessions/session_tree.hpp"

#include <gtest/gtest.h>

namespace troupe::sessions {
namespace {

using Ids = std::vector<std::int32_t>;

Call call_with(Ids drawn, Digest after = "") {
  Call out;
  out.drawn.behaviour.assign(drawn.size(), -1.0f);
  out.drawn.versions = experience::VersionRuns::all(1, drawn.size());
  out.drawn.tokens = std::move(drawn);
  out.after = std::move(after);
  return out;
}

class Trees : public ::testing::Test {
 protected:
  std::size_t add(const Ids& prompt, Ids drawn) {
    return tree_.add(prompt, tree_.place(prompt), call_with(std::move(drawn)));
  }
  SessionTree tree_;
};

TEST_F(Trees, ACallThatGoesOnHasItsParentsWholeSequence) {
  const std::size_t first = add({1, 2}, {3, 4});
  const std::size_t second = add({1, 2, 3, 4, 5}, {6});
  EXPECT_EQ(tree_.at(second).parent, first);
  EXPECT_EQ(tree_.at(second).shared, 4u);
  EXPECT_EQ(tree_.at(second).context, Ids{5});
  EXPECT_EQ(tree_.sequence(second), (Ids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tree_.leaves(), std::vector<std::size_t>{second});
  EXPECT_EQ(tree_.tokens(), 6u);
  EXPECT_EQ(tree_.drawn_within(second, 3), 1u);
  EXPECT_EQ(tree_.drawn_within(second, 5), 2u);
  EXPECT_EQ(tree_.drawn_within(second, 6), 3u);
}

TEST_F(Trees, AForkSharesWhatIsEqualWithinDrawnTokens) {
  const std::size_t first = add({1, 2}, {3, 4, 5});
  const std::size_t fork = add({1, 2, 3, 4, 9}, {7});
  EXPECT_EQ(tree_.at(fork).parent, first);
  EXPECT_EQ(tree_.at(fork).shared, 4u);
  EXPECT_EQ(tree_.at(fork).context, Ids{9});
  EXPECT_EQ(tree_.sequence(fork), (Ids{1, 2, 3, 4, 9, 7}));
  EXPECT_EQ(tree_.leaves(), (std::vector<std::size_t>{first, fork}));
  EXPECT_EQ(tree_.drawn_within(fork, 6), 3u);
  // One that goes on from the fork has the tokens of its parent that the fork shares, and no more.
  const std::size_t below = add({1, 2, 3, 4, 9, 7, 8}, {2});
  EXPECT_EQ(tree_.at(below).parent, fork);
  EXPECT_EQ(tree_.sequence(below), (Ids{1, 2, 3, 4, 9, 7, 8, 2}));
  EXPECT_EQ(tree_.leaves(), (std::vector<std::size_t>{first, below}));
}

TEST_F(Trees, APromptThatSharesOnlyContextBeginsAnew) {
  add({1, 2, 3}, {4});
  const std::size_t other = add({1, 2, 9}, {4});
  EXPECT_FALSE(tree_.at(other).parent);
  EXPECT_EQ(tree_.at(other).context, (Ids{1, 2, 9}));
}

TEST_F(Trees, SamplesOfOnePromptAreSiblings) {
  const std::size_t first = add({1}, {2});
  const std::size_t a = add({1, 2, 3}, {4, 5});
  const std::size_t b = add({1, 2, 3}, {4, 6});
  EXPECT_EQ(tree_.at(b).parent, first) << "what a drew is no part of b's prompt";
  const std::size_t after_b = add({1, 2, 3, 4, 6, 7}, {8});
  EXPECT_EQ(tree_.at(after_b).parent, b);
  EXPECT_EQ(tree_.leaves(), (std::vector<std::size_t>{a, after_b}));
}

TEST_F(Trees, OfEqualSequencesTheLastIsGoneOnFrom) {
  add({1}, {2});
  const std::size_t second = add({1}, {2});
  const std::size_t third = add({1, 2, 3}, {4});
  EXPECT_EQ(tree_.at(third).parent, second);
}

TEST_F(Trees, ADroppedCallIsNoLeafAndHasNoChildren) {
  const std::size_t first = add({1}, {2});
  const std::size_t lost = add({1, 2, 3}, {4});
  EXPECT_TRUE(tree_.drop(lost));
  EXPECT_FALSE(tree_.drop(lost));
  EXPECT_EQ(tree_.leaves(), std::vector<std::size_t>{first});
  const std::size_t next = add({1, 2, 3, 4, 5}, {6});
  EXPECT_EQ(tree_.at(next).parent, first);
  EXPECT_FALSE(tree_.drop(first)) << "its client has gone on from it";
}

TEST_F(Trees, TheLongestDialogueIsFound) {
  const Call one = call_with({2}, "a"), two = call_with({4}, "b");
  const std::size_t first = tree_.add(Ids{1}, {}, one);
  const std::size_t second = tree_.add(Ids{1, 2, 3}, {first, 2}, two);
  const std::vector<Digest> dialogue = {"", "x", "a", "y", "b", "z"};
  const auto found = tree_.find(dialogue);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->call, second);
  EXPECT_EQ(found->messages, 4u);
  tree_.drop(second);
  EXPECT_EQ(tree_.find(dialogue)->call, first);
  EXPECT_FALSE(tree_.find(std::vector<Digest>{"", "x"}));
}

}  // namespace
}  // namespace troupe::sessions
