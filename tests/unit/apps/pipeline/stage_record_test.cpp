// The record of a stage: what it depends on, how a change is told, and the figures that are read.
#include "apps/pipeline/stage_record.hpp"

#include "apps/pipeline/stage_commands.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;

class Records : public ::testing::Test {
 protected:
  Records()
      : folder_(fs::temp_directory_path() / ("pipeline_record_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "pipe/own");
    fs::create_directories(folder_ / "model/deeper");
    write("data.jsonl", "{}\n");
    write("model/weights", "w");
  }
  ~Records() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  StageInputs inputs(const std::vector<std::string>& words) {
    auto found = inputs_of(words, folder_ / "pipe/own", folder_ / "pipe");
    EXPECT_TRUE(found);
    return found ? *found : StageInputs{};
  }

  fs::path folder_;
};

TEST_F(Records, WordsThatArePathsCountWithTheirContents) {
  const std::vector<std::string> words = {
      "train",   "sft",         "--data.dataset", path("data.jsonl") + "," + path("model/weights"),
      "--model", path("model"), "--run.path",     path("pipe/own/run"),
      "--lr",    "0.5"};
  const StageInputs before = inputs(words);
  EXPECT_EQ(before.files.size(), 3u);
  EXPECT_EQ(before.command[7], "./run") << "the stage's own folder has no name";
  EXPECT_EQ(inputs(words), before);
  fs::create_directories(folder_ / "pipe/own2");
  write("pipe/own2/out.jsonl", "1");
  const StageInputs other = inputs({"eval", "--data", path("pipe/own2/out.jsonl")});
  EXPECT_EQ(other.command[2], "own2/out.jsonl") << "a pipeline may be moved";
  EXPECT_EQ(other.files.count("own2/out.jsonl"), 1u) << "a stage whose name begins alike";
  write("model/weights", "v");
  const StageInputs changed = inputs(words);
  EXPECT_NE(changed, before);
  EXPECT_EQ(difference(before, changed), path("model") + " has changed");
  write("model/weights", "w");
  write("model/more", "m");
  EXPECT_NE(inputs(words).files.at(path("model")), before.files.at(path("model")))
      << "a new file of a folder counts";
}

TEST_F(Records, AChangeIsToldByItsFlag) {
  const auto told = [&](std::vector<std::string> was, std::vector<std::string> is) {
    return difference(inputs(was), inputs(is));
  };
  EXPECT_EQ(told({"eval", "--n", "4"}, {"eval", "--n", "8"}), "--n was 4 and is 8");
  EXPECT_EQ(told({"eval"}, {"eval", "--n", "8"}), "--n is new");
  EXPECT_EQ(told({"eval", "--n", "8"}, {"eval"}), "--n is gone");
  EXPECT_EQ(told({"train", "sft"}, {"train", "dpo"}), "the command was sft and is dpo");
  EXPECT_EQ(told({"eval"}, {"eval"}), "");
}

TEST_F(Records, ARecordIsReadAsItWasWritten) {
  StageRecord record;
  record.id = "seed-1/sft";
  record.state = "finished";
  record.inputs = inputs({"eval", "--data", path("data.jsonl")});
  record.attempts = 3;
  record.losses = 2;
  record.wall_s = 1.5;
  record.cpu_s = 2.5;
  record.steps = 7;
  record.figures["a"] = {1, {}, {}};
  record.figures["b"] = {2, 1.5, 2.5};
  ASSERT_TRUE(write_record(folder_ / "pipe/own", record));
  const auto read = read_record(folder_ / "pipe/own");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->inputs, record.inputs);
  EXPECT_TRUE(read->finished());
  EXPECT_EQ(read->attempts + read->losses + read->steps, 12u);
  EXPECT_EQ(read->wall_s + read->cpu_s, 4);
  EXPECT_EQ(read->figures.at("a").mean, 1);
  EXPECT_FALSE(read->figures.at("a").low);
  EXPECT_EQ(read->figures.at("b").high, 2.5);
}

TEST_F(Records, ADamagedRecordIsNone) {
  EXPECT_FALSE(read_record(folder_ / "pipe/own"));
  for (const char* text : {"", "{", "[]", "{\"attempts\": \"many\"}", "{\"command\": 3}"}) {
    write("pipe/own/stage.json", text);
    EXPECT_FALSE(read_record(folder_ / "pipe/own")) << text;
  }
}

TEST_F(Records, FiguresOfARunAndOfACommand) {
  write("metrics.jsonl",
        "{\"step\": 0, \"time\": 1, \"eval/pass@1\": 0.25}\n"
        "{\"step\": 1, \"policy/loss\": 3}\nnonsense\n"
        "{\"step\": 2, \"policy/loss\": 2, \"kl\": \"nan\"}\n");
  const StageFigures run = training_figures(folder_ / "metrics.jsonl");
  EXPECT_EQ(run.steps, 2u);
  EXPECT_EQ(run.figures.at("policy/loss").mean, 2);
  EXPECT_EQ(run.figures.at("eval/pass@1").mean, 0.25);
  EXPECT_FALSE(run.figures.contains("kl"));
  write("log.txt",
        "loading\n{\"all\": {\"pass@1\": {\"mean\": 0.1, \"low\": 0, \"high\": 1}}}\nagain\n"
        "{\"n\": 8, \"all\": {\"problems\": 4, \"pass@1\": {\"mean\": 0.5, \"low\": 0.25, "
        "\"high\": 0.75}}}\nbye\n");
  const StageFigures printed = printed_figures(folder_ / "log.txt");
  EXPECT_EQ(printed.figures.at("all.pass@1").mean, 0.5);
  EXPECT_EQ(*printed.figures.at("all.pass@1").low, 0.25);
  EXPECT_EQ(printed.figures.at("all.problems").mean, 4);
  EXPECT_TRUE(training_figures(folder_ / "nothing").figures.empty());
}

TEST(StageCommands, WordsHaveFlagsOnceAndOutputsTheirPlace) {
  Stage stage;
  stage.name = "s";
  const auto words = [&](std::vector<std::string> command, Values keys) {
    stage.command = std::move(command);
    const auto made = words_of(stage, {}, keys, "/p/s");
    return made ? *made : std::vector<std::string>{made.error().message};
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(
      words({"generate"}, {{"stop", {{"a", "b"}, true}}, {"--n", {{"4"}, false}}}),
      (Words{"generate", "--stop", "a", "--stop", "b", "--n", "4", "--out", "/p/s/out.jsonl"}));
  EXPECT_EQ(words({"train", "ppo"}, {{"actor.adam.betas", {{"0.9", "0.95"}, true}},
                                     {"rollout.stop", {{"x", "y"}, true}}}),
            (Words{"train", "ppo", "--actor.adam.betas", "0.9,0.95", "--rollout.stop", "x",
                   "--rollout.stop", "y", "--log.format", "plain", "--run.path", "/p/s/run"}));
  EXPECT_EQ(words({"eval"}, {{"out", {{"x"}, false}}})[0],
            "stage 's' gives --out, which the pipeline sets; leave it out");
  stage.command = {"serve"};
  EXPECT_EQ(stage_command(stage), nullptr);
}

}  // namespace
}  // namespace troupe::pipeline
