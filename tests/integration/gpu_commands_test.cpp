// Every command that takes a device, and runs in every form, on the emulated device: their texts,
// log-probs, scores and metrics are the processor's, to the bit.
#include "company_support.hpp"
#include "gpu_support.hpp"
#include "serve_support.hpp"

namespace troupe::test {

using nlohmann::json;
using Words = std::vector<std::string>;

class GpuCommands : public Gpu {
 protected:
  // The answer of `troupe serve` without what names the request.
  json served(const std::string& device, const json& request) const {
    const Served serve({"--device", device}, [this](const auto&) { return files_.model(); });
    const HttpAnswer answer = serve.post("/v1/completions", request);
    EXPECT_EQ(answer.status, 200) << answer.body;
    json body = answer.json();
    body.erase("id");
    body.erase("created");
    return body;
  }
  // What `troupe chat` says to these lines.
  ProgramRun chatted(const std::string& device, const std::string& lines) const {
    std::ofstream(path("lines.txt")) << lines;
    ProgramRun run;
    const std::string command =
        shell_word(troupe_program()) + " chat --model " + shell_word(files_.model()) +
        " --device " + device + " --threads 1 --seed 3 --max-new-tokens 16 < " +
        shell_word(path("lines.txt")) + " 2>/dev/null > " + shell_word(path("chat.txt"));
    run.status = std::system(command.c_str());
    run.output = text_of(files_ / "chat.txt");
    return run;
  }
  Words evaluated(const std::string& device, const std::string& out, const Words& more) const {
    return Words{"eval",  "--data",   path("train.jsonl"),
                 "--out", path(out),  "--threads",
                 "1",     "--json",   "--seed",
                 "4",     "--device", device} +
           more;
  }
};

// What ignored its --device would pass the other tests.
TEST_F(GpuCommands, EachNamesTheDeviceThatIsMissing) {
  if (!is_emulated()) GTEST_SKIP() << "needs the emulated device";
  set("TROUPE_CUDA_EMULATOR", "none");
  const std::string model = make_reward_model(), run = path("run");
  const std::vector<Words> commands = {
      {"serve", "--model", files_.model(), "--port", "0"},
      {"chat", "--model", files_.model()},
      {"eval", "--model", files_.model(), "--data", path("train.jsonl"), "--rule", "exact",
       "--label-key", "answer"},
      {"eval", "--reward-model", model, "--data", path("train.jsonl"), "--chosen-key", "answer",
       "--rejected-key", "prompt"},
      {"score", "--model", model, "--data", path("train.jsonl"), "--response-key", "answer",
       "--out", path("out.jsonl")},
      {"attach", "reward", "--join", run, "--name", "x", "--model", model},
      {"bench", "exact", "--model", files_.model()},
      {"bench", "exact", "--model", files_.model(), "--soak", "1"},
      {"bench", "push", "--model", files_.model()}};
  for (const Words& words : commands)
    expect_error(words + Words{"--device", "cuda"}, 3,
                 {"--device cuda: no device cuda:0", "nvidia-smi"});
}

TEST_F(GpuCommands, ServeAnswersAsOnTheProcessor) {
  const json request = {
      {"prompt", {"3+4=", "x y"}}, {"max_tokens", 12}, {"n", 2}, {"seed", 5}, {"logprobs", 2},
      {"ignore_eos", true}};
  const json host = served("cpu", request);
  ASSERT_EQ(host["choices"].size(), 4u);
  EXPECT_EQ(host["choices"][0]["logprobs"]["token_logprobs"].size(), 12u);
  EXPECT_EQ(served("cuda", request), host);
}

TEST_F(GpuCommands, ChatAnswersAsOnTheProcessor) {
  std::ofstream(std::filesystem::path(files_.model()) / "tokenizer_config.json")
      << R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>",)"
         R"( "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})";
  const std::string lines = "first\nand the second\n/quit\n";
  const ProgramRun host = chatted("cpu", lines);
  EXPECT_EQ(host.status, 0) << host.output;
  EXPECT_GT(host.output.size(), 16u) << "two answers";
  EXPECT_EQ(chatted("cuda", lines).output, host.output);
}

