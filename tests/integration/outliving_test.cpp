// What outlives a head, cell by cell of the table in docs/operations.md: the same run comes back,
// another one comes to its address, or nobody does. Episodes are in outliving_day_test.cpp.
#include "tests/integration/outliving_support.hpp"

namespace troupe::test {
namespace {

// The node alone samples, so a run without it stands still.
Words sampled_elsewhere(const Words& more) {
  return Words{"--rollout.generators", "0"} + more;
}

}  // namespace

TEST_F(Outliving, AnotherRunHasTheNodeAndNoGuest) {
  Background a = run("a", sampled_elsewhere(endless()));
  Background lent = node();
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << a.text() << lent.text();
  Background guest = reward(), served = server(), follower = server({"--any-run"});
  ASSERT_TRUE(within(60,
                     [&] {
                       return guest.says("scores from update") && served.says("serving version") &&
                              follower.says("serving version");
                     }))
      << guest.text() << served.text() << follower.text();
  // A name that is taken is told by the run's answer alone.
  const Ended twice = ends(joining({"attach", "reward"}, {"--name", "other", "--rule", "exact"}));
  EXPECT_EQ(twice.status, 2) << twice.text;
  EXPECT_TRUE(twice.text.starts_with("error: ")) << twice.text;
  a.kill();
  Background b = run("b", sampled_elsewhere({"--train.max_steps", "3"}));
  expect_refused(guest, "reward-other-");
  expect_refused(served, "serve-");
  EXPECT_EQ(b.wait(60).value_or(-1), 0) << b.text() << lent.text();
  EXPECT_EQ(lent.wait(30).value_or(-1), 0) << lent.text();
  expect_end(follower, 0, {"the run ended"});
  EXPECT_TRUE(log_says("b", "refused: this is ")) << b.text();
  Background calm = head("calm", {"--train.max_steps", "3"});
  ASSERT_EQ(calm.wait(60).value_or(-1), 0) << calm.text();
  expect_same_bits("b", "calm");
}

// The folder of a run that is gone names that run, though another one answers at its address.
TEST_F(Outliving, AFolderNamesItsRun) {
  run("a", endless()).kill();
  Background b = run("b", endless());
  ASSERT_TRUE(within(60, [&] { return updates_of("b") > 0; })) << b.text();
  const std::string a = (files_ / "a").string();
  for (const Words& words : {Words{"status"}, Words{"detach", "reward", "--name", "regex"},
                             Words{"node", "drain", "policy"},
                             Words{"attach", "reward", "--name", "x", "--rule", "exact"}}) {
    const Ended ended = ends(words + Words{"--join", a});
    EXPECT_EQ(ended.status, 2) << ended.text;
    EXPECT_NE(ended.text.find("belongs to " + a + " (run "), std::string::npos) << ended.text;
  }
  b.signal(SIGINT);
  EXPECT_EQ(b.wait(30).value_or(-1), 130) << b.text();
}

TEST_F(Outliving, TheSameRunHasThemAllAgain) {
  const Words words = sampled_elsewhere(endless());
  Background first = run("a", words);
  Background lent = node();
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << first.text() << lent.text();
  Background guest = reward(), served = server();
  ASSERT_TRUE(within(
      60, [&] { return guest.says("scores from update") && served.says("serving version"); }))
      << guest.text() << served.text();
  first.kill();
  ASSERT_TRUE(within(30, [&] { return guest.says("tries again") && served.says("tries again"); }))
      << guest.text() << served.text();
  const auto lines = [](const Background& program, const std::string& part) {
    const std::string text = program.text();
    std::size_t count = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
      ++count;
    return count;
  };
  const std::size_t updates = updates_of("a"), served_before = lines(served, "serving version");
  Background again = run("a", words);
  EXPECT_TRUE(within(60,
                     [&] {
                       return updates_of("a") > updates &&
                              lines(guest, "scores from update") == 2 &&
                              lines(served, "serving version") > served_before;
                     }))
      << again.text() << lent.text() << guest.text() << served.text();
  again.signal(SIGINT);
  EXPECT_EQ(again.wait(30).value_or(-1), 130) << again.text();
  expect_end(lent, 0, {});
  expect_end(served, 0, {"the run ended"});
  EXPECT_TRUE(guest.running()) << "the run may be resumed: " << guest.text();
}

TEST_F(Outliving, NobodyIsWaitedForForEver) {
  const Words wait = {"--wait-s", "1"};
  Background a = run("a", sampled_elsewhere(endless()));
  Background lent = node(wait);
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << a.text() << lent.text();
  Background guest = reward(wait), served = server(wait);
  ASSERT_TRUE(within(
      60, [&] { return guest.says("scores from update") && served.says("serving version"); }))
      << guest.text() << served.text();
  a.kill();
  expect_given_up(lent, "node/n");
  expect_given_up(guest, "reward other");
  expect_given_up(served, "this server");
}

// It is checked before a file or a connection is made with it, and shown without its bytes.
TEST_F(Outliving, ANameThatIsNoneIsRefusedAtOnce) {
  std::filesystem::create_directories(files_ / "gone" / "nodes");
  const std::string gone = (files_ / "gone").string();
  for (const std::string& name :
       {std::string("."), std::string(".."), std::string("a/b"), std::string("../../x"),
        std::string("<b>x"), std::string("a\x1b[31m"), std::string("a\nerror: b"),
        std::string(300, 'a')}) {
    const std::string file = (files_ / "environment.py").string();
    for (const Words& words :
         {Words{"node", "--join", "127.0.0.1:1", "--token-file", token_, "--name", name},
          Words{"attach", "reward", "--join", gone, "--name", name, "--rule", "exact",
                "--background"},
          Words{"attach", "environment", "--join", gone, "--name", name, "--python", file}}) {
      const Ended ended = ends(words);
      EXPECT_EQ(ended.status, 2) << ended.text;
      EXPECT_TRUE(ended.text.starts_with("error: --name '")) << ended.text;
      EXPECT_NE(ended.text.find("letters, digits, '-', '_' and '.'"), std::string::npos);
      EXPECT_EQ(ended.text.find('\x1b'), std::string::npos);
      EXPECT_EQ(ended.text.find("\nerror: "), std::string::npos) << ended.text;
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(files_ / "gone" / "nodes"));
}

}  // namespace troupe::test
