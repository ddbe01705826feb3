// kill -9 at any step and resume: metrics, rollouts and the hashes of the weights after ten updates
// equal those of a run that was never interrupted.
#include "train_support.hpp"

#include <chrono>

#include "runtime/core/rng.hpp"

namespace troupe::test {
namespace {

std::size_t lines_in(const std::filesystem::path& file) {
  const std::string text = text_of(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Waits until the run has recorded `steps` updates or has ended; then SIGKILL.
void kill_at(pid_t pid, const std::filesystem::path& run, std::size_t steps) {
  int status = 0;
  while (lines_in(run / "metrics.jsonl") < steps) {
    if (::waitpid(pid, &status, WNOHANG) == pid) return;
    ::sched_yield();
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
}

void expect_equal_runs(const TinyRun& files, const std::string& a, const std::string& b) {
  const auto first = metrics_of(files / a), second = metrics_of(files / b);
  EXPECT_EQ(first.size(), 10u);
  EXPECT_EQ(first, second);
  const auto hashes = hashes_of(files / a / "ckpt" / "step_000010");
  EXPECT_FALSE(hashes.empty());
  EXPECT_EQ(hashes, hashes_of(files / b / "ckpt" / "step_000010"));
  for (int step = 1; step <= 10; ++step) {
    char name[64];
    std::snprintf(name, sizeof name, "rollouts/step_%06d.jsonl", step);
    EXPECT_EQ(text_of(files / a / name), text_of(files / b / name)) << name;
    EXPECT_FALSE(text_of(files / a / name).empty()) << name;
  }
}

}  // namespace

TEST(Resume, KilledAtRandomStepsEqualsAnUnbrokenRun) {
  const TinyRun files;
  const ProgramRun whole = run_troupe(files.words("whole"));
  ASSERT_EQ(whole.status, 0) << whole.output;
  core::Rng rng(11);
  for (int round = 0; round < 3; ++round) {
    const std::string name = "killed" + std::to_string(round);
    std::size_t steps = 0;
    for (int kills = 0; kills < 2; ++kills) {
      steps += 1 + rng.next_below(4);
      const pid_t pid = start_troupe(files.words(name), files / (name + ".log"));
      kill_at(pid, files / name, steps);
    }
    const ProgramRun resumed = run_troupe(files.words(name));
    ASSERT_EQ(resumed.status, 0) << resumed.output << text_of(files / (name + ".log"));
    expect_equal_runs(files, "whole", name);
  }
}

TEST(Resume, EveryTokenIsSampledByTheWeightsOfItsUpdate) {
  const TinyRun files;
  ASSERT_EQ(run_troupe(files.words("run")).status, 0);
  std::size_t samples = 0;
  for (std::uint64_t step = 1; step <= 10; ++step) {
    char name[64];
    std::snprintf(name, sizeof name, "rollouts/step_%06d.jsonl", static_cast<int>(step));
    std::ifstream in(files / "run" / name);
    for (std::string line; std::getline(in, line); ++samples) {
      const auto sample = nlohmann::json::parse(line);
      EXPECT_EQ(sample["version_min"], step - 1);
      EXPECT_EQ(sample["version_max"], step - 1);
    }
  }
  EXPECT_EQ(samples, 10u * 4 * 4);
}

TEST(Resume, OneThreadGivesTheSameRunAsTwo) {
  const TinyRun files;
  ASSERT_EQ(run_troupe(files.words("two")).status, 0);
  auto words = files.words("one");
  words.insert(words.end(), {"--train.threads", "1"});
  ASSERT_EQ(run_troupe(words).status, 0);
  expect_equal_runs(files, "two", "one");
}

TEST(Resume, AStopSignalEndsAfterACheckpointWithStatus130) {
  const TinyRun files;
  ASSERT_EQ(run_troupe(files.words("whole")).status, 0);
  const pid_t pid = start_troupe(files.words("stopped"), files / "stopped.log");
  while (lines_in(files / "stopped" / "metrics.jsonl") < 2) ::sched_yield();
  ::kill(pid, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  if (WEXITSTATUS(status) != 0) {  // 0 when the last update came first
    EXPECT_EQ(WEXITSTATUS(status), 130) << text_of(files / "stopped.log");
  }
  ASSERT_EQ(run_troupe(files.words("stopped")).status, 0);
  expect_equal_runs(files, "whole", "stopped");
}

}  // namespace troupe::test
