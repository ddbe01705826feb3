// The form of a pipeline's file: what is read, and what each mistake says.
#include "apps/pipeline/pipeline_file.hpp"

#include "runtime/core/error_list.hpp"

#include <gtest/gtest.h>

namespace troupe::pipeline {
namespace {

std::string refusal(const std::string& text) {
  const auto read = parse_pipeline(text, "p.yaml");
  return read ? "accepted" : read.error().message;
}

void says(const std::string& text, const std::string& part) {
  EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
}

TEST(PipelineFile, HoldsStagesAndLoopsInOrder) {
  const auto read = parse_pipeline(R"(
about: a test
silent_s: 7
variables: {seeds: [1, 2], lr: 1e-5}
shared:
  train sft:
    actor.adam.lr: ${lr}
stages:
  - stage: sft
    run: train sft
    config: [a.yaml, b.yaml]
    keys:
      data.dataset: x.jsonl
    report: {loss: policy/loss}
  - each: {seed: '${seeds}'}
    stages:
      - repeat: 2
        first: {model: '${sft.model}'}
        then: {model: '${dpo.model}'}
        stages:
          - stage: dpo
            run: train dpo
            budget: {cpu_s: 60, rate_of: sft}
  - search: grid
    points: [{beta: 0.1}, {beta: 0.3}]
    best: ${ev.figures.all.pass@1}
    once: true
    stages:
      - {stage: ev, run: eval}
)",
                                   "p.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->silent_s, 7);
  EXPECT_EQ(read->variables.at(0).second.items, (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(read->variables.at(0).second.is_list);
  EXPECT_EQ(read->shared.at(0).first, "train sft");
  ASSERT_EQ(read->body.size(), 3u);
  const Stage& sft = read->body[0].stage;
  EXPECT_EQ(sft.command, (std::vector<std::string>{"train", "sft"}));
  EXPECT_EQ(sft.config, (std::vector<std::string>{"a.yaml", "b.yaml"}));
  EXPECT_EQ(sft.report.at(0), std::pair(std::string("loss"), std::string("policy/loss")));
  EXPECT_EQ(read->body[0].where, "p.yaml:9");
  const Block& each = read->body[1];
  EXPECT_EQ(each.kind, BlockKind::kEach);
  EXPECT_EQ(each.name, "seed");
  const Block& rounds = each.body.at(0);
  EXPECT_EQ(rounds.name, "round");
  EXPECT_EQ(rounds.then.at(0).second.items.at(0), "${dpo.model}");
  EXPECT_EQ(rounds.body.at(0).stage.budget->rate_of, "sft");
  EXPECT_EQ(read->body[2].points.size(), 2u);
  EXPECT_TRUE(read->body[2].once);
}

TEST(PipelineFile, EachMistakeHasItsPlace) {
  says("stages: [", "p.yaml:1: not valid YAML");
  says("[]", "p.yaml: holds no pipeline");
  says("variables: {a: 1}", "p.yaml:1: `stages:` holds no list of stages");
  says("stages: []", "holds no list of stages");
  says("stages:\n  - sft", "p.yaml:2: a stage or a loop expected");
  says("stages:\n  - {name: x}", "says neither stage, repeat, each nor search");
  says("stages:\n  - {stage: a}", "stage 'a' runs nothing");
  says("stages:\n  - {stage: a, run: eval, key: {n: 1}}",
       "p.yaml:2: a stage has no field 'key'; did you mean 'keys'?");
  says("stages:\n  - {stage: 1st, run: eval}", "'1st' is not a name");
  says("stages:\n  - {stage: a, run: eval}\n  - {stage: a, run: eval}",
       "p.yaml:3: the name 'a' is used twice, first at p.yaml:2");
  says("variables: {here: 1}\nstages:\n  - {stage: a, run: eval}", "'here' is what the pipeline");
  says("stages:\n  - {stage: a, run: eval, keys: {n: {m: 1}}}", "keys: a plain value or a list");
  says("stages:\n  - repeat: 2\n    first: {m: 1}\n    stages:\n      - {stage: a, run: eval}",
       "'m' has no value in later rounds");
  says("stages:\n  - each: {a: 1, b: 2}\n    stages:\n      - {stage: c, run: eval}",
       "one variable expected");
  says(
      "stages:\n  - search: g\n    points: []\n    best: x\n    stages:\n      - {stage: c, run: "
      "eval}",
      "`points:` holds no list");
  says(
      "stages:\n  - search: g\n    points: [{a: 1}, {b: 1}]\n    stages:\n      - {stage: c, run: "
      "eval}",
      "each point gives the same variables a value");
  says("stages:\n  - search: g\n    points: [{a: 1}]\n    stages:\n      - {stage: c, run: eval}",
       "`best:` is missing");
  says("silent_s: soon\nstages:\n  - {stage: a, run: eval}", "silent_s: a number expected");
}

TEST(PipelineFile, MistakesAreSaidTogether) {
  const std::string all = refusal("stages:\n  - {stage: a}\n  - {stage: 2b, run: eval}\n");
  EXPECT_NE(all.find("'a' runs nothing"), std::string::npos) << all;
  EXPECT_NE(all.find("'2b' is not a name"), std::string::npos) << all;
}

TEST(PipelineFile, VariablesAreSetFromOutside) {
  auto file = parse_pipeline(
      "variables: {model: m, seeds: [1]}\nstages:\n  - {stage: a, run: eval}", "p.yaml");
  ASSERT_TRUE(file);
  ASSERT_TRUE(set_variables(*file, {"model=a=b", "seeds=4,5"}));
  EXPECT_EQ(file->variables[0].second.items, (std::vector<std::string>{"a=b"}));
  EXPECT_EQ(file->variables[1].second.items, (std::vector<std::string>{"4", "5"}));
  const auto message = [&](const char* setting) {
    const auto set = set_variables(*file, {setting});
    return set ? "accepted" : set.error().message;
  };
  EXPECT_EQ(message("modl=x"),
            "--set modl=x: p.yaml has no variable 'modl'; did you mean 'model'?");
  EXPECT_EQ(message("model"), "--set model: expected name=value");
  EXPECT_EQ(message("model="), "p.yaml: variable 'model' has no value; give --set model=VALUE");
}

TEST(PipelineFile, AFileThatIsNotThereIsSaid) {
  EXPECT_NE(read_pipeline("/nowhere/p.yaml").error().message.find("cannot read /nowhere/p.yaml"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::pipeline
