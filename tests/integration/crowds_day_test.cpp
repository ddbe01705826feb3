// Many who come and go: rewards of a run, sessions of a server. Nothing is left of those that went.
#include "few_files_support.hpp"
#include "serve_support.hpp"

namespace troupe::test {
namespace {

std::size_t files_of(pid_t pid) {
  std::size_t count = 0;
  std::error_code gone;
  for (std::filesystem::directory_iterator fd("/proc/" + std::to_string(pid) + "/fd", gone), end;
       !gone && fd != end; fd.increment(gone))
    ++count;
  return count;
}

}  // namespace

class Crowds : public Joining {};

TEST_F(Crowds, AThousandRewardsComeAndGo) {
  Background run = head("run", {"--train.max_steps", "1000000", "--train.num_episodes", "1000000",
                                "--ckpt.save_steps", "0"});
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > 0; })) << run.text();
  const std::string folder = (files_ / "run").string();
  std::size_t files = 0;
  double memory = 0;
  for (int i = 0; i < 1000; ++i) {
    const Ended attached = ends({"attach", "reward", "--join", folder, "--name", "other", "--rule",
                                 "regex", "--pattern", "[a-z]", "--background"},
                                60);
    ASSERT_EQ(attached.status, 0) << i << attached.text;
    const Ended detached = ends({"detach", "reward", "--join", folder, "--name", "other"}, 60);
    ASSERT_EQ(detached.status, 0) << i << detached.text;
    if (i != 100) continue;
    files = files_of(run.pid());
    memory = run.memory_mb("VmRSS:");
  }
  EXPECT_TRUE(within(30, [&] { return files_of(run.pid()) <= files + 4; })) << files;
  RecordProperty("grown_mb", std::to_string(run.memory_mb("VmRSS:") - memory));
  const std::size_t updates = updates_of("run");
  EXPECT_TRUE(within(60, [&] { return updates_of("run") > updates; })) << "it goes on";
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(60).value_or(-1), 130) << run.text();
  expect_clean_ledger("run");
}

// The next one of the name comes before the run has noticed that the last was killed, or while its
// groups are being failed: whatever the order, it scores.
TEST_F(Crowds, RewardsThatAreKilledAreAttachedAgainAtOnce) {
  Background run = head("run", {"--train.max_steps", "1000000", "--train.num_episodes", "1000000",
                                "--ckpt.save_steps", "0"});
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > 0; })) << run.text();
  const std::string folder = (files_ / "run").string();
  const Words attach = {"attach", "reward", "--join",    folder,  "--name",      "other",
                        "--rule", "regex",  "--pattern", "[a-z]", "--background"};
  for (int i = 0; i < 300; ++i) {
    const Ended first = ends(attach, 60);
    ASSERT_EQ(first.status, 0) << i << first.text;
    const std::string place = "it scores in process ";
    const auto at = first.text.find(place);
    ASSERT_NE(at, std::string::npos) << first.text;
    const pid_t pid = std::atoi(first.text.c_str() + at + place.size());
    ASSERT_GT(pid, 1) << first.text;
    ASSERT_EQ(::kill(pid, SIGKILL), 0) << i;
    const Ended second = ends(attach, 60);
    ASSERT_EQ(second.status, 0) << i << second.text;
    const Ended detached = ends({"detach", "reward", "--join", folder, "--name", "other"}, 60);
    ASSERT_EQ(detached.status, 0) << i << detached.text;
  }
  const std::size_t updates = updates_of("run");
  EXPECT_TRUE(within(60, [&] { return updates_of("run") > updates; })) << "it goes on";
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(60).value_or(-1), 130) << run.text();
  expect_clean_ledger("run");
}

TEST_F(Crowds, FiveThousandSessions) {
  Served served;
  const nlohmann::json asked = {{"prompt", "ab"}, {"max_tokens", 4}, {"seed", 3}};
  std::string alone;
  for (int i = 0; i < 5000; ++i) {
    const auto opened = served.call("POST", "/sessions").json();
    ASSERT_TRUE(opened.contains("api_key")) << i << opened.dump();
    const std::string key =
        "Authorization: Bearer " + opened["api_key"].get<std::string>() + "\r\n";
    const auto answer = served.call("POST", "/v1/completions", asked.dump(), key).json();
    ASSERT_TRUE(answer.contains("choices")) << i << answer.dump();
    const std::string text = answer["choices"].dump();
    if (alone.empty()) alone = text;
    ASSERT_EQ(text, alone) << i;
    const std::string place = "/sessions/" + opened["id"].get<std::string>();
    ASSERT_EQ(served.call("POST", place + "/end", "", key).status, 200) << i;
  }
  // Those that are not ended stay: as many as there may be, and not one more.
  int opened = 0;
  for (int i = 0; i < 1100; ++i)
    opened += served.call("POST", "/sessions").status == 200 ? 1 : 0;
  EXPECT_EQ(opened, 1024);
  EXPECT_EQ(served.call("POST", "/sessions").status, 503);
  EXPECT_EQ(served.metric("vllm:num_requests_running"), 0);
}

}  // namespace troupe::test
