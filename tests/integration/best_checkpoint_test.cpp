// The best evaluation of a run: its checkpoint and model stay beside the newest, and the
// figures of evaluations are what the samples say.
#include "processes.hpp"

#include <optional>

namespace troupe::test {
namespace {

struct Best {
  std::uint64_t step = 0;
  double value = -1;
};

// From the record: the first of the highest.
Best best_of(const std::filesystem::path& run, const std::string& name) {
  Best best;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains(name)) continue;
    if (row[name].get<double>() > best.value) best = {row["step"], row[name].get<double>()};
  }
  return best;
}

std::string step_name(std::uint64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%06llu", static_cast<unsigned long long>(step));
  return name;
}

}  // namespace

TEST(BestCheckpoint, StaysBesideTheNewest) {
  TinyRun files;
  const std::string key = "eval/pass@4";
  const auto words = [&](const std::string& steps) {
    auto out = files.words("run");
    for (const char* word : {"--eval.steps", "1", "--eval.n_samples_per_prompt", "4",
                             "--ckpt.save_steps", "0", "--ckpt.max_num", "1",
                             "--ckpt.best_metric_key", "eval/pass@4", "--eval.temperature", "1"}) {
      out.emplace_back(word);
    }
    out.insert(out.end(),
               {"--eval.dataset", (files / "train.jsonl").string(), "--train.max_steps", steps});
    return out;
  };
  const auto run = files / "run";
  const Ended first = troupe_ends(words("6"), files / "log.txt", 60);
  ASSERT_EQ(first.status, 0) << first.text;
  const Best best = best_of(run, key);
  ASSERT_GT(best.step, 0u) << "the seed gives a run that gets better";
  ASSERT_LT(best.step, 6u) << "and then worse";
  EXPECT_EQ(std::filesystem::read_symlink(run / "ckpt/best").string(), step_name(best.step));
  EXPECT_TRUE(std::filesystem::exists(run / "ckpt/best/model/model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(run / "ckpt/step_000006/model/model.safetensors"));
  std::size_t checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run / "ckpt"))
    checkpoints += entry.path().filename().string().starts_with("step_") ? 1 : 0;
  EXPECT_EQ(checkpoints, 2u) << "the newest and the best";

  // Figures against the samples of the last evaluation.
  std::ifstream in(run / "eval/step_000006.jsonl");
  double any = 0, problems = 0, cut = 0;
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["mode"] != "sampled") continue;
    ++problems;
    double right = 0;
    for (const double score : row["rewards"])
      right += score;
    any += right > 0 ? 1 : 0;
    for (const auto& reason : row["finish_reasons"])
      cut += reason == "length" ? 0.25 : 0;
  }
  std::optional<nlohmann::json> figures;
  std::ifstream metrics(run / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["step"] == 6 && row.contains(key)) figures = row;
  }
  ASSERT_TRUE(figures);
  EXPECT_NEAR((*figures)[key], any / problems, 1e-12);
  EXPECT_NEAR((*figures)["eval/truncated_rate"], cut / problems, 1e-12);
  EXPECT_TRUE(figures->contains("eval/maj@4"));
}

TEST(BestCheckpoint, AKeyThatCannotBeIsRefused) {
  TinyRun files;
  auto words = files.words("run");
  words.insert(words.end(), {"--ckpt.best_metric_key", "reward/mean"});
  const Ended ended = troupe_ends(words, files / "log.txt", 20);
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.text.find("ckpt.best_metric_key"), std::string::npos) << ended.text;
}

}  // namespace troupe::test
