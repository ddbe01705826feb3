// Starts in too little room, in short; the whole range is in little_room_day_test.cpp.
#include "little_room_support.hpp"

namespace troupe::test {

TEST_F(LittleRoom, AStartWithoutMemoryOrThreadsEndsWithCodeThree) {
  std::size_t refused = 0;
  for (const Start& start : {generating(), serving(), training("loopback"), training("caf")}) {
    for (const int kib : {100'000, 150'000, 200'000})
      refused += expect_good_end(start, "-v " + std::to_string(kib), 60) == 3 ? 1 : 0;
  }
  EXPECT_GE(refused, 4u) << "none may run in the least of them";
}

TEST_F(LittleRoom, AMachineWithoutProcessesIsNoBug) {
  const Processes group;
  if (!group.there()) GTEST_SKIP() << "no control groups of processes here, or not for this user";
  for (const int most : {1, 5, 12}) {
    for (const Start& start : {generating(), serving(), training("caf")})
      expect_good_end(start, group.limited_to(most, start.words),
                      std::to_string(most) + " processes and threads", 60);
  }
  EXPECT_EQ(expect_good_end(training("caf"), group.limited_to(1, training("caf").words), "1", 60),
            3);
}

}  // namespace troupe::test
