// Starts in too little room, over the whole range from none to enough.
#include "little_room_support.hpp"

namespace troupe::test {
namespace {

// Long, as a role that finds no memory is started eight times before the run gives up.
constexpr double kLimit_s = 120;

class LittleRoomDay : public LittleRoom {};

}  // namespace

TEST_F(LittleRoomDay, EveryLimitOnAddressSpaceEndsWithZeroOrThree) {
  for (const Start& start : {generating(), serving(), training("loopback")}) {
    int last = 3;
    for (int kib = 100'000; kib <= 2'000'000; kib += 50'000)
      last = expect_good_end(start, "-v " + std::to_string(kib), kLimit_s);
    EXPECT_EQ(last, 0) << start.name;
  }
  int last = 3;
  for (int kib = 100'000; kib <= 2'000'000; kib += kib < 500'000 ? 50'000 : 150'000)
    last = expect_good_end(training("caf"), "-v " + std::to_string(kib), kLimit_s);
  EXPECT_EQ(last, 0);
}

TEST_F(LittleRoomDay, EveryNumberOfProcessesEndsWithZeroOrThree) {
  const Processes group;
  if (!group.there()) GTEST_SKIP() << "no control groups of processes here, or not for this user";
  for (const Start& start : {generating(), serving(), training("loopback"), training("caf")}) {
    const bool many = start.name == "caf";
    int last = 3;
    for (int most = 1; most <= (many ? 120 : 24); most += many ? 9 : 1)
      last = expect_good_end(start, group.limited_to(most, start.words),
                             std::to_string(most) + " processes and threads", kLimit_s);
    EXPECT_EQ(last, 0) << start.name;
  }
}

}  // namespace troupe::test
