// A run whose weights diverge and that goes back (train.on_divergence back): to which checkpoint,
// with which data, how often; and what its records are afterwards.
#include "company_support.hpp"
#include "supervised_support.hpp"

namespace troupe::test {
namespace {

std::size_t times_said(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// A model whose gradients overflow at the least that there is to learn: its logits are 0, and what
// its head reads is as large as a number can be.
std::string brittle_model(const std::string& from, const std::string& path) {
  auto params = model::load_model(from);
  EXPECT_TRUE(params);
  const model::ParamLayout& layout = (*params)->layout();
  float* const data = (*params)->data();
  const auto hidden = static_cast<std::size_t>((*params)->spec().hidden);
  for (std::size_t i = 0; i < hidden; ++i)
    data[layout.final_norm + i] = 1e32f;
  for (std::size_t i = 0; i < hidden * static_cast<std::size_t>((*params)->spec().vocab); ++i)
    data[layout.head + i] = 0;
  EXPECT_TRUE(model::save_model(**params, path, model::StorageDtype::kF32, from));
  return path;
}

// Steps as large as the gradients, and a return to a checkpoint at the first that is not finite.
const std::vector<std::string> kSteepSteps = {"--actor.optim",
                                              "sgd",
                                              "--actor.adam.lr",
                                              "1",
                                              "--actor.max_norm",
                                              "0",
                                              "--train.nonfinite_steps_max",
                                              "0",
                                              "--train.on_divergence",
                                              "back"};

// Rewards for the answers from the `first` that is scored to the `last`, and none for the others.
// 16 answers are an update.
std::vector<std::string> wild_rewards(const TinyRun& files, int first, int last) {
  std::ofstream(files / "wild.py")
      << "import os\n"
         "FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'scored')\n"
         "def wild(completions, **columns):\n"
         "    seen = int(open(FILE).read()) if os.path.exists(FILE) else 0\n"
         "    open(FILE, 'w').write(str(seen + len(completions)))\n"
         "    return [(1e9 if "
      << first << " <= seen + i < " << last
      << " else 0.0) * sum(x.isalpha() for x in c) for i, c in enumerate(completions)]\n";
  std::filesystem::remove(files / "scored");
  return kSteepSteps +
         std::vector<std::string>{"--actor.model_name_or_path",
                                  brittle_model(files.model(), (files / "brittle").string()),
                                  "--reward.rule",
                                  "",
                                  "--reward.rule_pattern",
                                  "",
                                  "--reward.python",
                                  (files / "wild.py").string(),
                                  "--reward.clip_range",
                                  "-1e9,1e9",
                                  "--algo.advantage.estimator",
                                  "dr_grpo",
                                  "--algo.kl.init_coef",
                                  "0",
                                  "--train.max_steps",
                                  "6",
                                  "--rollout.generators",
                                  "1",
                                  "--ckpt.max_num",
                                  "5"};
}

// Each update has one line, each slot one record; no place of the prompts was used twice, and all
// that led to a divergence are passed over.
void expect_true_records(const std::filesystem::path& run,
                         std::size_t updates,
                         std::uint64_t passed_over) {
  std::vector<std::uint64_t> steps;
  for (const auto& row : lines_of(run))
    if (row.contains("policy/lr")) steps.push_back(row["step"].get<std::uint64_t>());
  ASSERT_EQ(steps.size(), updates);
  for (std::size_t i = 0; i < updates; ++i)
    EXPECT_EQ(steps[i], i + 1);
  const auto checked = bench::check_ledger(run);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->updates, updates);
  EXPECT_EQ(checked->lost_groups + checked->lost_samples + checked->doubled(), 0u);
  EXPECT_EQ(checked->lost_prompts, passed_over);
}

}  // namespace

// Update 4 diverges twice, whatever its prompts are: then the run goes one checkpoint further.
TEST(Divergence, GoesOneCheckpointFurtherWhenTheLastOneLeadsThereAgain) {
  for (const std::string transport : {"caf", "loopback"}) {
    SCOPED_TRACE(transport);
    const TinyRun files;
    CompanyRun run(
        files, "run",
        wild_rewards(files, 48, 80) + std::vector<std::string>{"--cluster.transport", transport});
    ASSERT_EQ(run.wait(100), 0) << run.output();
    EXPECT_EQ(times_said(run.output(), "going back from update "), 2u) << run.output();
    for (const char* const part :
         {"going back from update 4 to update 3: ", "/ckpt/step_000003, return 1 of at most 3",
          "going back from update 4 to update 2: ", "/ckpt/step_000002, return 2 of at most 3"})
      EXPECT_EQ(times_said(run.log(), part), 1u) << part << "\n" << run.output();
    EXPECT_TRUE(std::filesystem::exists(run.folder() / "ckpt/diverged_000003/manifest.json"));
    expect_true_records(run.folder(), 6, 12);  // of updates 4, 4 again and 3
  }
}

TEST(Divergence, EndsWithSixWhenNoReturnHelpsAndNamesThem) {
  struct Case {
    const char* max_num;
    const char* said;
    const char* left;
  };
  for (const Case& one :
       {Case{"5",
             "step_000003, step_000002 and step_000001, with other data each time, and did not "
             "get past update 4; so many returns are the most: 3",
             "step_000001"},
        Case{"2",
             "step_000003 and step_000002, with other data each time, and did not get past "
             "update 4; no earlier checkpoint is kept",
             "step_000002"}}) {
    SCOPED_TRACE(one.max_num);
    const TinyRun files;
    CompanyRun run(files, "run",
                   wild_rewards(files, 48, 1 << 30) +
                       std::vector<std::string>{"--cluster.transport", "loopback", "--ckpt.max_num",
                                                one.max_num});
    ASSERT_EQ(run.wait(100), 6) << run.output();
    EXPECT_NE(run.output().find(std::string("the run went back to ") + one.said), std::string::npos)
        << run.output();
    std::set<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(run.folder() / "ckpt"))
      if (const auto name = entry.path().filename().string(); name.starts_with("step_"))
        left.insert(name);
    EXPECT_EQ(left, std::set<std::string>{one.left}) << "the same command goes on there";
  }
}

