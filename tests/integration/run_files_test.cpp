// The files of a run's folder: each is known; what somebody removes, cuts or replaces while the run
// goes on, or before it is resumed, is made again, or it is told what is lost.
#include "company_support.hpp"
#include "runtime/store/kept_files.hpp"
#include "runtime/store/ledger.hpp"
#include "runtime/store/run_folder.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <functional>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const Words kAlone = {"--cluster.transport", "loopback"};
const Words kManySteps = {"--train.max_steps", "100000"};
const Words kSeldom = {"--ckpt.save_steps", "0", "--ckpt.save_minutes", "1000"};

Ended run_ends(const TinyRun& files, const Words& words) {
  return troupe_ends(words, files / "both.log", 60);
}

bool tells(const Ended& run, const std::string& part) {
  return run.text.find(part) != std::string::npos;
}

// The file of the highest step in a folder.
fs::path newest_in(const fs::path& folder) {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool of_step = entry.path().filename().string().starts_with("step_");
    if (of_step && entry.path() > newest) newest = entry.path();
  }
  return newest;
}

std::size_t files_in(const fs::path& folder) {
  std::error_code none;
  std::size_t count = 0;
  for (fs::directory_iterator it(folder, none), end; !none && it != end; it.increment(none))
    ++count;
  return count;
}

// However much comes meanwhile.
void remove_folder(const fs::path& folder) {
  std::error_code error;
  do {
    error.clear();
    fs::remove_all(folder, error);
  } while (error);
}

void replace(const fs::path& file, const std::string& text) {
  std::ofstream(file.string() + ".other") << text;
  fs::rename(file.string() + ".other", file);
}

void kill_after(const TinyRun& files,
                const std::string& name,
                const Words& words,
                std::size_t steps) {
  kill_once(start_troupe(words, files / (name + ".log")),
            [&] { return lines_in(files / name / "metrics.jsonl") >= steps; });
}

mode_t mode_of(const fs::path& path) {
  struct stat facts {};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 0777;
}

// A Python reward that imports a module from beside it and prints `printed`.
void use_reward(const TinyRun& files, const std::string& printed) {
  std::ofstream(files / "helper.py")
      << "def score(text):\n    return float(sum(map(ord, text)) % 3)\n";
  std::ofstream(files / "score.py")
      << "import sys\nimport helper\n"
         "def reward_func(queries, prompts, labels):\n    "
      << printed << "\n    return [helper.score(q) for q in queries]\n";
  std::string config = text_of(files / "tiny.yaml");
  const std::string rule = "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}";
  ASSERT_NE(config.find(rule), std::string::npos);
  config.replace(config.find(rule), rule.size(),
                 "reward: {python: " + (files / "score.py").string() + "}");
  std::ofstream(files / "tiny.yaml") << config;
}

}  // namespace

TEST(RunFiles, EveryOneIsInTheListAndPrivate) {
  const TinyRun files;
  const Words evaluated = {"--eval.dataset",
                           (files / "train.jsonl").string(),
                           "--eval.steps",
                           "4",
                           "--ckpt.best_metric_key",
                           "eval/reward",
                           "--log.trace",
                           "true"};
  const Ended alone = run_ends(files, files.words("alone") + kAlone + evaluated);
  ASSERT_EQ(alone.status, 0) << alone.text;
  const Ended company = run_ends(
      files, files.words("company") + Words{"--run.keep_experience", "true", "--run.group_read",
                                            "true", "--train.max_steps", "2"});
  ASSERT_EQ(company.status, 0) << company.text;
  for (const auto& [name, folder_mode, file_mode] :
       {std::tuple<std::string, mode_t, mode_t>{"alone", 0700, 0600}, {"company", 0750, 0640}}) {
    EXPECT_EQ(mode_of(files / name), folder_mode);
    std::size_t seen = 0;
    for (const auto& entry : fs::recursive_directory_iterator(files / name)) {
      const std::string path = entry.path().lexically_relative(files / name).generic_string();
      const mode_t mode = mode_of(entry.path());
      if (entry.is_symlink()) continue;
      EXPECT_EQ(mode & ~(entry.is_directory() ? folder_mode : file_mode), 0u) << path;
      if (entry.is_directory()) continue;
      EXPECT_NE(store::row_of(path), nullptr) << path;
      ++seen;
    }
    EXPECT_GT(seen, 20u) << name;
  }
}

