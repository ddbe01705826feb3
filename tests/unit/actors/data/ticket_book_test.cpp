// The ticket book: order of prompts, deliveries that come twice or late, missing scores, replaced
// slots, sums of rewards.
#include "actors/data/ticket_book.hpp"

#include "runtime/core/rng.hpp"
#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace troupe::actors::data {
namespace {

using namespace test;

std::uint64_t duplicates(const TicketBook& book, DuplicateKind kind) {
  return book.counts().duplicates[static_cast<std::size_t>(kind)];
}
std::uint64_t failed(const TicketBook& book, FailureKind kind) {
  return book.counts().failed[static_cast<std::size_t>(kind)];
}

// A book of groups of `samples`, one reward, with the tickets of update 0.
struct Case {
  explicit Case(std::int32_t samples, std::uint32_t groups = 1, bool reference = false)
      : book(samples, reference), tickets(book.issue({0, groups}, set)) {}
  RewardSetPtr set = one_reward();
  TicketBook book;
  std::vector<experience::Ticket> tickets;
  const experience::Ticket& ticket = tickets[0];
};

}  // namespace

TEST(TicketBook, PromptsThatArePassedOverAreGivenToNoTicket) {
  TicketBook book(2, false);
  book.begin_prompts_at(5);
  const auto tickets = book.issue({0, 2}, one_reward());
  EXPECT_EQ(book.find(tickets[0])->prompt, 5u);
  EXPECT_EQ(book.find(tickets[1])->prompt, 6u);
  book.begin_prompts_at(3);
  EXPECT_EQ(book.find(book.issue({1, 1}, one_reward())[0])->prompt, 7u) << "never back";
}

TEST(TicketBook, PromptsFollowSlotsAcrossUpdates) {
  TicketBook book(2, false);
  const auto first = book.issue({0, 3}, one_reward());
  const auto second = book.issue({1, 3}, one_reward());
  EXPECT_EQ(book.find(first[2])->prompt, 2u);
  EXPECT_EQ(book.find(second[0])->prompt, 3u);
  EXPECT_EQ(book.prompts().next(), 6u);
  EXPECT_EQ(book.next_update(), 2u);
}

TEST(TicketBook, AskingTwiceGivesTheSameTicketsWithTheirSet) {
  TicketBook book(2, false);
  const auto first = book.issue({4, 3}, one_reward());
  EXPECT_EQ(book.issue({4, 3}, make_set(1, {{"other", "reward/1", 1}})), first);
  EXPECT_EQ(book.find(first[0])->rewards->number, 0u);
  EXPECT_EQ(book.prompts().next(), 3u);
}

TEST(TicketBook, IsReadyWhenScoresAndReferenceAreIn) {
  Case c(2, 1, true);
  EXPECT_TRUE(*c.book.put_samples(c.ticket, samples(2), false));
  EXPECT_TRUE(c.book.put_scores({c.ticket, 0, all(2, 1), {}}));
  EXPECT_FALSE(c.book.ready(0));
  EXPECT_TRUE(c.book.put_logprobs(FrozenModel::kReference, c.ticket, {{-1, -1}, {-1, -1}}));
  EXPECT_TRUE(c.book.ready(0));
}

TEST(TicketBook, ATeacherIsWaitedForBesideTheReference) {
  TicketBook book(2, {true, true});
  const auto ticket = book.issue({0, 1}, one_reward())[0];
  EXPECT_TRUE(*book.put_samples(ticket, samples(2), false));
  EXPECT_TRUE(book.put_scores({ticket, 0, all(2, 1), {}}));
  EXPECT_TRUE(book.put_logprobs(FrozenModel::kTeacher, ticket, {{-1, -2}, {-3, -4}}));
  EXPECT_FALSE(book.put_logprobs(FrozenModel::kTeacher, ticket, {{-5, -5}, {-5, -5}}))
      << "it came before";
  EXPECT_FALSE(book.ready(0));
  EXPECT_TRUE(book.put_logprobs(FrozenModel::kReference, ticket, {{-1, -1}, {-1, -1}}));
  EXPECT_TRUE(book.ready(0));
  EXPECT_EQ(book.find(ticket)->samples[1].teacher, (std::vector<float>{-3, -4}));
  EXPECT_EQ(book.find(ticket)->samples[1].reference, (std::vector<float>{-1, -1}));
}

