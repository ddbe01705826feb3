// The words about what a plain Python reward costs an update, and about servers that are away.
#include "apps/session/reward_words.hpp"

#include "apps/session/reward_flags.hpp"

#include <gtest/gtest.h>

namespace troupe::session {

TEST(RewardWords, GroupsTimesSecondsOverWorkers) {
  EXPECT_EQ(call_arithmetic({1, 0.5, 4, 0}, 64),
            "64 groups x 0.5 s a call / 1 worker = 32 s an update");
  EXPECT_EQ(call_arithmetic({3, 0.5, 4, 0}, 64),
            "64 groups x 0.5 s a call / 3 workers = 11 s an update")
      << "22 rounds";
}

TEST(RewardWords, NothingIsSaidOfOthersAndBeforeCallsWereTimed) {
  EXPECT_EQ(call_arithmetic({2, 0.5, 3, 0}, 64), "") << "three calls";
  EXPECT_EQ(call_arithmetic({2, 0.5, 40, 1}, 64), "") << "an async function";
  EXPECT_EQ(call_arithmetic({}, 64), "") << "no Python reward";
}

TEST(RewardFlags, UrlsStandInOneFlagOrInSeveral) {
  EXPECT_EQ(split_commas({"http://a/,http://b/", "http://c/"}),
            (std::vector<std::string>{"http://a/", "http://b/", "http://c/"}));
  EXPECT_EQ(split_commas({"http://a/,"}), (std::vector<std::string>{"http://a/", ""}))
      << "an empty one is refused as a URL";
  EXPECT_EQ(split_commas({}), std::vector<std::string>());
}

TEST(RewardWords, ServersThatAreAway) {
  EXPECT_EQ(servers_words(3, 1), "1 of its 3 servers is away; the others answer for them");
  EXPECT_EQ(servers_words(3, 3), "3 of its 3 servers are away");
  EXPECT_EQ(servers_words(3, 0), "");
  EXPECT_EQ(servers_words(1, 1), "") << "the data role says so";
  EXPECT_EQ(servers_words(0, 0), "");
}

TEST(RewardWords, TheMembersOfASet) {
  actors::SetRewards set{2, 4, {{"score", "reward/0", 1}, {"format", "reward/format", 0.5}}, {}};
  EXPECT_EQ(set_words(set), "reward set 2 from update 5 on: score x 1 format x 0.5");
  set.formula = "score + format";
  EXPECT_EQ(set_words(set),
            "reward set 2 from update 5 on: score x 1 format x 0.5; formula score + format");
}

}  // namespace troupe::session