TEST_F(GpuCommands, EvaluationsAreThoseOfTheProcessor) {
  const std::string model = make_reward_model();
  const Words sampled = {"--model",   files_.model(),   "--n",
                         "2",         "--rule",         "regex",
                         "--pattern", "[A-Za-z]{2}",    "--max-new-tokens",
                         "4",         "--reward-model", model};
  const std::string host = output_of(evaluated("cpu", "cpu.jsonl", sampled));
  EXPECT_EQ(output_of(evaluated("cuda", "cuda.jsonl", sampled)), host);
  const std::string rows = text_of(files_ / "cpu.jsonl");
  EXPECT_NE(rows.find("reward_model"), std::string::npos) << rows;
  EXPECT_EQ(text_of(files_ / "cuda.jsonl"), rows);
}

// The first update learns from samples of the first weights whatever the threads do; from then on
// the age of a sample depends on them.
TEST_F(GpuCommands, AsynchronousRunsBeginWithTheMetricsOfTheProcessor) {
  const Words ahead = {"--train.staleness_max", "1"};
  const auto host = metrics_of(trained("host", ahead));
  ASSERT_EQ(host.size(), 2u);
  const auto device =
      metrics_of(trained("device", ahead + Words{"--actor.device", "cuda", "--ref.device", "cuda",
                                                 "--rollout.device", "cuda"}));
  ASSERT_EQ(device.size(), 2u);
  EXPECT_EQ(device.at(1), host.at(1));
  EXPECT_EQ(device.at(1).at("kl/rollout_train"), 0);
  EXPECT_NE(said_.find("policy on cuda:0, generator on cuda:0, reference on cuda:0"),
            std::string::npos)
      << said_;
}

TEST_F(GpuCommands, EnginesOnSeveralDevicesHaveTheMetricsOfTheProcessor) {
  if (!is_emulated()) GTEST_SKIP() << "needs two devices";
  set("TROUPE_CUDA_EMULATOR", "guard,devices:2");
  const Words two = {"--rollout.generators", "2"};
  const auto host = metrics_of(trained("host", two));
  ASSERT_EQ(host.size(), 2u);
  const Words devices =
      two + Words{"--actor.device", "cuda:1", "--rollout.device", "cuda:0,cuda:1"};
  const std::string where = "policy on cuda:1, generators in turn on cuda:0 and cuda:1";
  EXPECT_EQ(metrics_of(trained("threads", devices)), host);
  EXPECT_NE(said_.find(where), std::string::npos) << said_;
  EXPECT_EQ(metrics_of(trained("processes", devices, "caf")), host);
  EXPECT_NE(said_.find(where), std::string::npos) << said_;
  // One engine on the processor beside one on a device: one class of arithmetic.
  EXPECT_EQ(metrics_of(trained("mixed", two + Words{"--rollout.device", "cpu,cuda:1"})), host);
  EXPECT_NE(said_.find("generators in turn on cpu and cuda:1"), std::string::npos) << said_;

  // Only the second engine needs memory of a device; the run goes on with the first.
  set("TROUPE_CUDA_EMULATOR_MEMORY", "2000000");
  const std::string full =
      output_of(files_.words("full") + two +
                Words{"--cluster.transport", "loopback", "--rollout.device", "cpu,cuda:1"});
  EXPECT_NE(full.find("generator/1 could not take new weights"), std::string::npos) << full;
  EXPECT_NE(full.find("device cuda:1 has"), std::string::npos) << full;
  EXPECT_EQ(full.find("generator/0 could not"), std::string::npos) << full;
  expect_error(files_.words("none") + two + Words{"--rollout.device", "cuda:1,cuda:2"}, 3,
               {"rollout.device cuda:2", "this machine has 2"});
  expect_error(files_.words("none") + two + Words{"--rollout.device", "cuda:0,,cuda:1"}, 2,
               {"rollout.device", "there is no device ''"});
}

