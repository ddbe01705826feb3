// What outlives the head of a run of episodes: an environment of another process, and a server from
// whose sessions the run learns. As outliving_test.cpp.
#include "tests/integration/outliving_support.hpp"

namespace troupe::test {
namespace {

class OutlivingDay : public Outliving {
 protected:
  static Words of_episodes() { return Words{"--env.attached", "true"} + endless(); }
};

}  // namespace

TEST_F(OutlivingDay, AnotherRunRefusesTheirGuests) {
  Background a = run("a", of_episodes());
  Background guest = environment();
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 0; })) << a.text() << guest.text();
  Background served = server({"--learn"});
  ASSERT_TRUE(within(60, [&] { return served.says("serving version"); })) << served.text();
  a.kill();
  Background b = run("b", {"--train.max_steps", "3"});
  expect_refused(guest, "e ");
  expect_refused(served, "serve-");
  ASSERT_EQ(b.wait(60).value_or(-1), 0) << b.text();
  Background calm = head("calm", {"--train.max_steps", "3"});
  ASSERT_EQ(calm.wait(60).value_or(-1), 0) << calm.text();
  expect_same_bits("b", "calm");
}

TEST_F(OutlivingDay, AGuestThatFollowsAnyRunPlaysForTheNext) {
  Background a = run("a", of_episodes());
  Background guest = environment({"--any-run"});
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 0; })) << a.text() << guest.text();
  a.kill();
  Background b = run("b", Words{"--env.attached", "true", "--train.max_steps", "2"});
  EXPECT_EQ(b.wait(90).value_or(-1), 0) << b.text() << guest.text();
  expect_end(guest, 0, {});
}

TEST_F(OutlivingDay, TheSameRunHasThemAgain) {
  Background a = run("a", of_episodes());
  Background guest = environment();
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 0; })) << a.text() << guest.text();
  a.kill();
  ASSERT_TRUE(within(30, [&] { return guest.says("waiting for the next"); })) << guest.text();
  const std::size_t updates = updates_of("a");
  Background again = run("a", of_episodes());
  EXPECT_TRUE(within(90, [&] { return updates_of("a") > updates; }))
      << again.text() << guest.text();
  Background served = server({"--learn"});
  ASSERT_TRUE(within(60, [&] { return served.says("serving version"); })) << served.text();
  again.kill();
  ASSERT_TRUE(within(30, [&] { return served.says("tries again"); })) << served.text();
  Background third = run("a", of_episodes());
  EXPECT_TRUE(within(90,
                     [&] {
                       const std::string text = served.text();
                       return text.find("serving version", text.find("tries again")) != text.npos;
                     }))
      << third.text() << served.text();
}

TEST_F(OutlivingDay, NobodyIsWaitedForForEver) {
  const Words wait = {"--wait-s", "1"};
  Background a = run("a", of_episodes());
  Background guest = environment(wait);
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 0; })) << a.text() << guest.text();
  Background served = server(wait + Words{"--learn"});
  ASSERT_TRUE(within(60, [&] { return served.says("serving version"); })) << served.text();
  a.kill();
  expect_given_up(guest, "node/e");
  expect_given_up(served, "this server");
}

// A head of a later generation is followed by the first one of another run, with lower epochs.
TEST_F(OutlivingDay, ANodeServesARunOfALowerGeneration) {
  const Words words = Words{"--rollout.generators", "0"} + endless();
  Background first = run("a", words);
  Background lent = node();
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << first.text() << lent.text();
  first.kill();
  std::size_t updates = updates_of("a");
  Background second = run("a", words);
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > updates; })) << second.text();
  second.kill();
  Background b = run("b", {"--rollout.generators", "0", "--train.max_steps", "3"});
  EXPECT_EQ(b.wait(50).value_or(-1), 0) << b.text() << lent.text();
  expect_end(lent, 0, {});
}

}  // namespace troupe::test
