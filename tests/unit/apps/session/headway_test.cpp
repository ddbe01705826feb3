// How far a run has come, on rows of metrics given by hand.
#include "apps/session/headway.hpp"

#include <gtest/gtest.h>

namespace troupe::session {

TEST(Headway, AnUpdateWhoseStepsWereAllSkippedTaughtNothing) {
  Headway headway(3);
  EXPECT_EQ(headway.last_good(), 3u);
  headway.on_update({4, 0, {{"policy/skipped_steps", 1}, {"policy/grad_norm", 0.5}}});
  EXPECT_EQ(headway.last_good(), 4u) << "another step was taken";
  headway.on_update({5, 0, {{"policy/skipped_steps", 2}}});
  EXPECT_EQ(headway.done(), 5u);
  EXPECT_EQ(headway.last_good(), 4u);
  headway.on_update({6, 0, {{"policy/skipped_steps", 0}}});
  EXPECT_EQ(headway.last_good(), 6u);
}

TEST(Headway, WeightsThatDivergeAreNotGood) {
  Headway headway(2);
  headway.on_update({3, 0, {}});
  headway.on_diverged(3);
  EXPECT_EQ(headway.last_good(), 2u);
  headway.on_diverged(0);
  EXPECT_EQ(headway.last_good(), std::nullopt) << "the run began with them";
  Headway skipped(1);
  skipped.on_update({2, 0, {{"policy/skipped_steps", 1}}});
  skipped.on_diverged(4);
  EXPECT_EQ(skipped.last_good(), 1u) << "what was learned last lies before";
}

}  // namespace troupe::session