// One run, which loses each of its files in turn.
TEST(RunFiles, WhatIsLostWhileTheRunGoesOnIsMadeAgainOrTold) {
  const TinyRun files;
  const fs::path run = files / "run";
  const fs::path metrics = run / "metrics.jsonl", ledger = run / "ledger.log";
  Background program = start_troupe(
      files.words("run") + kAlone + kManySteps + kSeldom +
          Words{"--eval.dataset", (files / "train.jsonl").string(), "--eval.steps", "100000"},
      files / "run.log");
  ASSERT_TRUE(within(60, [&] { return lines_in(metrics) >= 4 || !program.running(); }));
  const std::string config = text_of(run / "resolved_config.yaml");
  const std::string identity = text_of(run / "generation.json");
  const std::string contents = text_of(run / "experience/contents.json");
  ASSERT_FALSE(contents.empty());
  const std::string again = " while the run went on; it is made again";
  const struct {
    std::string what;
    std::function<void()> lose;
  } kLosses[] = {
      {"metrics.jsonl was removed or renamed" + again + " with all of its lines",
       [&] { fs::remove(metrics); }},
      {"metrics.jsonl was cut" + again + " with all of its lines",
       [&] { fs::resize_file(metrics, 100); }},
      {"metrics.jsonl was replaced" + again + " with all of its lines",
       [&] { replace(metrics, "{}\n"); }},
      {"ledger.log was removed or renamed" + again + " with all of its lines",
       [&] { fs::rename(ledger, run / "ledger.log.1"); }},
      {"ledger.log was cut" + again + " with all of its lines",
       [&] { fs::resize_file(ledger, 100); }},
      {"ledger.log was replaced" + again + " with all of its lines", [&] { replace(ledger, ""); }},
      {"resolved_config.yaml was removed" + again,
       [&] { fs::remove(run / "resolved_config.yaml"); }},
      {"generation.json was cut" + again, [&] { fs::resize_file(run / "generation.json", 3); }},
      {"experience/contents.json was replaced" + again,
       [&] { replace(run / "experience/contents.json", "{}"); }},
      {"troupe.log was removed while the run went on; a new one begins",
       [&] { fs::rename(run / "troupe.log", run / "troupe.log.1"); }},
      {"the event file of TensorBoard was removed while the run went on; a new one begins",
       [&] { remove_folder(run / "tensorboard"); }},
      {"the rollouts of updates 1 to 2 were removed while the run went on",
       [&] {
         fs::remove(run / "rollouts/step_000001.jsonl");
         fs::remove(run / "rollouts/step_000002.jsonl");
       }},
      {"the evaluation of update 0 was cut while the run went on",
       [&] { fs::resize_file(run / "eval/step_000000.jsonl", 5); }},
      {" while the run went on; a checkpoint is made, so that nothing depends on it",
       [&] { fs::resize_file(run / "experience/step_000001.log", 9); }},
      {"the newest checkpoint, that of update ", [&] { remove_folder(newest_in(run / "ckpt")); }},
      {"the experience log of update",
       [&] {
         EXPECT_TRUE(within(60, [&] { return files_in(run / "experience") >= 3; }));
         remove_folder(run / "experience");
       }},
  };
  for (const auto& loss : kLosses) {
    const std::size_t before = times_in(program.text(), loss.what);
    const std::size_t checkpoints = times_in(program.text(), "checkpoint " + run.string());
    const bool saves = &loss >= std::end(kLosses) - 3;
    loss.lose();
    ASSERT_TRUE(within(60, [&] {
      const std::string text = program.text();
      return (times_in(text, loss.what) > before &&
              (!saves || times_in(text, "checkpoint " + run.string()) > checkpoints)) ||
             !program.running();
    }));
    ASSERT_TRUE(program.running()) << loss.what << program.text();
  }
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(60), 130) << program.text();
  EXPECT_EQ(text_of(run / "resolved_config.yaml"), config);
  EXPECT_EQ(text_of(run / "generation.json"), identity);
  EXPECT_EQ(text_of(run / "experience/contents.json"), contents);
  EXPECT_NE(text_of(run / "troupe.log").find("a checkpoint is made"), std::string::npos);
  // All updates are there, once and in order.
  const auto rows = metrics_of(run);
  const std::uint64_t done = rows.rbegin()->first;
  EXPECT_EQ(rows.size(), done + 1) << "step 0 is the evaluation";
  const auto records = store::read_ledger(ledger);
  ASSERT_TRUE(records);
  EXPECT_EQ(records->size(), 4 * done);
  for (std::size_t i = 0; i < records->size(); ++i)
    EXPECT_EQ((*records)[i].step, i / 4 + 1);
}

