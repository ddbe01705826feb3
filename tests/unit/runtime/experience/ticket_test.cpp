#include "runtime/experience/ticket.hpp"

#include <gtest/gtest.h>

namespace troupe::experience {
namespace {

TEST(Ticket, AnEvaluationKeepsItsNumberUnderItsKind) {
  const Ticket training{6, 1, 0}, evaluation{(std::uint64_t{1} << 63) + 6, 1, 0};
  EXPECT_EQ(training.kind(), TicketKind::kTraining);
  EXPECT_EQ(evaluation.kind(), TicketKind::kEvaluation);
  EXPECT_EQ(name_of(training), "update 7, prompt 2");
  EXPECT_EQ(name_of(evaluation), "evaluation 7, prompt 2");
  EXPECT_EQ(evaluation_after(3, false), evaluation.update);
  EXPECT_FALSE(is_greedy(evaluation_after(3, false)));
  EXPECT_TRUE(is_greedy(evaluation_after(3, true)));
  EXPECT_EQ(step_of(training.update), 7u);
  EXPECT_EQ(step_of(evaluation_after(0, false)), 0u);
  EXPECT_EQ(step_of(evaluation_after(3, true)), 3u);
}

TEST(Ticket, OrderIsByUpdateThenSlotThenAttempt) {
  EXPECT_LT((Ticket{1, 9, 9}), (Ticket{2, 0, 0}));
  EXPECT_LT((Ticket{1, 0, 9}), (Ticket{1, 1, 0}));
  EXPECT_LT((Ticket{1, 1, 0}), (Ticket{1, 1, 1}));
}

}  // namespace
}  // namespace troupe::experience
