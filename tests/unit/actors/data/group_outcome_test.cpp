// What becomes of a group: which deliveries are duplicates, and when it waits, fails or is ready.
#include "actors/data/group_filter.hpp"
#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;

// Two samples with these scores.
BookGroup scored_group(const Values& scores) {
  BookGroup group(SavedTicket{{3, 1, 2}, 0, 2, {7, 8}});
  group.rewards = one_reward();
  group.scored = {true};
  group.state = GroupState::kGenerated;
  group.samples = samples(2);
  for (std::size_t i = 0; i < 2; ++i) {
    group.samples[i].score = scores[i];
    if (!scores[i]) group.unscored.push_back({i, "no answer"});
  }
  return group;
}

}  // namespace

TEST(GroupOutcome, AGroupWaitsForRewardsThenForFrozenModels) {
  BookGroup group = scored_group({0.0, 1.0});
  EXPECT_FALSE(outcome_of(group, {}, std::nullopt).waits);
  EXPECT_FALSE(outcome_of(group, {}, std::nullopt).failure);
  EXPECT_TRUE(outcome_of(group, {true, false}, std::nullopt).waits);
  group.referenced = true;
  EXPECT_FALSE(outcome_of(group, {true, false}, std::nullopt).waits);
  EXPECT_TRUE(outcome_of(group, {true, true}, std::nullopt).waits);
  group.scored = {false};
  EXPECT_TRUE(outcome_of(group, {}, std::nullopt).waits);
}

TEST(GroupOutcome, AFilteredGroupWaitsForNoFrozenModelAndAnUnscoredOneDoes) {
  const GroupOutcome filtered = outcome_of(scored_group({1.0, 1.0}), {true, false}, GroupFilter());
  EXPECT_EQ(filtered.failure, FailureKind::kFiltered);
  EXPECT_EQ(filtered.cause, "all of its samples have the score 1");
  EXPECT_TRUE(outcome_of(scored_group({1.0, std::nullopt}), {true, false}, GroupFilter()).waits);
  const GroupOutcome unscored = outcome_of(scored_group({1.0, std::nullopt}), {}, GroupFilter());
  EXPECT_EQ(unscored.failure, FailureKind::kUnscored);
  EXPECT_EQ(unscored.cause, "too few of its samples could be scored: no answer");
}

TEST(GroupOutcome, ADeliveryIsTakenOnceAndForThePresentTicket) {
  BookGroup group = scored_group({0.0, 1.0});  // attempt 2, with its samples
  EXPECT_EQ(duplicate_kind(nullptr, group.ticket), DuplicateKind::kClosed);
  EXPECT_EQ(duplicate_kind(&group, group.ticket), DuplicateKind::kRepeated);
  EXPECT_EQ(duplicate_kind(&group, {3, 1, 1}), DuplicateKind::kReplaced);
  EXPECT_EQ(duplicate_kind(&group, {3, 1, 3}), DuplicateKind::kClosed);
  group.state = GroupState::kFailed;
  group.samples.clear();
  EXPECT_EQ(duplicate_kind(&group, group.ticket), DuplicateKind::kFailed);
  group.state = GroupState::kIssued;
  EXPECT_EQ(duplicate_kind(&group, group.ticket), std::nullopt);
  group.restored = true;  // not issued again in this life
  EXPECT_EQ(duplicate_kind(&group, group.ticket), DuplicateKind::kFailed);
}

TEST(GroupOutcome, SamplesAreCountedAndNoTokenIsOlderThanItsTicket) {
  BookGroup group = scored_group({0.0, 1.0});
  group.version_min = 4;
  EXPECT_TRUE(check_count(group, samples(2), false));
  EXPECT_EQ(check_count(group, samples(1), false).error().code, core::ErrorCode::kData);
  EXPECT_FALSE(check_count(group, samples(1), true));  // two are enough, one is not
  EXPECT_TRUE(check_age(group, samples(2, {4, 5})));
  EXPECT_FALSE(check_age(group, samples(2, {4, 3})));
}

TEST(GroupOutcome, EachTokenHasALogProb) {
  const auto two = samples(2, {0, 0});  // of two tokens each
  EXPECT_TRUE(fit_tokens({{-1, -2}, {-3, -4}}, two));
  EXPECT_FALSE(fit_tokens({{-1, -2}, {-3}}, two));
  EXPECT_FALSE(fit_tokens({{-1, -2}}, two));
}

}  // namespace troupe::actors::data