// With what was there before, the run has the bits of one that nobody has touched.
TEST(RunFiles, WhatIsMissingBeforeAResumeIsToldByUpdates) {
  const TinyRun files;
  const Words words = files.words("run") + kAlone;
  const fs::path run = files / "run";
  kill_after(files, "run", words + Words{"--ckpt.save_steps", "2"}, 7);
  const std::uint64_t saved = *store::step_of(newest_in(run / "ckpt").filename().string());
  ASSERT_GE(saved, 4u);
  // The lines of the last saved update lose their end.
  std::string text = text_of(run / "metrics.jsonl");
  std::string until;
  for (std::uint64_t step = 1; step <= saved; ++step)
    until += text.substr(until.size(), text.find('\n', until.size()) + 1 - until.size());
  fs::resize_file(run / "metrics.jsonl", until.size() - 20);
  text = text_of(run / "ledger.log");
  std::size_t bytes = 0;
  for (std::uint64_t record = 0; record < 4 * saved; ++record)
    bytes = text.find('\n', bytes) + 1;
  fs::resize_file(run / "ledger.log", bytes - 7);
  fs::remove(run / "rollouts/step_000001.jsonl");
  const Ended resumed = run_ends(files, words);
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  const std::string last = "warning: update " + std::to_string(saved) + " is missing from ";
  EXPECT_TRUE(tells(resumed, last + "metrics.jsonl")) << resumed.text;
  EXPECT_TRUE(tells(resumed, last + "ledger.log")) << resumed.text;
  EXPECT_TRUE(tells(resumed, "warning: update 1 is missing from rollouts/")) << resumed.text;
  EXPECT_EQ(metrics_of(run).size(), 9u);
  EXPECT_EQ(metrics_of(run).count(saved), 0u);
  // A branch begins where it begins: nothing before that is missing.
  const Words branch = files.words("branch") + kAlone +
                       Words{"--resume",          (run / "ckpt/step_000010").string(),
                             "--train.max_steps", "12",
                             "--ckpt.save_steps", "1"};
  const Ended begun = run_ends(files, branch);
  ASSERT_EQ(begun.status, 0) << begun.text;
  EXPECT_FALSE(tells(begun, "warning: update")) << begun.text;
  const Ended whole =
      run_ends(files, files.words("branch") + kAlone + Words{"--train.max_steps", "12"});
  EXPECT_EQ(whole.status, 0) << whole.text;
  EXPECT_FALSE(tells(whole, "warning: update")) << whole.text;
  EXPECT_TRUE(tells(whole, "already finished: 12 of 12 updates")) << whole.text;
}

