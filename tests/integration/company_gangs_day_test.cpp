// More losses of a gang: frozen ranks, rank 0, and a rank that dies while there is no head.
#include "company_gangs_support.hpp"

namespace troupe::test {
namespace {

class GangsDay : public Gangs {};

TEST_F(GangsDay, AFrozenRankChangesNoBit) {
  expect_survives("policy-1", SIGSTOP);
}

TEST_F(GangsDay, AKilledRankZeroChangesNoBit) {
  expect_survives("policy", SIGKILL);
}

// A rank that died while there was no head: the others are of no use any more.
TEST_F(GangsDay, TheNextHeadStartsATornGangAnew) {
  calm();
  CompanyRun first(files_, "run", {"--actor.ranks", "2"});
  ASSERT_TRUE(first.await_steps(3)) << first.output();
  const auto ranks = first.nodes();
  ASSERT_TRUE(ranks.contains("policy-1"));
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  ASSERT_EQ(::kill(ranks.at("policy-1"), SIGKILL), 0);
  CompanyRun next(files_, "run", {"--actor.ranks", "2"});
  expect_as_calm(next);
}

}  // namespace
}  // namespace troupe::test