TEST_F(GpuCommands, AnAttachedModelScoresAsOnTheProcessor) {
  const std::string model = make_reward_model();
  CompanyRun run(
      files_, "run",
      {"--train.max_steps", "100000", "--train.num_episodes", "100000", "--ckpt.save_steps", "0"});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const auto attach = [&](const std::string& device) {
    return output_of({"attach", "reward", "--join", run.folder().string(), "--name", "on-" + device,
                      "--model", model, "--device", device, "--background"});
  };
  attach("cpu");
  EXPECT_NE(attach("cuda").find("reward on-cuda scores from update "), std::string::npos);
  std::size_t compared = 0;
  ASSERT_TRUE(within(60, [&] {
    for (const auto& file : std::filesystem::directory_iterator(run.folder() / "rollouts")) {
      std::istringstream lines(text_of(file.path()));
      for (std::string text; std::getline(lines, text);) {
        const json line = json::parse(text, nullptr, false);
        if (!line.is_object() || !line["rewards"].contains("on-cuda")) continue;
        EXPECT_EQ(line["rewards"]["on-cuda"], line["rewards"]["on-cpu"]) << text;
        EXPECT_NE(line["rewards"]["on-cuda"], 0) << text;
        ++compared;
      }
    }
    return compared > 0;
  })) << run.output();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.output();
  expect_error({"attach", "reward", "--join", run.folder().string(), "--name", "x", "--model",
                model, "--device", "gpu"},
               2, {"--device gpu", "cpu, cuda or cuda:N"});
  expect_error({"attach", "reward", "--join", run.folder().string(), "--name", "x", "--rule",
                "exact", "--device", "cuda"},
               2, {"--device is read with --model"});
}

TEST_F(GpuCommands, ExactnessIsShownThere) {
  for (const auto& [dtype, tokens] : {std::pair{"f32", 150}, {"bf16-compute", 60}}) {
    const ProgramRun run =
        run_troupe({"bench", "exact", "--model", files_.model(), "--tokens", std::to_string(tokens),
                    "--device", "cuda", "--dtype", dtype, "--json"});
    ASSERT_EQ(run.status, 0) << run.output;
    EXPECT_EQ(run.line["differing_bits"], 0) << dtype;
    EXPECT_EQ(run.line["scorer_differing_bits"], 0) << dtype;
    EXPECT_EQ(run.line["engine"]["isa"], "cuda");
    EXPECT_EQ(run.line["trainer"]["isa"], "cuda");
    EXPECT_EQ(run.line["trainer"]["tokens"], tokens);
    EXPECT_GT(run.line["trainer"]["grad_norm"], 0);
  }
  const ProgramRun planted = run_troupe({"bench", "exact", "--model", files_.model(), "--tokens",
                                         "20", "--device", "cuda", "--plant-ulp", "--json"});
  EXPECT_EQ(planted.status, 6) << planted.output;
  EXPECT_GT(planted.line["differing_bits"], 0);
  expect_error({"bench", "exact", "--model", files_.model(), "--dtype", "int8"}, 2,
               {"--dtype int8", "f32, bf16, or bf16-compute on a GPU"});
}

TEST_F(GpuCommands, PushesOfWeightsAreMeasuredThere) {
  set("TROUPE_CUDA_EMULATOR_MEMORY", "67108864");  // a quarter of it is read and copied
  for (const std::string path : {"device", "tcp"}) {
    Words words = {"bench",      "push", "--model",   files_.model(),
                   "--device",   "cuda", "--alone",   "1",
                   "--pushes",   "2",    "--checked", "2",
                   "--slice-us", "1",    "--json"};
    if (path == "tcp") words = words + Words{"--path", "tcp"};
    const ProgramRun run = run_troupe(words);
    ASSERT_EQ(run.status, 0) << run.output;
    EXPECT_EQ(run.line["path"], path);
    EXPECT_EQ(run.line["device"], "cuda");
    EXPECT_EQ(run.line["served_on_device"], path == "device" ? 6 : 0);
    EXPECT_GE(run.line["checked_versions"], 2);
    EXPECT_GT(run.line["checked_tokens"], 24);
    EXPECT_EQ(run.line["mixed_tokens"], 0);
    EXPECT_GT(run.line["steps_during"], 0);
    EXPECT_GT(run.line["gb_per_s"], 0);
  }
  expect_error({"bench", "push", "--device", "cuda", "--path", "shm"}, 2,
               {"--path shm", "there are device and tcp"});
  expect_error({"bench", "push", "--path", "device"}, 2, {"--path device needs --device cuda"});
}

}  // namespace troupe::test
