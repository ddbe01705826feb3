// What a run says when nothing is learned though nothing fails, when its weights diverge, and when
// a key names what is not there.
#include "company_support.hpp"
#include "supervised_support.hpp"

namespace troupe::test {
namespace {

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

class Silence : public ::testing::Test {
 protected:
  Ended train(const std::string& run, const std::vector<std::string>& more) {
    return troupe_ends(
        files_.words(run) + std::vector<std::string>{"--cluster.transport", "loopback"} + more,
        files_ / (run + ".txt"), 100);
  }
  std::string reward(const std::string& body) {
    std::ofstream(files_ / "r.py") << "def r(completions, **columns):\n    return " << body << "\n";
    return (files_ / "r.py").string();
  }
  TinyRun files_;
};

}  // namespace

TEST_F(Silence, EqualScoresAreSaidOnceAndAtTheEnd) {
  const Ended ended =
      train("equal", {"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python",
                      reward("[0.0] * len(completions)"), "--train.max_steps", "5"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  const std::string cause = "all groups had equal scores (policy/zero_advantage_share)";
  EXPECT_EQ(times(ended.text, "nothing is learned from updates 1 to 3: " + cause), 1u)
      << ended.text;
  EXPECT_EQ(times(ended.text, "nothing was learned from 5 of 5 updates: " + cause), 1u)
      << ended.text;
  EXPECT_EQ(times(ended.text, cause), 2u) << ended.text;
}

TEST_F(Silence, AnswersThatAreAllCutAreAFigureAndALine) {
  const Ended ended = train("cut", {"--rollout.max_new_tokens", "1", "--train.max_steps", "4"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(times(ended.text, "nothing is learned from updates 1 to 3: all answers were cut"), 1u)
      << ended.text;
  for (const auto& [step, row] : metrics_of(files_ / "cut")) {
    EXPECT_GE(row.at("response/clip_ratio").get<double>(), 0.99) << step;
  }
}

TEST_F(Silence, ScoresThatAreMostlyMissingAreSaidAtTheFirstUpdate) {
  const std::string some =
      "[float(len(c)) if sum(map(ord, c)) % 4 == 0 else None for c in completions]";
  const Ended ended = train(
      "missing", {"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python", reward(some),
                  "--rollout.n_samples_per_prompt", "16", "--train.max_steps", "2"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(times(ended.text, "in update 1 most samples had no score (reward/missing)"), 1u)
      << ended.text;
}

TEST_F(Silence, AHealthyRunHasNoSuchLine) {
  const Ended ended = train("healthy", {"--train.max_steps", "6"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  for (const char* const part :
       {"nothing is learned", "nothing was learned", "were cut", "no score"})
    EXPECT_EQ(times(ended.text, part), 0u) << ended.text;
}

// ---- prompts that are too long

TEST_F(Silence, LongPromptsAreRefusedWithTheKeyThatLeavesThemOut) {
  std::ofstream(files_ / "train.jsonl", std::ios::app)
      << nlohmann::json({{"prompt", std::string(40, '1')}, {"answer", "a"}}) << "\n";
  const Ended refused = train("long", {"--train.max_steps", "1"});
  EXPECT_EQ(refused.status, 4) << refused.text;
  EXPECT_NE(refused.text.find("train.jsonl:25: the prompt has 40 tokens, more than "
                              "--data.prompt_max_len 32"),
            std::string::npos)
      << refused.text;
  EXPECT_NE(refused.text.find("--data.drop_too_long true"), std::string::npos) << refused.text;
  const Ended dropped = train("long", {"--train.max_steps", "1", "--data.drop_too_long", "true"});
  EXPECT_EQ(dropped.status, 0) << dropped.text;
  EXPECT_NE(dropped.text.find("1 of the 25 prompts of "), std::string::npos) << dropped.text;
}

TEST_F(Silence, WhatIsLeftOverOfTheLastEpochIsSaid) {
  const Ended ended = train("epoch", {"--train.max_steps", "0", "--rollout.batch_size", "5"});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("4 prompts are left over at the end of the last epoch: 24 do not "
                            "divide by rollout.batch_size 5"),
            std::string::npos)
      << ended.text;
}

// ---- the best checkpoint

TEST(BestOfALoss, IsTheLowestAndAFigureThatIsNotThereIsRefused) {
  const TinySupervised files;
  const Method& sft = methods()[0];
  const auto words = [&](const std::string& run, const std::string& key) {
    return files.words(sft, run, 6) +
           std::vector<std::string>{"--eval.steps",   "2", "--ckpt.save_steps",      "0",
                                    "--ckpt.max_num", "1", "--ckpt.best_metric_key", key};
  };
  const Ended ended = troupe_ends(words("best", "eval/loss"), files / "best.txt", 60);
  ASSERT_EQ(ended.status, 0) << ended.text;
  double least = 1e9;
  std::uint64_t step = 0;
  for (const auto& row : lines_of(files / "best")) {
    if (!row.contains("eval/loss") || row["eval/loss"].get<double>() >= least) continue;
    least = row["eval/loss"].get<double>();
    step = row["step"].get<std::uint64_t>();
  }
  ASSERT_GT(step, 0u) << "it falls";
  char name[32];
  std::snprintf(name, sizeof name, "step_%06llu", static_cast<unsigned long long>(step));
  EXPECT_EQ(std::filesystem::read_symlink(files / "best/ckpt/best").string(), name);
  const Ended refused = troupe_ends(words("nope", "-eval/nope"), files / "nope.txt", 60);
  EXPECT_EQ(refused.status, 2) << refused.text;
  for (const char* const part : {"the evaluation has no figure eval/nope", "it has eval/loss"})
    EXPECT_NE(refused.text.find(part), std::string::npos) << refused.text;
}

// ---- weights that diverge

namespace {

// A model with one weight that overflows every logit.
void spoil(const std::filesystem::path& model) {
  const auto file = model / "model.safetensors";
  std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t size = 0;
  io.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string header(size, ' ');
  io.read(header.data(), static_cast<std::streamsize>(size));
  const auto tensors = nlohmann::json::parse(header);
  const auto place = tensors.at("model.norm.weight").at("data_offsets").at(0).get<std::uint64_t>();
  const auto end = tensors.at("model.norm.weight").at("data_offsets").at(1).get<std::uint64_t>();
  const float huge = 3e38f;
  io.seekp(static_cast<std::streamoff>(sizeof size + size + place));
  for (std::uint64_t at = place; at < end; at += sizeof huge)
    io.write(reinterpret_cast<const char*>(&huge), sizeof huge);
}

}  // namespace

TEST(Divergence, OfTheGivenWeightsEndsTheRunAtOnceWithSix) {
  const TinyRun files;
  spoil(files.model());
  CompanyRun run(files, "run", {"--rollout.generators", "1"});
  EXPECT_EQ(run.wait(), 6) << run.output();
  EXPECT_NE(run.output().find("the weights that the run began with are at fault: 3 different "
                              "prompts have logits that are not finite on generator/0"),
            std::string::npos)
      << run.output();
  EXPECT_EQ(times(run.output(), "is started again: "), 1u) << run.output();
  const Ended back =
      troupe_ends(files.words("back") + std::vector<std::string>{"--cluster.transport", "loopback",
                                                                 "--train.on_divergence", "back"},
                  files / "back.txt", 60);
  EXPECT_EQ(back.status, 6) << back.text;
  EXPECT_NE(back.text.find("there is no checkpoint before them to go back to"), std::string::npos)
      << back.text;
}

}  // namespace troupe::test
