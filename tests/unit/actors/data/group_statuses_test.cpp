// Ages, means and states of groups, worked out by hand.
#include "actors/data/group_statuses.hpp"

#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::data {
namespace {

using namespace test;
using Ages = std::vector<std::uint64_t>;
using Means = std::vector<std::pair<std::string, double>>;

// One ready group of samples with these versions.
struct Aged {
  explicit Aged(std::vector<experience::VersionRuns> versions) {
    const auto ticket =
        book.issue({7, 1, static_cast<std::int32_t>(versions.size())}, one_reward())[0];
    std::vector<experience::Trajectory> delivered;
    for (auto& one : versions)
      delivered.push_back(samples(1, one)[0]);
    const auto count = static_cast<int>(versions.size());
    EXPECT_TRUE(book.put_samples(ticket, std::move(delivered), false));
    EXPECT_TRUE(book.put_scores({ticket, 0, all(count, 1), {}}));
  }
  GroupStatuses statuses(const std::vector<core::Version>& starts) const {
    return statuses_of(book.groups_of(7), starts);
  }
  TicketBook book{2, false};
};

}  // namespace

TEST(GroupStatuses, AgeIsTheNumberOfLaterStarts) {
  // Updates started from versions 2, 4, 6; the own update from 6. Two optimiser steps an update.
  const Aged group({{6, 6}, {6, 4}, {4, 2, 2}, {7, 6}});
  const auto statuses = group.statuses({2, 4, 6});
  EXPECT_EQ(statuses.staleness, (Ages{5, 2, 2}));
  EXPECT_EQ(statuses.crossed, 3u);
}

TEST(GroupStatuses, WhatIsOlderThanAllStartsCountsAsOneMore) {
  EXPECT_EQ(Aged({{0}, {4}}).statuses({2, 4}).staleness, (Ages{1, 0, 1}));
}

TEST(GroupStatuses, VersionsBetweenTwoStartsBelongToTheEarlierUpdate) {
  EXPECT_EQ(Aged({{3}, {5}}).statuses({2, 4, 6}).staleness, (Ages{0, 1, 1}));
}

TEST(GroupStatuses, OneStartMakesTheSynchronousCase) {
  EXPECT_EQ(Aged({{6, 6}, {6, 6}}).statuses({6}).staleness, (Ages{4}));
}

// Their sum is no double.
TEST(GroupStatuses, MeansOfHugeScoresAreFinite) {
  TicketBook book(2, false);
  const auto ticket = book.issue({7, 1, 2}, one_reward())[0];
  EXPECT_TRUE(book.put_samples(ticket, samples(2), false));
  EXPECT_TRUE(book.put_scores({ticket, 0, all(2, 1.5e308), {}}));
  const auto statuses = statuses_of(book.groups_of(7), {});
  ASSERT_EQ(statuses.groups.size(), 1u);
  EXPECT_EQ(statuses.groups[0].mean_score, 1.5e308);
  ASSERT_EQ(statuses.rewards.size(), 1u);
  EXPECT_EQ(statuses.rewards[0].second, 1.5e308);
}

TEST(GroupStatuses, WithoutStartsThereAreNoAges) {
  const auto statuses = Aged({{0, 1}, {2, 2}}).statuses({});
  EXPECT_TRUE(statuses.staleness.empty());
  EXPECT_EQ(statuses.crossed, 1u);
}

TEST(GroupStatuses, StatesCausesAndMeans) {
  const auto old = make_set(0, {{"right", "r", 1}, {"short", "s", 0.5}});
  const auto fresh = make_set(1, {{"right", "r", 1}});
  TicketBook book(2, false);
  auto t = book.issue({0, 5}, old);
  book.fail(t[1], FailureKind::kReward, "no");
  t[1] = *book.reissue(t[1], fresh);
  for (const std::size_t i : {0u, 1u, 3u})
    book.put_samples(t[i], samples(2, {1}), false).value();
  book.put_scores({t[0], 0, {1.0, 0.0}, {}, {R"({"len": 4, "tag": "x"})", R"({"len": 1})"}});
  book.put_scores({t[0], 1, {2.0, 4.0}, {}, {R"({"len": 10})", ""}});
  book.put_scores({t[1], 0, {1.0, 1.0}, {}, {R"({"len": 1})", ""}});
  book.put_scores({t[3], 0, {9.0, 9.0}, {}, {R"({"len": 99})"}});  // waits for `short`
  book.fail(t[4], FailureKind::kRewardGone, "reward short: away");
  const auto statuses = statuses_of(book.groups_of(0), {1});
  std::vector<GroupState> states;
  for (const auto& group : statuses.groups)
    states.push_back(group.state);
  using enum GroupState;
  EXPECT_EQ(states, (std::vector<GroupState>{kReady, kReady, kIssued, kGenerated, kFailed}));
  EXPECT_EQ(statuses.groups[0].mean_score, (1 + 1.0 + 0 + 2.0) / 2);
  EXPECT_TRUE(statuses.groups[0].ready());
  EXPECT_EQ(statuses.groups[1].mean_score, 1.0);
  EXPECT_EQ(statuses.groups[3].mean_score, 0.0);
  EXPECT_EQ(statuses.groups[3].tokens, 2u);
  EXPECT_EQ(statuses.groups[4].cause, "reward short: away");
  EXPECT_EQ(statuses.rewards, (Means{{"right", 0.75}, {"short", 3.0}}));
  // len: 4, 1 and 1 of `right` over the samples that have one; `short` reported the name second.
  EXPECT_EQ(statuses.extras, (Means{{"len", 2.0}, {"short.len", 10.0}}));
  EXPECT_EQ(statuses.staleness, (Ages{4}));
}

TEST(GroupStatuses, ScoreAndLengthCorrelate) {
  TicketBook book(3, false);
  const auto tickets = book.issue({0, 2}, one_reward());
  std::vector<experience::Trajectory> delivered;
  for (const auto& versions : {experience::VersionRuns{1}, experience::VersionRuns{1, 1},
                               experience::VersionRuns{1, 1, 1}})
    delivered.push_back(samples(1, versions)[0]);
  book.put_samples(tickets[0], delivered, false).value();
  book.put_scores({tickets[0], 0, {0.0, 1.0, 5.0}, {}});
  book.put_samples(tickets[1], delivered, false).value();  // waits for its scores
  // Deviations (-1, 0, 1) and (-2, -1, 3): 5 over the root of 2 * 14.
  const Means lengths = statuses_of(book.groups_of(0), {}).lengths;
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_EQ(lengths[0].first, "length_pearson");
  EXPECT_DOUBLE_EQ(lengths[0].second, 5 / std::sqrt(28.0));
  EXPECT_EQ(lengths[1].first, "length_spearman");
  EXPECT_DOUBLE_EQ(lengths[1].second, 1.0);
  EXPECT_TRUE(Aged({{1}, {1}}).statuses({}).lengths.empty()) << "all scores are equal";
}

}  // namespace troupe::actors::data
