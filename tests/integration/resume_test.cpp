// kill -9 at any step and resume: metrics, rollouts and the hashes of the weights after ten updates
// equal those of a run that was never interrupted.
#include "company_support.hpp"
#include "runtime/core/rng.hpp"

#include <chrono>

namespace troupe::test {
namespace {

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

// A Python reward that gives what no test depends on, and fails from its 13th group on for as long
// as the file `broken` is there.
void use_python_reward(const TinyRun& files) {
  std::ofstream(files / "score.py")
      << "import os\n"
         "here = os.path.dirname(os.path.abspath(__file__))\n"
         "def reward_func(queries, prompts, labels):\n"
         "    broken = os.path.join(here, 'broken')\n"
         "    if os.path.exists(broken):\n"
         "        open(broken, 'a').write('x')\n"
         "        if os.path.getsize(broken) > 12: raise RuntimeError('the judge is out')\n"
         "    return [float(sum(map(ord, q)) % 3) for q in queries]\n";
  std::string config = text_of(files / "tiny.yaml");
  const std::string rule = "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}";
  ASSERT_NE(config.find(rule), std::string::npos);
  config.replace(config.find(rule), rule.size(),
                 "reward: {python: " + (files / "score.py").string() + "}");
  std::ofstream(files / "tiny.yaml") << config;
}

// The command to its end, with what it says on both of its outputs.
Ended both_of(const TinyRun& files, const std::vector<std::string>& words) {
  return troupe_ends(words, files / "both.log", 60);
}

bool says(const Ended& run, const std::string& part) {
  return run.text.find(part) != std::string::npos;
}

// One byte of the file's last third is another.
void change_a_byte(const std::filesystem::path& file) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(std::filesystem::file_size(file) - 9);
  bytes.seekg(at);
  const char was = static_cast<char>(bytes.get());
  bytes.seekp(at);
  bytes.put(static_cast<char>(was ^ 1));
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
      kill_once(start_troupe(files.words(name), files / (name + ".log")),
                [&] { return lines_in(files / name / "metrics.jsonl") >= steps; });
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

// As long as two updates are, so every second update is saved.
TEST(Resume, ALongExperienceLogIsCoveredByACheckpoint) {
  const TinyRun files;
  auto words = files.words("run");
  words.insert(words.end(), {"--ckpt.save_steps", "0", "--ckpt.save_minutes", "0", "--ckpt.max_num",
                             "10", "--run.keep_experience", "true"});
  ASSERT_EQ(run_troupe(words).status, 0);
  std::uintmax_t least = UINTMAX_MAX, most = 0;
  for (int step = 1; step <= 10; ++step) {
    const auto file = files / "run" / "experience" / (checkpoint_name(step) + ".log");
    least = std::min(least, std::filesystem::file_size(file));
    most = std::max(most, std::filesystem::file_size(file));
    EXPECT_EQ(std::filesystem::exists(files / "run" / "ckpt" / checkpoint_name(step)), step == 10);
  }
  ASSERT_LT(most, 2 * least);
  words = files.words("bounded");
  words.insert(words.end(), {"--ckpt.save_steps", "0", "--ckpt.save_minutes", "0", "--ckpt.max_num",
                             "10", "--ckpt.log_bytes_max", std::to_string(most + 1)});
  ASSERT_EQ(run_troupe(words).status, 0);
  for (int step = 1; step <= 10; ++step) {
    EXPECT_EQ(std::filesystem::exists(files / "bounded" / "ckpt" / checkpoint_name(step)),
              step % 2 == 0)
        << step;
  }
}

TEST(Resume, AStopSignalEndsAfterACheckpointWithStatus130) {
  const TinyRun files;
  ASSERT_EQ(run_troupe(files.words("whole")).status, 0);
  Background run = start_troupe(files.words("stopped"), files / "stopped.log");
  while (lines_in(files / "stopped" / "metrics.jsonl") < 2)
    ::sched_yield();
  run.signal(SIGTERM);
  const auto status = run.wait(60);
  if (status != 0) {  // 0 when the last update came first
    EXPECT_EQ(status, 130) << run.text();
  }
  ASSERT_EQ(run_troupe(files.words("stopped")).status, 0);
  expect_equal_runs(files, "whole", "stopped");
}

// Whatever ends a run: what was learned is saved, and goes on with the bits of a calm run. And what
// it goes on with is what it began with.
TEST(Resume, AFailedRunIsSavedAndGoesOnOnlyWithWhatItBeganWith) {
  const TinyRun files;
  use_python_reward(files);
  const std::vector<std::string> alone = {"--cluster.transport", "loopback"};
  const std::vector<std::string> rarely = {"--ckpt.save_steps", "0"};
  const Ended whole = both_of(files, files.words("whole") + alone);
  ASSERT_EQ(whole.status, 0) << whole.text;

  // The reward fails in update 4.
  std::ofstream(files / "broken") << "";
  const Ended failed = both_of(files, files.words("run") + rarely + alone);
  EXPECT_EQ(failed.status, 4) << failed.text;
  EXPECT_TRUE(says(failed, "update 4, prompt")) << failed.text;
  EXPECT_TRUE(says(failed, "update 3 is saved in " + (files / "run/ckpt/step_000003").string()))
      << failed.text;
  ASSERT_EQ(metrics_of(files / "run").size(), 3u);
  std::filesystem::remove(files / "broken");

  const std::filesystem::path data = files / "train.jsonl";
  const std::filesystem::path weights = std::filesystem::path(files.model()) / "model.safetensors";
  const std::string rows = text_of(data);
  const auto resumed = [&] { return both_of(files, files.words("run") + rarely + alone); };
  const auto expect_refused = [&](const std::string& what) {
    const Ended refused = resumed();
    EXPECT_EQ(refused.status, 2) << refused.text;
    EXPECT_TRUE(says(refused, what)) << refused.text;
    EXPECT_TRUE(says(refused, "... and is ")) << refused.text;
    EXPECT_TRUE(says(refused, "/run/ckpt/step_000003 --run.path ")) << refused.text;
    EXPECT_EQ(metrics_of(files / "run").size(), 3u) << "nothing was cut off";
  };
  std::string other = rows;
  other.replace(other.find('+'), 1, "-");
  std::ofstream(data) << other;
  expect_refused("data.prompt_dataset (" + data.string() + ")");
  std::ofstream(data) << rows;
  change_a_byte(weights);
  expect_refused("the weights of actor.model_name_or_path (" + files.model() + ")");
  change_a_byte(weights);

  std::ofstream(files / "score.py", std::ios::app) << "# mended\n";
  const Ended again = resumed();
  ASSERT_EQ(again.status, 0) << again.text;
  EXPECT_TRUE(says(again, "changed since the checkpoint: the SHA-256 of reward.python"))
      << again.text;
  expect_equal_runs(files, "whole", "run");

  // A finished run says so, starts nobody, and tells how a longer one comes about.
  const Ended finished = both_of(files, files.words("run") + rarely);
  EXPECT_EQ(finished.status, 0) << finished.text;
  EXPECT_TRUE(says(finished, "already finished: 10 of 10 updates")) << finished.text;
  EXPECT_FALSE(says(finished, "join with")) << finished.text;
  const Ended longer = both_of(
      files, files.words("run") + alone + std::vector<std::string>{"--train.max_steps", "12"});
  EXPECT_EQ(longer.status, 2) << longer.text;
  const std::string way = "--resume " + (files / "run/ckpt/step_000010").string() + " --run.path " +
                          (files / "run-1").string();
  EXPECT_TRUE(says(longer, "the same command with " + way)) << longer.text;
  EXPECT_FALSE(says(longer, "--resume off")) << longer.text;
}

TEST(Resume, AFlatLearningRateLetsARunGrow) {
  const TinyRun files;
  const auto flat = [&](const std::string& run, const std::string& steps) {
    return both_of(files, files.words(run) +
                              std::vector<std::string>{
                                  "--cluster.transport", "loopback", "--actor.lr_warmup_ratio", "0",
                                  "--actor.min_lr_ratio", "1", "--train.max_steps", steps});
  };
  ASSERT_EQ(flat("whole", "10").status, 0);
  ASSERT_EQ(flat("grown", "4").status, 0);
  const Ended grown = flat("grown", "10");
  ASSERT_EQ(grown.status, 0) << grown.text;
  expect_equal_runs(files, "whole", "grown");
}

// Lanes say in which order gradients are added, so they belong to a run; a branch may have others.
TEST(Resume, OtherLanesAreABranch) {
  const TinyRun files;
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    return both_of(files, files.words(name) +
                              std::vector<std::string>{"--cluster.transport", "loopback",
                                                       "--actor.lr_warmup_ratio", "0",
                                                       "--actor.min_lr_ratio", "1"} +
                              more);
  };
  ASSERT_EQ(run("whole", {"--train.lanes", "3"}).status, 0);
  ASSERT_EQ(run("run", {"--train.lanes", "3", "--train.max_steps", "4"}).status, 0);
  const Ended other = run("run", {"--train.lanes", "2"});
  EXPECT_EQ(other.status, 2) << other.text;
  EXPECT_TRUE(says(other, "train.lanes was 3 and is 2")) << other.text;
  EXPECT_TRUE(says(other, "start a branch: the same command with --resume ")) << other.text;
  ASSERT_EQ(run("run", {"--train.lanes", "3"}).status, 0);
  expect_equal_runs(files, "whole", "run");
  const std::string last = (files / "run/ckpt/step_000010").string();
  const Ended branch =
      run("branch", {"--train.lanes", "999", "--train.max_steps", "11", "--resume", last});
  EXPECT_EQ(branch.status, 0) << branch.text;
  EXPECT_TRUE(says(branch, "changed since the checkpoint: train.lanes was 3 and is 999"))
      << branch.text;
  EXPECT_TRUE(says(branch, "train.lanes is 999, but an optimiser step has only")) << branch.text;
  const Ended none = run("none", {"--train.lanes", "0"});
  EXPECT_EQ(none.status, 2) << none.text;
  EXPECT_TRUE(says(none, "train.lanes")) << none.text;
}

TEST(Resume, AFailedStartLeavesAFolderForTheNext) {
  const TinyRun files;
  const std::filesystem::path weights = std::filesystem::path(files.model()) / "model.safetensors";
  std::filesystem::rename(weights, files / "aside");
  const std::vector<std::string> short_run = {"--train.max_steps", "1", "--cluster.transport",
                                              "loopback"};
  const Ended without = both_of(files, files.words("run") + short_run);
  EXPECT_EQ(without.status, 2) << without.text;
  EXPECT_FALSE(std::filesystem::exists(files / "run"));
  std::filesystem::rename(files / "aside", weights);
  // What a start that failed later leaves.
  std::filesystem::create_directories(files / "run/ckpt");
  std::ofstream(files / "run/resolved_config.yaml") << "train: {seed: 1}\n";
  const Ended next = both_of(files, files.words("run") + short_run);
  EXPECT_EQ(next.status, 0) << next.text;
}

// What is written to a folder that is gone would be lost without a word.
TEST(Resume, AFolderThatIsRenamedEndsTheRunWithItsCheckpointBesideIt) {
  const TinyRun files;
  const std::vector<std::string> alone = {"--cluster.transport", "loopback", "--ckpt.save_steps",
                                          "0"};
  const std::vector<std::string> endless = {"--train.max_steps", "100000"};
  Background run = start_troupe(files.words("run") + alone + endless, files / "run.log");
  while (lines_in(files / "run" / "metrics.jsonl") < 3 && run.running())
    ::sched_yield();
  std::filesystem::rename(files / "run", files / "moved");
  const auto status = run.wait(60);
  const std::string output = run.text();
  EXPECT_EQ(status, 3) << output;
  EXPECT_NE(output.find("was removed or renamed"), std::string::npos) << output;
  EXPECT_FALSE(std::filesystem::exists(files / "run")) << "nothing is made anew";
  const std::size_t done = lines_in(files / "moved" / "metrics.jsonl");
  char step[32];
  std::snprintf(step, sizeof step, "step_%06zu", done);
  const std::filesystem::path saved = files / "run.rescued-1" / "ckpt" / step;
  EXPECT_NE(output.find("update " + std::to_string(done) + " is saved in " + saved.string()),
            std::string::npos)
      << output;
  EXPECT_FALSE(hashes_of(saved).empty());
}

}  // namespace troupe::test