// However the log is damaged: what cannot be used is said, and sampled again with the same bits.
TEST(RunFiles, ADamagedExperienceLogIsToldAndSampledAgain) {
  const TinyRun files;
  const Ended calm = run_ends(files, files.words("calm") + kAlone + kSeldom);
  ASSERT_EQ(calm.status, 0) << calm.text;
  const auto log = [&](const std::string& name, int step) {
    return files / name / "experience" / (checkpoint_name(step) + ".log");
  };
  const struct {
    std::string name, told;
    std::function<void(const std::string&)> damage;
  } kDamages[] = {
      {"bit", "step_000001.log is damaged or incomplete at byte ",
       [&](const std::string& name) {
         std::string text = text_of(log(name, 1));
         text[300] = static_cast<char>(text[300] ^ 1);
         std::ofstream(log(name, 1)) << text;
       }},
      {"swapped", "step_000002.log has records of another update",
       [&](const std::string& name) {
         fs::rename(log(name, 2), files / "aside");
         fs::rename(log(name, 3), log(name, 2));
         fs::rename(files / "aside", log(name, 3));
       }},
      {"missing", "step_000002.log is missing",
       [&](const std::string& name) { fs::remove(log(name, 2)); }},
  };
  for (const auto& one : kDamages) {
    const Words words = files.words(one.name) + kAlone + kSeldom;
    kill_after(files, one.name, words, 5);
    one.damage(one.name);
    const Ended resumed = run_ends(files, words);
    ASSERT_EQ(resumed.status, 0) << resumed.text;
    EXPECT_TRUE(tells(resumed, one.told)) << resumed.text;
    EXPECT_TRUE(tells(resumed, one.name == "bit" ? ": groups of updates 1 to "
                                                 : ": groups of updates 2 to ") ||
                tells(resumed, ": groups of updates 3 to "))
        << resumed.text;
    EXPECT_TRUE(tells(resumed, " that were in the experience log are sampled again"))
        << resumed.text;
    expect_same_bits(files / "calm", files / one.name, 10);
    expect_clean_ledger(files / one.name);
  }
}

TEST(RunFiles, AFileInPlaceOfTheCheckpointsEndsTheRunWithTheCause) {
  const TinyRun files;
  Background run =
      start_troupe(files.words("run") + kAlone + kManySteps + kSeldom, files / "run.log");
  ASSERT_TRUE(within(60, [&] { return lines_in(files / "run/metrics.jsonl") >= 2; })) << run.text();
  fs::remove_all(files / "run/ckpt");
  std::ofstream(files / "run/ckpt") << "";
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(60), 3) << run.text();
  EXPECT_TRUE(run.says((files / "run/ckpt").string())) << run.text();
  EXPECT_TRUE(run.says("Not a directory")) << run.text();
}

// What a run learns from, beyond weights and training data.
TEST(RunFiles, ChangedContentsAreRefusedOrTold) {
  const TinyRun files;
  use_reward(files, "pass");
  fs::copy(files / "train.jsonl", files / "held.jsonl");
  fs::copy(files / "train.jsonl", files / "other.jsonl");
  const Words words =
      files.words("run") + kAlone +
      Words{"--eval.dataset",    (files / "held.jsonl").string(),
            "--eval.steps",      "100",
            "--eval.sets",       "more: {dataset: " + (files / "other.jsonl").string() + "}",
            "--ckpt.save_steps", "2"};
  kill_after(files, "run", words, 5);
  for (const std::string set : {"held.jsonl", "other.jsonl"}) {
    const std::string rows = text_of(files / set);
    std::string changed = rows;
    changed.replace(changed.find('+'), 1, "-");
    std::ofstream(files / set) << changed;
    const Ended refused = run_ends(files, words);
    EXPECT_EQ(refused.status, 2) << refused.text;
    EXPECT_TRUE(tells(refused, "was made with other contents: the SHA-256 of eval."))
        << refused.text;
    EXPECT_TRUE(tells(refused, (files / set).string())) << refused.text;
    std::ofstream(files / set) << rows;
  }
  std::ofstream(files / "helper.py", std::ios::app) << "# mended\n";
  const Ended told = run_ends(files, words);
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_TRUE(tells(told, "changed since the checkpoint: the SHA-256 of the module " +
                              (files / "helper.py").string() + " of reward "))
      << told.text;
  EXPECT_FALSE(tells(told, "reward.python")) << "the file itself is as it was";
}

