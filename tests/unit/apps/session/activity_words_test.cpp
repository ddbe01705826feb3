// Who works and who is waited for, in words.
#include "apps/session/activity_words.hpp"

#include <gtest/gtest.h>

namespace troupe::session {

TEST(ActivityWords, PhasesNameWhoWorks) {
  EXPECT_EQ(activity_words("train"), "policy: training");
  EXPECT_EQ(activity_words("generate"), "generators: sampling");
  EXPECT_EQ(activity_words("something new"), "something new");
}

TEST(ActivityWords, CountsNameWhoIsWaitedFor) {
  const auto words = [](std::uint64_t groups, std::uint64_t sampled, std::uint64_t scored) {
    return activity_words(actors::GroupCounts{groups, sampled, scored});
  };
  EXPECT_EQ(words(8, 0, 0), "generators: sampling 8 of 8 groups");
  EXPECT_EQ(words(8, 5, 3), "generators: sampling 3 of 8 groups; 2 wait for scores");
  EXPECT_EQ(words(8, 7, 6), "generators: sampling 1 of 8 groups; 1 waits for scores");
  EXPECT_EQ(words(8, 8, 5), "waiting for scores of 3 groups");
  EXPECT_EQ(words(1, 1, 0), "waiting for scores of 1 group");
  EXPECT_EQ(words(8, 8, 8), "all 8 groups are there");
}

TEST(ActivityWords, APhaseIsNamedAfterWhatItWaitsFor) {
  const auto phase = [](std::uint64_t groups, std::uint64_t sampled, std::uint64_t scored) {
    return phase_name(awaited_phase(actors::GroupCounts{groups, sampled, scored}));
  };
  EXPECT_EQ(phase(8, 0, 0), "waiting for samples");
  EXPECT_EQ(phase(8, 7, 2), "waiting for samples");
  EXPECT_EQ(phase(8, 8, 2), "waiting for scores");
  EXPECT_EQ(phase_name("evaluate"), "evaluation");
  EXPECT_EQ(phase_name("something new"), "something new");
}

}  // namespace troupe::session