TEST(Divergence, GoesBackToTheModelWhereNoCheckpointWasMade) {
  const TinyRun files;
  CompanyRun run(
      files, "run",
      wild_rewards(files, 0, 16) + std::vector<std::string>{"--cluster.transport", "loopback"});
  ASSERT_EQ(run.wait(100), 0) << run.output();
  EXPECT_EQ(times_said(run.log(),
                       "going back from update 1 to update 0: what the run began with, "
                       "return 1 of at most 3, then with other data (policy/0: "),
            1u)
      << run.output();
  expect_true_records(run.folder(), 6, 4);
}

// One pair of twelve has something to learn from, at which the weights overflow: whatever the next
// step's rows are, their loss is not finite. The run goes back to before that pair and takes other
// rows; so does one that is stopped meanwhile.
TEST(Divergence, OfAnswersPassesOverTheRowsThatLedThere) {
  const TinySupervised files;
  const std::string model = brittle_model(files.model(), files.file("brittle"));
  for (const std::string kind : {"wild", "calm"}) {
    std::ofstream pairs(files.file(kind + ".jsonl"));
    for (int i = 0; i < 12; ++i) {
      pairs << nlohmann::json({{"input", std::to_string(i) + "+1="},
                               {"chosen", std::to_string(i + 1)},
                               {"rejected", "fish"},
                               {"margin", i == 7 && kind == "wild" ? 1e300 : -1e300}})
            << '\n';
    }
  }
  const auto words = [&](const std::string& run) {
    return std::vector<std::string>{"train",
                                    "rm",
                                    files.file("tiny.yaml"),
                                    "--actor.model_name_or_path",
                                    model,
                                    "--data.dataset",
                                    files.file("wild.jsonl"),
                                    "--eval.dataset",
                                    files.file("calm.jsonl"),
                                    "--eval.steps",
                                    "0",
                                    "--data.prompt_key",
                                    "input",
                                    "--data.margin_key",
                                    "margin",
                                    "--ckpt.max_num",
                                    "3",
                                    "--train.max_steps",
                                    "5",
                                    "--run.path",
                                    files.file(run)} +
           kSteepSteps;
  };
  for (const std::string transport : {"loopback", "caf"}) {
    SCOPED_TRACE(transport);
    const Ended whole =
        troupe_ends(words(transport) + std::vector<std::string>{"--cluster.transport", transport},
                    files / (transport + ".out"), 100);
    ASSERT_EQ(whole.status, 0) << whole.text;
    EXPECT_EQ(times_said(whole.text, "going back from step "), 2u) << whole.text;
    for (const char* const part :
         {"going back from step 4 to step 3: ", "going back from step 4 to step 2: ",
          "/ckpt/step_000002, return 2 of at most 3, then with other data (policy/0: "})
      EXPECT_EQ(times_said(whole.text, part), 1u) << part << "\n" << whole.text;
    EXPECT_EQ(steps_in(files / transport), 5u) << "each step has one line";
    const auto state =
        nlohmann::json::parse(text_of(files / transport / "ckpt/step_000005/rows_state.json"));
    EXPECT_EQ(state["passed_over"], 12) << "those of step 4, then those of steps 3 and 4";
  }
  EXPECT_EQ(lines_of(files / "caf"), lines_of(files / "loopback"));
  CompanyRun stopped(files / "stopped", words("stopped"));
  within(60, [&] { return steps_in(files / "stopped") >= 3 || stopped.wait(0); });
  stopped.signal(SIGINT);
  stopped.wait();
  const Ended resumed = troupe_ends(words("stopped"), files / "resumed.out", 100);
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(lines_of(files / "stopped"), lines_of(files / "loopback"));
}

}  // namespace troupe::test