// What a run's own processes print: no call fails, no line moves a cursor, no file grows for ever.
TEST(RunFiles, WhatARewardPrintsIsBounded) {
  const TinyRun files;
  use_reward(files,
             "print('x' * 20_000_000); sys.stderr.write('\\x1b]0;title\\x07here\\n' * 20_000)");
  const Words words =
      files.words("run") + Words{"--train.max_steps", "3", "--ckpt.save_steps", "1"};
  const fs::path log = files / "run/nodes/reward.log";
  // As an earlier version left it.
  fs::create_directories(log.parent_path());
  std::ofstream(log) << "\n";
  fs::resize_file(log, (std::uintmax_t{1} << 30) + 1);
  const Ended run = run_ends(files, words);
  ASSERT_EQ(run.status, 0) << run.text;
  EXPECT_FALSE(tells(run, "replaced")) << run.text;
  EXPECT_EQ(fs::file_size(log.string() + ".1"), (std::uintmax_t{1} << 30) + 1) << "the long one";
  const std::string text = text_of(log);
  EXPECT_LT(text.size(), 16u << 20);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("]0;titlehere\n"), std::string::npos);
  EXPECT_NE(text.find(" lines were dropped here: too many at a time\n"), std::string::npos);
  EXPECT_NE(text.find("started reward/0\n"), std::string::npos) << "it says more than its reward";
}

TEST(RunFiles, AFileThatIsTooLargeHasItsText) {
  const TinyRun files;
  const auto limited = [&](const std::string& name, const Words& more) {
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{40'000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    auto started = start_troupe(files.words(name) + more, files / (name + ".out"));
    ::setrlimit(RLIMIT_FSIZE, &before);
    const auto status = started.wait(60);
    return Ended{status.value_or(-1), started.text()};
  };
  const Ended alone = limited("alone", kAlone);
  EXPECT_EQ(alone.status, 3) << alone.text;
  EXPECT_TRUE(tells(alone, "`ulimit -f`")) << alone.text;
  // The policy's process is not killed for the memory that it shares.
  const Ended company = limited("company", {});
  EXPECT_EQ(company.status, 3) << company.text;
  EXPECT_TRUE(tells(company, "File too large")) << company.text;
  EXPECT_FALSE(tells(company, "signal 25")) << company.text;
}

// A run whose learning rate ends with it says at once how a longer one comes about, and never names
// a folder from which no run goes on.
TEST(RunFiles, AFinishedRunNamesTheBranchThatGoesOn) {
  const TinyRun files;
  const Words words = files.words("run") + kAlone;
  ASSERT_EQ(run_ends(files, words + Words{"--train.max_steps", "2"}).status, 0);
  fs::copy(files / "run/ckpt/step_000002", files / "run/ckpt/step_001000",
           fs::copy_options::recursive);
  const std::string flags = "--resume " + (files / "run/ckpt/step_000002").string() +
                            " --run.path " + (files / "run-1").string();
  const Ended finished = run_ends(files, words + Words{"--train.max_steps", "2"});
  EXPECT_EQ(finished.status, 0) << finished.text;
  EXPECT_TRUE(tells(finished, "already finished: 2 of 2 updates")) << finished.text;
  EXPECT_TRUE(tells(finished, "the same command with a larger --train.max_steps and " + flags +
                                  " goes on from there"))
      << finished.text;
  const Ended longer = run_ends(files, words + Words{"--train.max_steps", "4"});
  EXPECT_EQ(longer.status, 2) << longer.text;
  EXPECT_TRUE(tells(longer, flags)) << longer.text;
  const Ended branch = run_ends(files, files.words("run-1") + kAlone +
                                           Words{"--train.max_steps", "4", "--resume",
                                                 (files / "run/ckpt/step_000002").string()});
  EXPECT_EQ(branch.status, 0) << branch.text;
}

}  // namespace troupe::test
