// Ranks that are killed and frozen in the middle of their common work, time after time: each loss
// is noticed, nobody waits for ever, and no bit changes. Prints how long the company needed.
#include "company_support.hpp"
#include "runtime/core/rng.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace troupe::test {
namespace {

using Clock = std::chrono::steady_clock;

// Strikes the node's process and returns the seconds until the log says that it is lost; nothing
// when that does not come.
std::optional<double> notice_of(CompanyRun& run, const std::string& node, pid_t pid, int signal) {
  const std::string line = "node/" + node + " is lost: ";
  const std::size_t before = times_in(run.log(), line);
  const auto begin = Clock::now();
  if (::kill(pid, signal) != 0) return std::nullopt;
  while (times_in(run.log(), line) == before) {
    if (Clock::now() - begin > std::chrono::seconds(30)) return std::nullopt;
    ::poll(nullptr, 0, 2);
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void print_quartiles(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1) + 0.5)];
  };
  std::printf("%s, %zu times: noticed after %.3f s (quartiles %.3f and %.3f, at most %.3f)\n", what,
              seconds.size(), at(0.5), at(0.25), at(0.75), seconds.back());
}

}  // namespace

// Each rank may be lost 7 times a minute; what goes with each session, as often as it likes.
TEST(GangLossesDay, ThirtyRanksThatAreKilledOrFrozenAreNoticedAndChangeNoBit) {
  constexpr int kLosses = 30;
  constexpr std::chrono::milliseconds kPace{4'000};
  constexpr int kSteps = 600;
  const TinyRun files;
  const auto slow = files / "slow";
  std::ofstream(files / "reward.py") << "import os, time\n"
                                        "def reward_func(queries, prompts, labels):\n"
                                        "    if os.path.exists('"
                                     << slow.string()
                                     << "'):\n        time.sleep(0.4)\n"
                                        "    return [float(len(q) % 5) for q in queries]\n";
  const std::vector<std::string> common = {"--train.max_steps",     std::to_string(kSteps),
                                           "--ckpt.save_steps",     "10",
                                           "--reward.rule",         "",
                                           "--reward.rule_pattern", "",
                                           "--reward.python",       (files / "reward.py").string()};
  std::vector<std::string> alone = {"--cluster.transport", "loopback", "--train.lanes", "3"};
  alone.insert(alone.end(), common.begin(), common.end());
  CompanyRun calm(files, "calm", alone);
  ASSERT_EQ(calm.wait(300), 0) << calm.output();

  std::ofstream(slow) << "yes";
  std::vector<std::string> words = {"--actor.ranks", "3", "--train.zero_stage", "2"};
  words.insert(words.end(), common.begin(), common.end());
  CompanyRun run(files, "struck", words);
  core::Rng moments(11, 1);
  std::vector<double> killed, frozen;
  const std::vector<std::string> ranks = {"policy", "policy-1", "policy-2"};
  std::size_t steps = 2;
  auto last = Clock::now() - kPace;
  for (int loss = 0; loss < kLosses; ++loss) {
    const std::string& node = ranks[static_cast<std::size_t>(loss) % ranks.size()];
    while (Clock::now() < last + kPace)
      ::poll(nullptr, 0, 50);
    const pid_t pid = run.node_after(node, steps);
    ASSERT_GT(pid, 0) << "loss " << loss << "\n" << run.output();
    ::poll(nullptr, 0, static_cast<int>(moments.next_below(400)));  // anywhere in an update
    last = Clock::now();
    const bool freezes = loss / 3 % 2 == 1;
    const auto noticed = notice_of(run, node, pid, freezes ? SIGSTOP : SIGKILL);
    ASSERT_TRUE(noticed) << "loss " << loss << "\n" << run.log();
    (freezes ? frozen : killed).push_back(*noticed);
    steps = run.steps() + 2;
  }
  std::filesystem::remove(slow);
  ASSERT_EQ(run.wait(600), 0) << run.output();
  EXPECT_TRUE(run.all_nodes_gone());
  expect_clean_ledger(run.folder());
  expect_same_bits(calm.folder(), run.folder(), kSteps);
  print_quartiles("killed", killed);
  print_quartiles("frozen", frozen);
}

}  // namespace troupe::test