TEST(TicketBook, WithoutRewardsScoresAreZeroAndTheGroupNeedsNobody) {
  TicketBook book(2, false);
  const auto ticket = book.issue({0, 1}, make_set(0, {}))[0];
  EXPECT_TRUE(*book.put_samples(ticket, samples(2), false));
  EXPECT_TRUE(book.ready(0));
  EXPECT_EQ(book.find(ticket)->samples[0].score, 0.0);
}

TEST(TicketBook, ADeliveryThatComesTwiceCountsOnce) {
  Case c(2);
  EXPECT_TRUE(*c.book.put_samples(c.ticket, samples(2), false));
  EXPECT_FALSE(*c.book.put_samples(c.ticket, samples(2, {7, 7}), false));
  EXPECT_EQ(c.book.find(c.ticket)->samples[0].versions.front(), 0u);
  EXPECT_TRUE(c.book.put_scores({c.ticket, 0, all(2, 1), {}}));
  EXPECT_FALSE(c.book.put_scores({c.ticket, 0, all(2, 5), {}}));
  EXPECT_FALSE(*c.book.put_samples(c.ticket, samples(2), false));
  EXPECT_EQ(c.book.find(c.ticket)->samples[0].score, 1.0);
  EXPECT_EQ(duplicates(c.book, DuplicateKind::kRepeated), 2u);
  EXPECT_EQ(c.book.counts().put_tokens, 4u);
}

TEST(TicketBook, TheScoreIsTheWeightedSumOfAllRewards) {
  const auto set = make_set(3, {{"right", "reward/r", 2}, {"short", "reward/s", -0.5}});
  TicketBook book(2, false);
  const auto ticket = book.issue({0, 1}, set)[0];
  ASSERT_TRUE(*book.put_samples(ticket, samples(2), false));
  EXPECT_TRUE(book.put_scores({ticket, 1, {4.0, 6.0}, {}}));
  EXPECT_FALSE(book.ready(0));
  EXPECT_TRUE(book.put_scores({ticket, 0, {1.0, 0.25}, {}}));
  ASSERT_TRUE(book.ready(0));
  const auto& group = *book.find(ticket);
  EXPECT_EQ(group.samples[0].score, 2 * 1.0 - 0.5 * 4.0);
  EXPECT_EQ(group.samples[1].score, 2 * 0.25 - 0.5 * 6.0);
  EXPECT_EQ(group.scores[1].components, (Values{0.25, 6.0}));
}

TEST(TicketBook, AMissingComponentMakesTheScoreMissingAndNamesTheReward) {
  const auto set = make_set(0, {{"right", "reward/r", 1}, {"short", "reward/s", 1}});
  TicketBook book(3, false);
  const auto ticket = book.issue({0, 1}, set)[0];
  book.put_samples(ticket, samples(3), false).value();
  book.put_scores({ticket, 0, {1.0, 1.0, 1.0}, {}});
  book.put_scores({ticket, 1, {std::nullopt, 2.0, std::nullopt}, {"too slow", "", ""}});
  EXPECT_EQ(book.find(ticket)->state, GroupState::kFailed);
  EXPECT_EQ(book.find(ticket)->cause,
            "too few of its samples could be scored: reward short: too slow");
  EXPECT_EQ(book.find(ticket)->samples[0].score, std::nullopt);
  EXPECT_EQ(failed(book, FailureKind::kUnscored), 1u);
}

TEST(TicketBook, AMissingScoreDropsTheSampleNotTheGroup) {
  Case c(3);
  c.book.put_samples(c.ticket, samples(3), false).value();
  c.book.put_scores({c.ticket, 0, {1.0, std::nullopt, 0.0}, {"", "too slow", ""}});
  ASSERT_TRUE(c.book.ready(0));
  EXPECT_EQ(c.book.find(c.ticket)->samples.size(), 2u);
  EXPECT_EQ(c.book.counts().dropped_samples, 1u);
}

TEST(TicketBook, ScoresThatAreNoNumbersAreMissing) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto set = make_set(0, {{"big", "reward/b", 1e300}});
  TicketBook book(4, false);
  const auto ticket = book.issue({0, 1}, set)[0];
  book.put_samples(ticket, samples(4), false).value();
  book.put_scores({ticket, 0, {1.0, inf, 1e300, 2.0}, {}});  // the third overflows in the sum
  ASSERT_TRUE(book.ready(0));
  EXPECT_EQ(book.find(ticket)->samples.size(), 2u);
}

