// Which set holds for which update, on changes worked out by hand.
#include "actors/data/reward_sets.hpp"

#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::actors::data {
namespace {

using test::change;

const RewardMember kA{"a", "reward/a", 1}, kB{"b", "reward/b", 0.5}, kC{"c", "reward/c", 2};

// The numbers of the sets for updates 0, 1, 2, ...
std::vector<std::uint64_t> numbers(const RewardSets& sets, std::uint64_t updates) {
  std::vector<std::uint64_t> result;
  for (std::uint64_t update = 0; update < updates; ++update) {
    result.push_back(sets.for_update(update)->number);
  }
  return result;
}
using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST(RewardSets, AChangeHoldsFromItsUpdateOn) {
  RewardSets sets({kA});
  EXPECT_TRUE(*sets.add(change(1, 3, {kA, kB})));
  EXPECT_TRUE(*sets.add(change(2, 5, {kB})));
  EXPECT_EQ(numbers(sets, 7), (Numbers{0, 0, 0, 1, 1, 2, 2}));
}

// Set 1 needs b, which set 2 did without: it is gone. c is in the newest, and awaited.
TEST(RewardSets, AnEarlierLifeIsGoneOnWith) {
  RewardSets before({kA});
  before.add(change(1, 3, {kA, kB})).value();
  before.add(change(2, 5, {kA, kC})).value();
  EXPECT_EQ(before.added().size(), 2u);
  RewardSets sets({kA});
  ASSERT_TRUE(sets.restore(before.added()));
  EXPECT_EQ(numbers(sets, 7), (Numbers{0, 0, 0, 2, 2, 2, 2}));
  EXPECT_EQ(sets.first()->number, 0u);
  EXPECT_FALSE(sets.add(change(2, 9, {kA})));
  EXPECT_TRUE(sets.add(change(3, 9, {kA})));
  before.forget_before(6);
  EXPECT_EQ(before.added().size(), 1u);
}

TEST(RewardSets, TheNewestOfThoseThatHoldWins) {
  RewardSets sets({kA});
  sets.add(change(1, 4, {kB})).value();
  sets.add(change(2, 2, {kC})).value();
  EXPECT_EQ(numbers(sets, 6), (Numbers{0, 0, 2, 2, 2, 2}));
}

TEST(RewardSets, AMessageThatComesTwiceChangesNothing) {
  RewardSets sets({kA});
  EXPECT_TRUE(*sets.add(change(1, 3, {kB})));
  EXPECT_FALSE(*sets.add(change(1, 3, {kB})));
  EXPECT_EQ(sets.size(), 2u);
  EXPECT_FALSE(sets.add(change(1, 4, {kB})));  // the number stands for something else
  EXPECT_FALSE(sets.add(change(0, 3, {kB})));
}

TEST(RewardSets, WrongSetsAreRefused) {
  RewardSets sets({kA});
  EXPECT_FALSE(sets.add(change(1, 0, {})));
  EXPECT_FALSE(sets.add(change(1, 0, {kA, kA})));
  EXPECT_FALSE(sets.add(change(1, 0, {kA}, {"a"})));
  const RewardMember odd{"x", "reward/x", std::numeric_limits<double>::quiet_NaN()};
  EXPECT_FALSE(sets.add(change(1, 0, {odd})));
  EXPECT_EQ(sets.size(), 1u);
}

TEST(RewardSets, TheNextSetTakesThePlaceOfOneWithALostReward) {
  RewardSets sets({kA});
  sets.add(change(1, 2, {kA, kB})).value();
  sets.add(change(2, 4, {kC}, {"b"})).value();
  EXPECT_EQ(numbers(sets, 6), (Numbers{0, 0, 2, 2, 2, 2}));
  sets.add(change(3, 9, {kA})).value();
  sets.add(change(4, 9, {kB}, {"c", "a"})).value();
  EXPECT_EQ(numbers(sets, 4), (Numbers{4, 4, 4, 4}));  // nothing else is left
  EXPECT_EQ(sets.first()->number, 0u);                 // evaluations keep it
}

TEST(RewardSets, ARewardMayComeBackUnderItsName) {
  RewardSets sets({kA});
  sets.add(change(1, 1, {kC}, {"a"})).value();
  sets.add(change(2, 2, {kC, kA})).value();
  EXPECT_EQ(numbers(sets, 4), (Numbers{1, 1, 2, 2}));
}

TEST(RewardSets, WhatNoUpdateCanGetIsForgotten) {
  RewardSets sets({kA});
  sets.add(change(1, 3, {kB})).value();
  sets.add(change(2, 5, {kC})).value();
  sets.forget_before(2);
  EXPECT_EQ(sets.size(), 3u);
  sets.forget_before(3);
  EXPECT_EQ(sets.size(), 2u);
  EXPECT_EQ(numbers(sets, 6)[4], 1u);
  sets.forget_before(100);
  EXPECT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets.newest()->number, 2u);
}

// Twenty prompts of eval.dataset, then ten with rewards of their own, then five without.
TEST(RewardSets, HeldOutPromptsMayHaveTheirOwn) {
  RewardSets sets({kA}, "", {{20, {}, ""}, {10, {kB, kC}, "min(b, c)"}, {5, {}, ""}});
  sets.add(change(1, 0, {kC})).value();
  EXPECT_EQ(sets.held_out(0)->number, 0u) << "whatever was attached";
  EXPECT_EQ(sets.held_out(19)->number, 0u);
  const RewardSetPtr own = sets.held_out(20);
  EXPECT_EQ(own, sets.held_out(29));
  EXPECT_EQ(own->members, (std::vector<RewardMember>{kB, kC}));
  EXPECT_EQ(own->formula, "min(b, c)");
  EXPECT_TRUE(RewardSets::is_held_out(*own));
  EXPECT_FALSE(RewardSets::is_held_out(*sets.newest()));
  EXPECT_EQ(sets.numbered(own->number), own) << "the log names it by its number";
  EXPECT_EQ(sets.held_out(30)->number, 0u);
  EXPECT_EQ(sets.added().size(), 1u) << "a checkpoint has no sets of held-out prompts";
  EXPECT_EQ(RewardSets({kA}).held_out(7)->number, 0u);
}

}  // namespace troupe::actors::data
