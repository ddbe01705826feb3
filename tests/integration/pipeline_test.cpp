// `troupe pipeline` with the real program on a tiny model: what it runs and does not run again,
// what a change, a kill, a freeze and a stop do to it, and what mistakes say.
#include "pipeline_support.hpp"

namespace troupe::test {
namespace {

class Pipeline : public ::testing::Test {
 protected:
  // SFT, its answers, and an evaluation of the model that nothing of it changes.
  void small(const std::string& head = "") {
    files_.write("p.yaml", head + "variables: {model: " + files_.model() +
                               ", lr: 1e-3, steps: 3}\n" +
                               R"(stages:
  - stage: sft
    run: train sft
    keys:
      actor.model_name_or_path: ${model}
      data.dataset: )" + files_.path("train.jsonl") +
                               R"(
      data.input_key: prompt
      data.output_key: answer
      data.max_len: 64
      actor.adam.lr: ${lr}
      train.batch_size: 4
      train.max_epochs: 100
      train.max_steps: ${steps}
      train.threads: 1
      ckpt.save_steps: 1
    report: {loss: policy/loss}
  - stage: answers
    run: generate
    keys:
      model: ${sft.model}
      data: )" + files_.path("train.jsonl") +
                               R"(
      n: 2
      max-new-tokens: 4
  - stage: base
    run: eval
    keys:
      model: ${model}
      data: )" + files_.path("train.jsonl") +
                               R"(
      label-key: answer
      rule: exact
      max-new-tokens: 4
    report: {truth: all.pass@1, length: all.response_length}
)");
  }
  void expect_says(const Ended& ended, int status, const std::string& part) {
    EXPECT_EQ(ended.status, status) << ended.text;
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
  }
  // Starts the pipeline and waits until its stage `sft` has taken some steps.
  Background started(const std::vector<std::string>& more) {
    Background pipeline = start_troupe(files_.words("p.yaml", more), files_ / "first.txt");
    EXPECT_TRUE(within(30, [&] { return lines_in(files_ / "out/sft/run/metrics.jsonl") >= 3; }))
        << pipeline.text();
    return pipeline;
  }

  TinyPipeline files_;
};

}  // namespace

TEST_F(Pipeline, RunsEachStageOnceAndEndsWithATable) {
  small();
  const Ended first = files_.run();
  ASSERT_EQ(first.status, 0) << first.text;
  for (const char* part :
       {"== sft: troupe train sft", "stage", "share", "loss", "truth", "answers"})
    EXPECT_NE(first.text.find(part), std::string::npos) << part << "\n" << first.text;
  const auto summary = files_.summary();
  EXPECT_EQ(summary["state"], "finished");
  ASSERT_EQ(summary["stages"].size(), 3u);
  EXPECT_EQ(summary["stages"][0]["stage"], "sft");
  EXPECT_TRUE(summary["stages"][0]["figures"]["loss"]["mean"].is_number());
  EXPECT_TRUE(summary["stages"][2]["figures"]["truth"]["high"].is_number());
  EXPECT_GT(summary["stages"][0]["cpu_s"], 0);
  double shares = 0;
  for (const auto& stage : summary["stages"])
    shares += stage["share"].get<double>();
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(files_.record("sft")["steps"], 3);
  EXPECT_TRUE(std::filesystem::exists(files_ / "out/answers/out.jsonl"));

  const Ended second = files_.run({"--json"});
  ASSERT_EQ(second.status, 0) << second.text;
  for (const char* stage : {"sft", "answers", "base"}) {
    EXPECT_NE(second.text.find("== " + std::string(stage) + ": done before"), std::string::npos);
    EXPECT_EQ(files_.record(stage)["attempts"], 1) << stage;
  }
  EXPECT_EQ(files_.summary(), summary);
}

TEST_F(Pipeline, WhatChangedAndWhatDependsOnItRunsAgain) {
  small();
  ASSERT_EQ(files_.run().status, 0);
  const std::string before = files_.weights("sft");
  const Ended changed = files_.run({"--set", "lr=2e-3"});
  expect_says(changed, 0, "== sft: runs again, because --actor.adam.lr was 1e-3 and is 2e-3");
  expect_says(changed, 0, "== answers: runs again, because");
  expect_says(changed, 0, "== base: done before");
  EXPECT_NE(files_.weights("sft"), before);
  EXPECT_TRUE(std::filesystem::exists(files_ / "out/sft.old-1")) << "nothing is deleted";

  std::filesystem::remove(files_ / "out/answers/out.jsonl");
  const Ended gone = files_.run({"--set", "lr=2e-3"});
  expect_says(gone, 0, "== answers: runs again, because what it wrote is gone");
  expect_says(gone, 0, "== sft: done before");

  std::ofstream(files_ / "train.jsonl", std::ios::app)
      << "{\"prompt\": \"9+9=\", \"answer\": \"a\"}\n";
  const Ended data = files_.run({"--set", "lr=2e-3"});
  expect_says(data, 0,
              "== base: runs again, because " + files_.path("train.jsonl") + " has changed");
}