TEST(TicketBook, TooFewScoresFailTheGroupAndTheSlotIsIssuedAgain) {
  Case c(3, 2);
  c.book.put_samples(c.ticket, samples(3), false).value();
  c.book.put_scores({c.ticket, 0, {1.0, std::nullopt, std::nullopt}, {"", "too slow", ""}});
  EXPECT_TRUE(c.book.any_failed(0));
  const auto next = make_set(1, {{"other", "reward/1", 1}});
  const auto again = c.book.reissue(c.ticket, next);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, (experience::Ticket{0, 0, 1}));
  EXPECT_EQ(c.book.find(*again)->prompt, 2u);
  EXPECT_EQ(c.book.find(*again)->rewards, next);
  EXPECT_EQ(c.book.find(*again)->replaced, (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(c.book.find(c.ticket), nullptr);
  EXPECT_FALSE(c.book.any_failed(0));
}

TEST(TicketBook, ALateDeliveryOfAnOldAttemptIsDroppedAndCounted) {
  Case c(2);
  const auto again = *c.book.reissue(c.ticket, c.set);  // cut: it had no samples
  EXPECT_FALSE(*c.book.put_samples(c.ticket, samples(2), false));
  EXPECT_EQ(duplicates(c.book, DuplicateKind::kReplaced), 1u);
  EXPECT_EQ(c.book.find(again)->state, GroupState::kIssued);
  EXPECT_TRUE(*c.book.put_samples(again, samples(2), false));
  EXPECT_FALSE(c.book.put_scores({c.ticket, 0, all(2, 1), {}}));
}

TEST(TicketBook, DeliveriesForClosedUpdatesAndFailedGroupsAreDropped) {
  Case c(1, 2);
  c.book.fail(c.tickets[1], FailureKind::kRewardLost, "gone");
  EXPECT_FALSE(*c.book.put_samples(c.tickets[1], samples(1), false));
  EXPECT_EQ(duplicates(c.book, DuplicateKind::kFailed), 1u);
  EXPECT_FALSE(*c.book.put_samples({9, 0, 0}, samples(1), false));
  EXPECT_FALSE(*c.book.put_samples({0, 0, 1}, samples(1), false));  // not issued yet
  EXPECT_EQ(duplicates(c.book, DuplicateKind::kClosed), 2u);
}

TEST(TicketBook, ReissueAskedTwiceGivesTheSameTicket) {
  Case c(2);
  const auto again = *c.book.reissue(c.ticket, c.set);
  EXPECT_EQ(*c.book.reissue(c.ticket, c.set), again);
  EXPECT_EQ(c.book.prompts().next(), 2u);
}

TEST(TicketBook, GroupsWithSamplesAreNotIssuedAgain) {
  Case c(2);
  c.book.put_samples(c.ticket, samples(2), false).value();
  const auto refused = c.book.reissue(c.ticket, c.set);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("generated"), std::string::npos);
  c.book.put_scores({c.ticket, 0, all(2, 1), {}});
  EXPECT_FALSE(c.book.reissue(c.ticket, c.set));
  EXPECT_FALSE(c.book.reissue({0, 0, 7}, c.set));
  EXPECT_FALSE(c.book.reissue({0, 5, 0}, c.set));
}

TEST(TicketBook, WrongCountsAreErrorsAndTheGroupStillWaits) {
  Case c(3, 1, true);
  for (const int count : {0, 1, 2, 4}) {
    const auto put = c.book.put_samples(c.ticket, samples(count), false);
    ASSERT_FALSE(put) << count;
    EXPECT_EQ(put.error().code, core::ErrorCode::kData);
  }
  EXPECT_FALSE(c.book.put_samples(c.ticket, samples(1), true));
  EXPECT_FALSE(c.book.put_samples(c.ticket, samples(4), true));
  EXPECT_TRUE(*c.book.put_samples(c.ticket, samples(3), false));
  EXPECT_FALSE(c.book.put_scores({c.ticket, 0, all(2, 1), {}}));
  EXPECT_FALSE(c.book.put_scores({c.ticket, 1, all(3, 1), {}}));
  EXPECT_FALSE(c.book.put_logprobs(FrozenModel::kReference, c.ticket, {{-1, -1}, {-1, -1}, {-1}}));
}

