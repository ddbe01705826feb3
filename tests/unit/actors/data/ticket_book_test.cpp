// The ticket book: order of prompts, deliveries that come twice, missing scores, replaced slots.
#include "actors/data/ticket_book.hpp"

#include <gtest/gtest.h>

#include <set>

#include "runtime/core/rng.hpp"

namespace troupe::actors {
namespace {

std::vector<BookSample> samples(int count) {
  std::vector<BookSample> result(static_cast<std::size_t>(count));
  for (auto& sample : result) {
    sample.tokens = {1, 2};
    sample.behaviour = {-0.5f, -1.0f};
    sample.versions = {0, 0};
  }
  return result;
}
std::vector<std::optional<double>> ones(int count) {
  return std::vector<std::optional<double>>(static_cast<std::size_t>(count), 1.0);
}

}  // namespace

TEST(TicketBook, PromptsFollowSlotsAcrossUpdates) {
  TicketBook book(2, false);
  const auto first = book.issue(0, 3);
  const auto second = book.issue(1, 3);
  EXPECT_EQ(book.find(first[2])->prompt, 2u);
  EXPECT_EQ(book.find(second[0])->prompt, 3u);
  EXPECT_EQ(book.next_prompt(), 6u);
}

TEST(TicketBook, AskingTwiceGivesTheSameTickets) {
  TicketBook book(2, false);
  EXPECT_EQ(book.issue(4, 3), book.issue(4, 3));
  EXPECT_EQ(book.next_prompt(), 3u);
}

TEST(TicketBook, IsReadyWhenScoresAndReferenceAreIn) {
  TicketBook book(2, true);
  const auto ticket = book.issue(0, 1)[0];
  EXPECT_TRUE(book.put_samples(ticket, samples(2)));
  EXPECT_TRUE(book.put_scores(ticket, ones(2), {}));
  EXPECT_FALSE(book.ready(0));
  EXPECT_TRUE(book.put_reference(ticket, {{-1, -1}, {-1, -1}}));
  EXPECT_TRUE(book.ready(0));
}

TEST(TicketBook, ADeliveryThatComesTwiceCountsOnce) {
  TicketBook book(2, false);
  const auto ticket = book.issue(0, 1)[0];
  EXPECT_TRUE(book.put_samples(ticket, samples(2)));
  EXPECT_FALSE(book.put_samples(ticket, samples(2)));
  EXPECT_TRUE(book.put_scores(ticket, ones(2), {}));
  EXPECT_FALSE(book.put_scores(ticket, ones(2), {}));
}

TEST(TicketBook, AMissingScoreDropsTheSampleNotTheGroup) {
  TicketBook book(3, false);
  const auto ticket = book.issue(0, 1)[0];
  book.put_samples(ticket, samples(3));
  book.put_scores(ticket, {1.0, std::nullopt, 0.0}, {"", "too slow", ""});
  ASSERT_TRUE(book.ready(0));
  EXPECT_EQ(book.find(ticket)->samples.size(), 2u);
  EXPECT_EQ(book.dropped_samples(), 1u);
}

TEST(TicketBook, TooFewScoresFailTheGroupAndTheSlotIsIssuedAgain) {
  TicketBook book(3, false);
  const auto ticket = book.issue(0, 2)[0];
  book.put_samples(ticket, samples(3));
  book.put_scores(ticket, {1.0, std::nullopt, std::nullopt}, {"", "too slow", ""});
  EXPECT_EQ(book.find(ticket)->state, GroupState::kFailed);
  EXPECT_NE(book.find(ticket)->cause.find("too slow"), std::string::npos);
  const auto again = book.reissue(ticket);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, (core::Ticket{0, 0, 1}));
  EXPECT_EQ(book.find(*again)->prompt, 2u);
  EXPECT_EQ(book.find(ticket), nullptr);
  EXPECT_FALSE(book.put_samples(ticket, samples(3)));  // the old attempt comes too late
  EXPECT_FALSE(book.reissue(*again));
}

TEST(TicketBook, WrongCountsAreNotTaken) {
  TicketBook book(2, true);
  const auto ticket = book.issue(0, 1)[0];
  EXPECT_FALSE(book.put_samples(ticket, samples(3)));
  book.put_samples(ticket, samples(2));
  EXPECT_FALSE(book.put_scores(ticket, ones(3), {}));
  EXPECT_FALSE(book.put_reference(ticket, {{-1, -1}, {-1}}));
}

TEST(TicketBook, CommitNeedsEverythingReadyAndForgets) {
  TicketBook book(2, false);
  const auto tickets = book.issue(0, 2);
  for (const auto& ticket : tickets) {
    EXPECT_FALSE(book.commit(0));
    book.put_samples(ticket, samples(2));
    book.put_scores(ticket, ones(2), {});
  }
  book.issue(1, 1);
  EXPECT_TRUE(book.commit(0));
  EXPECT_EQ(book.open_groups(), 1u);
}

TEST(TicketBook, EveryPromptIsUsedOnceUnderRandomEvents) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    core::Rng rng(seed);
    TicketBook book(2, true);
    std::set<std::uint64_t> used;
    for (std::uint64_t update = 0; update < 3; ++update) {
      auto tickets = book.issue(update, 4);
      while (!book.ready(update)) {
        auto& ticket = tickets[rng.next_below(tickets.size())];
        switch (rng.next_below(5)) {
          case 0: book.put_samples(ticket, samples(2)); break;
          case 1: book.put_scores(ticket, ones(2), {}); break;
          case 2: book.put_reference(ticket, {{-1, -1}, {-1, -1}}); break;
          case 3: {
            if (rng.next_below(4) == 0) book.fail(ticket, "lost");
            break;
          }
          default:
            if (auto again = book.reissue(ticket)) ticket = *again;
        }
      }
      for (const BookGroup* group : book.groups_of(update)) {
        EXPECT_TRUE(used.insert(group->prompt).second) << "seed " << seed;
        EXPECT_EQ(group->samples.size(), 2u);
      }
      ASSERT_TRUE(book.commit(update));
    }
    EXPECT_EQ(used.size(), 12u);
    EXPECT_EQ(book.next_prompt(), 12u + book.failed_groups());
  }
}

}  // namespace troupe::actors