TEST_F(Pipeline, AKilledPipelineAndAKilledStageEndWithTheSameBits) {
  small();
  const std::vector<std::string> many = {"--set", "steps=40"};
  ASSERT_EQ(files_.run(many, "whole").status, 0);
  {
    Background pipeline = started(many);
    const pid_t stage = child_of(pipeline.pid());
    ASSERT_GT(stage, 0);
    ::kill(stage, SIGKILL);
    ASSERT_TRUE(within(30, [&] { return pipeline.says("it is started again"); }))
        << pipeline.text();
    pipeline.signal(SIGKILL);
    pipeline.wait(5);
  }
  EXPECT_NE(files_.record("sft")["state"], "finished");
  const Ended ended = files_.run(many);
  expect_says(ended, 0, "== sft: troupe train sft, goes on");
  EXPECT_EQ(files_.weights("sft"), files_.weights("sft", "whole"));
  EXPECT_FALSE(files_.weights("sft").empty());
  EXPECT_EQ(text_of(files_ / "out/answers/out.jsonl"), text_of(files_ / "whole/answers/out.jsonl"));
  EXPECT_GE(files_.record("sft")["losses"], 1);
  EXPECT_GE(files_.record("sft")["attempts"], 2);
}

TEST_F(Pipeline, AFrozenStageIsStartedAgain) {
  small("silent_s: 2\n");
  Background pipeline = started({"--set", "steps=400"});
  ::kill(child_of(pipeline.pid()), SIGSTOP);
  ASSERT_TRUE(within(60, [&] { return pipeline.says("took no processor time and was ended"); }))
      << pipeline.text();
  const std::size_t before = lines_in(files_ / "out/sft/run/metrics.jsonl");
  EXPECT_TRUE(within(60, [&] {
    return lines_in(files_ / "out/sft/run/metrics.jsonl") > before + 2;
  })) << pipeline.text();
}

TEST_F(Pipeline, AStopIsPassedOnAndTheSameCommandGoesOn) {
  small();
  Background pipeline = started({"--set", "steps=2000"});
  const Ended second = files_.run({"--set", "steps=2000"});
  expect_says(second, 3, "another pipeline works in");
  pipeline.signal(SIGTERM);
  EXPECT_EQ(pipeline.wait(60), 130) << pipeline.text();
  EXPECT_TRUE(pipeline.says("stopped in stage sft; the same command continues from there"));
  EXPECT_EQ(files_.record("sft")["state"], "stopped");
  EXPECT_EQ(files_.summary()["state"], "stopped");
  const std::string log = text_of(files_ / "out/sft/log.txt");
  EXPECT_NE(log.find("checkpoint"), std::string::npos) << "the stage ended by itself:\n" << log;
}

TEST_F(Pipeline, AStageThatFailsIsNamedWithItsLastLines) {
  files_.write("p.yaml",
               "stages:\n  - stage: bad\n    run: eval\n    keys: {model: " + files_.model() +
                   ", data: " + files_.path("nothing.jsonl") + ", rule: exact, label-key: a}\n");
  const Ended ended = files_.run();
  expect_says(ended, 2, "stage bad ended with status 2");
  expect_says(ended, 2, "nothing.jsonl");
  expect_says(ended, 2, files_.path("out/bad/log.txt"));
  EXPECT_EQ(files_.record("bad")["state"], "failed");
  EXPECT_EQ(files_.record("bad")["attempts"], 1) << "what cannot pass is not tried again";
  EXPECT_EQ(files_.summary()["state"], "failed");
}

TEST_F(Pipeline, ADryRunSaysWhatWouldRunAndWritesNothing) {
  small();
  const Ended plan = files_.run({"--dry-run"});
  expect_says(plan, 0, "sft: to run\n    troupe train sft --actor.model_name_or_path");
  expect_says(plan, 0, "answers: to run\n    troupe generate --model");
  EXPECT_FALSE(std::filesystem::exists(files_ / "out"));
  ASSERT_EQ(files_.run().status, 0);
  const Ended after = files_.run({"--dry-run", "--set", "lr=3e-3"});
  expect_says(after, 0, "sft: runs again: --actor.adam.lr was 1e-3 and is 3e-3");
  expect_says(after, 0, "base: finished");
  EXPECT_FALSE(std::filesystem::exists(files_ / "out/sft.old-1"));
}