TEST(TicketBook, ACutGroupHasTwoSamplesOrMore) {
  Case c(4, 3);
  EXPECT_TRUE(*c.book.put_samples(c.tickets[0], samples(2), true));
  EXPECT_TRUE(*c.book.put_samples(c.tickets[1], samples(4), true));
  EXPECT_EQ(c.book.counts().cut_groups, 1u);
  c.book.put_scores({c.tickets[0], 0, all(2, 1), {}});
  EXPECT_EQ(c.book.find(c.tickets[0])->state, GroupState::kReady);
}

TEST(TicketBook, ATokenOlderThanTheTicketAllowsIsRefusedAndCounted) {
  TicketBook book(2, false);
  const auto ticket = book.issue({3, 1, 0, 5}, one_reward())[0];
  auto mixed = samples(2, {5, 6});
  mixed[1].versions = {6, 4};
  const auto refused = book.put_samples(ticket, mixed, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kData);
  EXPECT_NE(refused.error().message.find("version 4"), std::string::npos);
  EXPECT_NE(refused.error().message.find("before 5"), std::string::npos);
  EXPECT_EQ(book.counts().stale_refused, 1u);
  EXPECT_EQ(book.find(ticket)->state, GroupState::kIssued);
  EXPECT_TRUE(*book.put_samples(ticket, samples(2, {5, 6}), false));
}

TEST(TicketBook, ASlotIssuedAgainKeepsItsOldestVersion) {
  TicketBook book(2, false);
  const auto ticket = book.issue({3, 1, 0, 5}, one_reward())[0];
  const auto again = *book.reissue(ticket, one_reward());
  EXPECT_FALSE(book.put_samples(again, samples(2, {4}), false));
  EXPECT_TRUE(book.put_samples(again, samples(2, {5}), false));
}

TEST(TicketBook, ALostRewardFailsOnlyGroupsThatStillWaitForIt) {
  const auto set = make_set(0, {{"a", "reward/a", 1}, {"b", "reward/b", 1}});
  const auto newer = make_set(2, {{"b", "reward/b2", 1}}, 1);
  TicketBook book(1, false);
  const auto t = book.issue({0, 4}, set);
  const auto later = book.issue({1, 1}, newer)[0];
  for (int i = 0; i < 3; ++i)
    book.put_samples(t[static_cast<std::size_t>(i)], samples(1), false).value();
  for (int i = 0; i < 2; ++i)
    book.put_scores({t[static_cast<std::size_t>(i)], 1, {1.0}, {}});
  book.put_scores({t[0], 0, {1.0}, {}});
  EXPECT_TRUE(book.waits_for("b"));
  book.lose("b", 2);  // 0 is ready, 1 has its score of b, 2 waits for it, 3 will
  EXPECT_EQ(book.find(t[0])->state, GroupState::kReady);
  EXPECT_EQ(book.find(t[1])->state, GroupState::kGenerated);
  EXPECT_EQ(book.find(t[2])->state, GroupState::kFailed);
  EXPECT_EQ(book.find(t[2])->cause, "reward b was lost");
  EXPECT_EQ(book.find(t[3])->state, GroupState::kFailed);
  EXPECT_EQ(book.find(later)->state, GroupState::kIssued);  // another reward of that name
  EXPECT_EQ(failed(book, FailureKind::kRewardLost), 2u);
  EXPECT_TRUE(book.waits_for("a"));
}

TEST(TicketBook, AGroupFailsOnce) {
  Case c(2);
  EXPECT_TRUE(c.book.fail(c.ticket, FailureKind::kReward, "first"));
  EXPECT_FALSE(c.book.fail(c.ticket, FailureKind::kRewardGone, "second"));
  EXPECT_EQ(c.book.find(c.ticket)->cause, "first");
  EXPECT_EQ(c.book.counts().failed_groups(), 1u);
}

TEST(TicketBook, CommitNeedsEverythingReadyAndForgets) {
  Case c(2, 2);
  for (const auto& ticket : c.tickets) {
    EXPECT_FALSE(c.book.commit(0));
    c.book.put_samples(ticket, samples(2), false).value();
    c.book.put_scores({ticket, 0, all(2, 1), {}});
  }
  c.book.issue({1, 1}, c.set);
  EXPECT_TRUE(c.book.commit(0));
  EXPECT_TRUE(c.book.commit(0));  // a repeated request
  EXPECT_TRUE(c.book.committed(0));
  EXPECT_EQ(c.book.open_groups(), 1u);
  EXPECT_EQ(c.book.oldest_update(), 1u);
}

