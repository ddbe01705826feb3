// Dynamic filtering in the ticket book: which groups are rejected, what their slots get instead,
// and that accepted ones stay.
#include "actors/data/ticket_book.hpp"
#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using namespace test;

constexpr GroupFilter kOpen{MeanRange{0.0, 1.0}};

void deliver(TicketBook& book, const experience::Ticket& ticket, const test::Values& scores) {
  const auto count = static_cast<int>(scores.size());
  ASSERT_TRUE(*book.put_samples(ticket, samples(count), false));
  ASSERT_TRUE(book.put_scores({ticket, 0, scores, {}}));
}

}  // namespace

TEST(DynamicFilter, KeepsMeansStrictlyInside) {
  TicketBook book(2, false, kOpen);
  const auto tickets = book.issue({0, 4}, one_reward());
  deliver(book, tickets[0], {0.0, 0.0});
  deliver(book, tickets[1], {1.0, 1.0});
  deliver(book, tickets[2], {0.0, 1.0});
  deliver(book, tickets[3], {0.0, 1e-9});
  EXPECT_TRUE(book.find(tickets[0])->filtered);
  EXPECT_TRUE(book.find(tickets[1])->filtered);
  EXPECT_EQ(book.find(tickets[2])->state, GroupState::kReady);
  EXPECT_EQ(book.find(tickets[3])->state, GroupState::kReady);
  EXPECT_EQ(book.counts().failed[static_cast<std::size_t>(FailureKind::kFiltered)], 2u);
  EXPECT_NE(book.find(tickets[1])->cause.find("mean score of 1 is not between 0 and 1"),
            std::string::npos)
      << book.find(tickets[1])->cause;
}

// As DAPO and verl do: by the spread of the scores, whatever their mean.
TEST(DynamicFilter, WithoutARangeDropsWhatHasNoSpread) {
  TicketBook book(3, false, GroupFilter());
  const auto tickets = book.issue({0, 7}, one_reward());
  const std::vector<std::pair<test::Values, bool>> cases = {
      {{0.0, 0.0, 0.0}, true},       {{1.0, 1.0, 1.0}, true},  {{0.2, 0.2, 0.2}, true},
      {{0.3, 0.1 + 0.2, 0.3}, true},  // equal but for rounding
      {{-2.0, -2.0, -1.999}, false}, {{5.0, 7.0, 5.0}, false}, {{0.5, std::nullopt, 0.5}, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    deliver(book, tickets[i], cases[i].first);
    EXPECT_EQ(book.find(tickets[i])->filtered, cases[i].second) << i;
  }
  EXPECT_EQ(book.find(tickets[2])->cause, "all of its samples have the score 0.2");
}

// A single sample has nothing to differ from.
TEST(DynamicFilter, WithoutARangeKeepsGroupsOfOne) {
  TicketBook book(1, false, GroupFilter());
  const auto tickets = book.issue({0, 1}, one_reward());
  deliver(book, tickets[0], {1.0});
  EXPECT_TRUE(book.ready(0));
}

TEST(DynamicFilter, TheSlotGetsAFreshPromptAndTheOthersStay) {
  TicketBook book(2, false, kOpen);
  const auto tickets = book.issue({0, 2}, one_reward());
  deliver(book, tickets[0], {0.0, 1.0});
  deliver(book, tickets[1], {1.0, 1.0});
  EXPECT_TRUE(book.any_failed(0));
  const auto fresh = book.reissue(tickets[1], one_reward());
  ASSERT_TRUE(fresh);
  EXPECT_EQ(book.find(*fresh)->prompt, 2u);
  EXPECT_FALSE(book.find(*fresh)->filtered);
  EXPECT_FALSE(book.any_failed(0));
  deliver(book, *fresh, {1.0, 0.0});
  EXPECT_TRUE(book.ready(0));
  EXPECT_EQ(book.find(tickets[0])->state, GroupState::kReady);
}

TEST(DynamicFilter, DoesNotWaitForTheReference) {
  TicketBook book(2, true, kOpen);
  const auto tickets = book.issue({0, 1}, one_reward());
  deliver(book, tickets[0], {1.0, 1.0});
  EXPECT_EQ(book.find(tickets[0])->state, GroupState::kFailed);
  EXPECT_FALSE(book.put_logprobs(FrozenModel::kReference, tickets[0], {{-1, -1}, {-1, -1}}));
}

TEST(DynamicFilter, CountsTheSamplesThatHaveAScore) {
  TicketBook book(3, false, kOpen);
  const auto tickets = book.issue({0, 1}, one_reward());
  deliver(book, tickets[0], {1.0, std::nullopt, 1.0});
  EXPECT_TRUE(book.find(tickets[0])->filtered) << "two ones are all that is known";
}

TEST(DynamicFilter, WithoutAFilterEqualScoresAreKept) {
  TicketBook book(2, false);
  const auto tickets = book.issue({0, 1}, one_reward());
  deliver(book, tickets[0], {1.0, 1.0});
  EXPECT_TRUE(book.ready(0));
}

}  // namespace troupe::actors::data