TEST_F(Pipeline, RoundsFollowEachOtherAndASearchKeepsItsBest) {
  const std::string data = files_.path("train.jsonl");
  files_.write("p.yaml",
               "variables: {seeds: [1, 2]}\nshared:\n  train sft:\n    data.dataset: " + data + R"(
    data.input_key: prompt
    data.output_key: answer
    data.max_len: 64
    train.batch_size: 8
    train.threads: 1
stages:
  - search: grid
    points: [{lr: 1e-5}, {lr: 2e-2}, {lr: 1e-4}]
    best: ${try.figures.policy/loss}
    lowest: true
    stages:
      - stage: try
        run: train sft
        keys: {actor.model_name_or_path: ')" +
                   files_.model() + R"(', actor.adam.lr: '${lr}', train.max_epochs: 4}
  - each: {seed: '${seeds}'}
    stages:
      - repeat: 2
        first: {policy: '${try.model}'}
        then: {policy: '${sft.model}'}
        stages:
          - stage: sft
            run: train sft
            budget: {cpu_s: 0.01, rate_of: try}
            keys: {actor.model_name_or_path: '${policy}', actor.adam.lr: '${grid.lr}', train.seed: '${seed}'}
)");
  const Ended ended = files_.run();
  ASSERT_EQ(ended.status, 0) << ended.text;
  expect_says(ended, 0, "== grid: the best is lr=2e-2");
  const auto search = files_.summary()["searches"][0];
  EXPECT_EQ(search["best"], 2);
  EXPECT_LT(search["points"][1]["figure"], search["points"][0]["figure"]);
  const auto model_of = [&](const std::string& stage) {
    const auto words = files_.record(stage)["command"].get<std::vector<std::string>>();
    return words.at(static_cast<std::size_t>(
                        std::ranges::find(words, "--actor.model_name_or_path") - words.begin()) +
                    1);
  };
  EXPECT_EQ(model_of("seed-1/round-1/sft").find("grid/point-2/try"), 0u);
  EXPECT_EQ(model_of("seed-1/round-2/sft").find("seed-1/round-1/sft"), 0u);
  EXPECT_EQ(model_of("seed-2/round-1/sft").find("grid/point-2/try"), 0u);
  EXPECT_EQ(files_.record("seed-2/round-2/sft")["steps"], 1) << "the least that a budget buys";
  EXPECT_NE(files_.weights("seed-1/round-1/sft"), files_.weights("seed-2/round-1/sft"));
}

TEST_F(Pipeline, MistakesAreSaidBeforeAnythingRuns) {
  const auto refused = [&](const std::string& stages, const std::string& part,
                           const std::vector<std::string>& more = {}) {
    files_.write("p.yaml", "variables: {a: 1}\nstages:\n" + stages);
    expect_says(files_.run(more), 2, part);
    EXPECT_FALSE(std::filesystem::exists(files_ / "out"));
  };
  const std::string eval = "  - {stage: e, run: eval, keys: {model: m}}\n";
  refused("  - {stage: s, run: serve}\n", "p.yaml:3: stage 's': `serve` cannot be a stage");
  refused(eval + "  - {stage: f, run: eval, keys: {model: '${g.model}'}}\n",
          "p.yaml:4: stage 'f': ${g.model}: nothing here has this name");
  refused(eval + "  - {stage: f, run: eval, keys: {model: '${e.model}'}}\n",
          "a stage of `eval` has dir");
  refused("  - {stage: s, run: eval, keys: {out: x}}\n", "gives --out, which the pipeline sets");
  refused("  - {stage: s, run: train sft, config: no.yaml}\n", "there is no file");
  refused("  - {stage: s, run: train sft, keys: {actor.adm.lr: 1}}\n",
          "unknown key 'actor.adm.lr'");
  refused("  - {stage: s, run: train sft, keys: {actor.adam.lr: 7}}\n", "actor.adam.lr");
  refused("  - {stage: s, run: train stf}\n", "`train` names no known method");
  refused("  - repeat: none\n    stages: [{stage: s, run: eval}]\n", "a number of rounds");
  refused("  - each: {s: []}\n    stages: [{stage: t, run: eval}]\n", "values expected");
  refused(eval + "  - {stage: s, run: train sft, budget: {cpu_s: 5, rate_of: e}}\n",
          "'e' is not a training stage");
  refused(eval, "p.yaml has no variable 'b'", {"--set", "b=1"});
  expect_says(troupe_ends({"pipeline"}, files_ / "log.txt", 10), 2, "give the YAML file");
  expect_says(troupe_ends({"pipeline", files_.path("no.yaml")}, files_ / "log.txt", 10), 2,
              "cannot read");
  expect_says(troupe_ends({"pipeline", "a.yaml", "b.yaml"}, files_ / "log.txt", 10), 2,
              "'b.yaml' is a second file");
}

}  // namespace troupe::test
