// Whole runs on a model with experts: the company is exact to the bit, several processes that are
// killed and started again give the run of one process, supervised training does not depend on
// threads, and a balance without experts is refused.
#include "processes.hpp"

namespace troupe::test {
namespace {

const std::vector<std::string> kBalance = {"--train.max_steps", "3", "--actor.aux_loss_coef",
                                           "0.01"};

// The same without `async/generators`, which says how many there were.
std::map<std::uint64_t, nlohmann::json> metric_rows(const std::filesystem::path& run) {
  auto rows = metrics_of(run);
  for (auto& [step, row] : rows)
    row.erase("async/generators");
  return rows;
}

}  // namespace

TEST(MoeRun, IsExactAndEqualInOneProcessAndInSeveralThatWereKilled) {
  const TinyRun files(tiny_moe());
  const ProgramRun one =
      run_troupe(with(files.words("one"), with(kBalance, {"--cluster.transport", "loopback"})));
  ASSERT_EQ(one.status, 0) << one.output;
  const auto rows = metric_rows(files / "one");
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& [step, row] : rows) {
    EXPECT_EQ(row.value("kl/rollout_train", 1.0), 0.0) << step;
    EXPECT_GT(row.value("policy/aux_loss", 0.0), 2.0) << step;  // two experts a token
    EXPECT_LT(row.value("policy/aux_loss", 0.0), 6.0) << step;
  }

  const auto several = with(files.words("several"), with(kBalance, {"--rollout.generators", "2"}));
  kill_once(start_troupe(several, files / "several.log"),
            [&] { return lines_in(files / "several" / "metrics.jsonl") >= 1; });
  const ProgramRun resumed = run_troupe(several);
  ASSERT_EQ(resumed.status, 0) << resumed.output << text_of(files / "several.log");
  EXPECT_EQ(rows, metric_rows(files / "several"));
  const auto last = std::filesystem::path("ckpt") / "step_000003";
  const auto hashes = hashes_of(files / "one" / last);
  EXPECT_TRUE(hashes.contains("policy/weights.safetensors"));
  EXPECT_EQ(hashes, hashes_of(files / "several" / last));

  // Without the balance something else is learnt.
  const ProgramRun plain = run_troupe(
      with(files.words("plain"), {"--train.max_steps", "3", "--cluster.transport", "loopback"}));
  ASSERT_EQ(plain.status, 0) << plain.output;
  EXPECT_NE(hashes, hashes_of(files / "plain" / last));
  EXPECT_FALSE(metrics_of(files / "plain").begin()->second.contains("policy/aux_loss"));
}

TEST(MoeRun, SupervisedTrainingDoesNotDependOnThreads) {
  const TinyRun files(tiny_moe());
  std::ofstream answers(files / "answers.jsonl");
  for (int i = 0; i < 12; ++i) {
    answers << nlohmann::json(
                   {{"input", std::to_string(i) + "+1="}, {"output", std::to_string(i + 1)}})
            << '\n';
  }
  answers.close();
  std::ofstream(files / "sft.yaml") << "train: {batch_size: 4, max_steps: 3, seed: 5, "
                                       "micro_tokens_max: 20}\n"
                                       "actor: {adam: {lr: 1e-3}, aux_loss_coef: 0.1}\n"
                                       "ckpt: {save_steps: 1}\n";
  const auto words = [&](const std::string& run, const std::string& model,
                         const std::string& threads) {
    return std::vector<std::string>{"train",
                                    "sft",
                                    (files / "sft.yaml").string(),
                                    "--actor.model_name_or_path",
                                    model,
                                    "--data.dataset",
                                    (files / "answers.jsonl").string(),
                                    "--run.path",
                                    (files / run).string(),
                                    "--train.threads",
                                    threads};
  };
  for (const char* threads : {"1", "2"}) {
    const ProgramRun run = run_troupe(words(threads, files.model(), threads));
    ASSERT_EQ(run.status, 0) << run.output;
  }
  const auto rows = metrics_of(files / "1");
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& [step, row] : rows)
    EXPECT_GT(row.value("policy/aux_loss", 0.0), 2.0) << step;
  EXPECT_EQ(rows, metrics_of(files / "2"));
  const auto last = std::filesystem::path("ckpt") / "step_000003";
  EXPECT_EQ(hashes_of(files / "1" / last), hashes_of(files / "2" / last));
  EXPECT_FALSE(hashes_of(files / "1" / last).empty());

  ScratchFolder other;
  const std::string dense = make_tiny_model(other);
  write_byte_tokenizer(dense);
  const ProgramRun refused = run_troupe(with(words("dense", dense, "1"), {}));
  EXPECT_EQ(refused.status, 2);
}

}  // namespace troupe::test
