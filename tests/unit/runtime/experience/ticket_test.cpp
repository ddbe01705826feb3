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
}

TEST(Ticket, OrderIsByUpdateThenSlotThenAttempt) {
  EXPECT_LT((Ticket{1, 9, 9}), (Ticket{2, 0, 0}));
  EXPECT_LT((Ticket{1, 0, 9}), (Ticket{1, 1, 0}));
  EXPECT_LT((Ticket{1, 1, 0}), (Ticket{1, 1, 1}));
}

}  // namespace
}  // namespace troupe::experience
