// More losses of supervised runs: rank 0, and a rank that is killed in an evaluation.
#include "supervised_ranks_support.hpp"

namespace troupe::test {
namespace {

class SupervisedRanksDay : public SupervisedRanks {};

TEST_F(SupervisedRanksDay, RankZeroThatIsKilledChangesNoBit) {
  expect_survives(dpo_, "policy");
}

TEST_F(SupervisedRanksDay, ARankThatIsKilledInAnEvaluationChangesNoBit) {
  expect_survives(sft_, "policy-1", long_evaluations(sft_));
}

}  // namespace
}  // namespace troupe::test