TEST(TicketBook, RestoredTicketsComeBackWithTheirPrompts) {
  TicketBook book(2, false);
  BookGroup saved;
  saved.ticket = {5, 1, 2};
  saved.prompt = 31;
  saved.wanted = 2;
  saved.replaced = {12, 20};
  saved.rewards = one_reward();
  ASSERT_TRUE(book.restore(PromptPositions(40), {saved}));
  const auto set = make_set(1, {{"other", "reward/1", 1}});
  const auto tickets = book.issue({5, 3, 0, 4}, set);
  EXPECT_EQ(tickets[1], saved.ticket);
  EXPECT_EQ(book.find(tickets[0])->prompt, 40u);
  EXPECT_EQ(book.find(tickets[1])->prompt, 31u);
  EXPECT_EQ(book.find(tickets[1])->version_min, 4u);
  EXPECT_EQ(book.find(tickets[1])->rewards, set);
  EXPECT_EQ(book.find(tickets[1])->replaced, saved.replaced);
  EXPECT_EQ(book.find(tickets[2])->prompt, 41u);
  EXPECT_FALSE(book.restore(PromptPositions(), {}));  // others are open now
}

TEST(TicketBook, EveryPromptIsUsedOnceUnderRandomEvents) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    core::Rng rng(seed);
    TicketBook book(2, true);
    const auto set = one_reward();
    std::set<std::uint64_t> used;
    std::uint64_t replaced = 0;
    for (std::uint64_t update = 0; update < 3; ++update) {
      auto tickets = book.issue({update, 4}, set);
      while (!book.ready(update)) {
        auto& ticket = tickets[rng.next_below(tickets.size())];
        switch (rng.next_below(5)) {
          case 0:
            EXPECT_TRUE(book.put_samples(ticket, samples(2), false));
            break;
          case 1:
            book.put_scores({ticket, 0, all(2, 1), {}});
            break;
          case 2:
            book.put_logprobs(FrozenModel::kReference, ticket, {{-1, -1}, {-1, -1}});
            break;
          case 3: {
            if (rng.next_below(4) == 0) book.fail(ticket, FailureKind::kReward, "lost");
            break;
          }
          default:
            if (auto again = book.reissue(ticket, set)) {
              ticket = *again;
              ++replaced;
            }
        }
      }
      for (const BookGroup* group : book.groups_of(update)) {
        EXPECT_TRUE(used.insert(group->prompt).second) << "seed " << seed;
        for (const auto old : group->replaced)
          EXPECT_TRUE(used.insert(old).second);
        EXPECT_EQ(group->samples.size(), 2u);
      }
      ASSERT_TRUE(book.commit(update));
    }
    EXPECT_EQ(used.size(), 12u + replaced);
    EXPECT_EQ(book.prompts().next(), 12u + replaced);
  }
}

TEST(TicketBook, TheFormulaOfTheSetMakesTheScoreAndKnowsTheRow) {
  RewardSet made(3, 0, {{"right", "reward/r", 2}, {"safe", "reward/s", 1}},
                 "domain(source, chat: gate(safe, 0.5, right), other: right)");
  const auto set = std::make_shared<const RewardSet>(std::move(made));
  TicketBook book(4, false);
  const auto tickets = book.issue({0, 2}, set);
  for (const std::size_t t : {0, 1}) {
    const std::string row = t == 0 ? R"({"source":"chat"})" : R"({"source":"math"})";
    ASSERT_TRUE(book.put_samples(tickets[t], samples(4), false));
    book.put_scores({tickets[t], 0, {1.0, 1.0, 0.25, 3.0}, {}, {}, row});
    book.put_scores(
        {tickets[t], 1, {0.5, 0.25, 0.25, std::nullopt}, {"", "", "", "none"}, {}, row});
  }
  const auto scores_of = [&](std::size_t t) {
    std::vector<double> scores;
    for (const auto& sample : book.find(tickets[t])->samples)
      scores.push_back(*sample.score);
    return scores;
  };
  EXPECT_EQ(scores_of(0), (std::vector<double>{2, 0.25, 0.25}))
      << "open; capped at 0.25; capped below 0.5; without its gate a sample has no score";
  EXPECT_EQ(book.find(tickets[0])->unscored.front().cause, "reward safe: none");
  EXPECT_EQ(scores_of(1), (std::vector<double>{2, 2, 0.5, 6})) << "math does not need the gate";
}

}  // namespace troupe::actors::data
