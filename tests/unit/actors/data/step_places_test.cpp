// Where the scores of steps belong among a response's tokens, and how a group's scores come of
// them.
#include "actors/data/step_places.hpp"

#include "actors/data/sample_scores.hpp"
#include "tests/unit/actors/data/book_support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {
namespace {

using experience::StepReward;
using Steps = std::vector<StepReward>;

// "ab" "" "\n\n" "cd" and an end token: the empty one is half of a character.
const std::vector<std::uint32_t> kEnds = {2, 2, 4, 6, 6};

TEST(StepPlaces, AStepEndsAtTheTokenThatCompletesItsText) {
  const std::vector<StepScore> steps = {{2, 0.5}, {6, 0.25}};
  EXPECT_EQ(at_tokens(steps, kEnds), (Steps{{0, 0.5}, {3, 0.25}}));
  const std::vector<StepScore> inside = {{1, 0.5}, {3, 0.25}, {9, 1}};
  EXPECT_EQ(at_tokens(inside, kEnds), (Steps{{0, 0.5}, {2, 0.25}, {4, 1}}));
}

TEST(StepPlaces, StepsOfOneTokenAreAddedAndAnEmptyOneIsAtTheEnd) {
  const std::vector<StepScore> steps = {{1, 0.5}, {2, 0.25}};
  EXPECT_EQ(at_tokens(steps, kEnds), (Steps{{0, 0.75}}));
  const std::vector<StepScore> blank = {{0, 0.125}};
  EXPECT_EQ(at_tokens(blank, kEnds), (Steps{{4, 0.125}}));
}

TEST(StepPlaces, RewardsAreWeighedAndAddedInTheirOrder) {
  const std::vector<Steps> lists = {{{0, 1}, {3, 2}}, {}, {{3, 4}}};
  const std::vector<double> weights = {0.5, 1, 2};
  EXPECT_EQ(weighed_steps(lists, weights), (Steps{{0, 0.5}, {3, 9}}));
}

// A book with one group of two samples, a reward `right` and a process reward `steps`.
struct StepCase {
  explicit StepCase(const std::string& formula = "") : book(2, false) {
    RewardSet set(0, 0, {{"right", "reward/0", 1}, {"steps", "reward/p", 2}}, formula);
    ticket = book.issue({0, 1}, std::make_shared<const RewardSet>(std::move(set)))[0];
    EXPECT_TRUE(*book.put_samples(ticket, test::samples(2), false));
  }
  bool put_steps() {
    return book.put_scores(
        {ticket, 1, {0.5, 0.25}, {}, {}, {}, {{{0, 0.75}, {1, 0.25}}, {{1, 0.25}}}});
  }
  const experience::Trajectory& sample(std::size_t i) { return book.find(ticket)->samples[i]; }

  TicketBook book;
  experience::Ticket ticket;
};

TEST(StepPlaces, StepsCountByTheirWeightInPlaceOfTheScore) {
  StepCase c;
  EXPECT_TRUE(c.put_steps());
  EXPECT_TRUE(c.book.put_scores({c.ticket, 0, {1.0, 0.0}, {}}));
  ASSERT_TRUE(c.book.ready(0));
  EXPECT_EQ(c.sample(0).score, 1.0);
  EXPECT_EQ(c.sample(0).steps, (Steps{{0, 1.5}, {1, 0.5}}));
  EXPECT_EQ(c.sample(0).total(), 3.0);
  EXPECT_EQ(c.sample(1).score, 0.0);
  EXPECT_EQ(c.sample(1).total(), 0.5);
  EXPECT_EQ(c.book.find(c.ticket)->scores[0].components[1], 0.5) << "as it is shown";
}

TEST(StepPlaces, AFormulaThatNamesTheRewardTakesItsScore) {
  StepCase c("min(right, steps)");
  EXPECT_TRUE(c.put_steps());
  EXPECT_TRUE(c.book.put_scores({c.ticket, 0, {2.0, 0.0}, {}}));
  EXPECT_EQ(c.sample(0).score, 1.0);
  EXPECT_TRUE(c.sample(0).steps.empty());
  EXPECT_EQ(c.sample(1).score, 0.0);
}

TEST(StepPlaces, ALostProcessRewardIsNoScoreAndNever0) {
  StepCase c;
  EXPECT_TRUE(c.book.put_scores({c.ticket, 0, {1.0, 1.0}, {}}));
  EXPECT_TRUE(c.book.put_scores(
      {c.ticket, 1, {std::nullopt, 0.25}, {"too long", ""}, {}, {}, {{}, {{1, 0.25}}}}));
  EXPECT_FALSE(c.book.ready(0));
  ASSERT_EQ(c.book.find(c.ticket)->unscored.size(), 1u);
  EXPECT_EQ(c.book.find(c.ticket)->unscored[0].cause, "reward steps: too long");
}

TEST(StepPlaces, PlacesThatTheSamplesDoNotHaveAreRefused) {
  StepCase c;
  EXPECT_FALSE(c.book.put_scores({c.ticket, 1, {0.5, 0.5}, {}, {}, {}, {{{2, 0.5}}, {}}}));
  EXPECT_FALSE(c.book.put_scores({c.ticket, 1, {0.5, 0.5}, {}, {}, {}, {{{0, 0.5}}}}));
}

}  // namespace
}  // namespace troupe::actors::data
