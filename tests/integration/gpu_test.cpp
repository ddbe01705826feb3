// The program with a GPU: what `--device cuda` gives is what the processor gives, to the bit, and
// what is missing is said by name. On the emulated device, which calls host code that touches a
// device's memory a crash; or with the library that TROUPE_TEST_CUDA_LIBRARY names (gpu-check).
#include "gpu_support.hpp"

namespace troupe::test {

TEST_F(Gpu, GreedyAndSampledTokensAreThoseOfTheProcessor) {
  expect_the_same({"--temperature", "0", "--max-new-tokens", "9"});
  expect_the_same({"--n", "3", "--max-new-tokens", "12"});
  expect_the_same(
      {"--n", "2", "--temperature", "0.7", "--dtype", "bf16", "--max-new-tokens", "12"});
}

TEST_F(Gpu, CutSamplesAreThoseOfTheProcessor) {
  expect_the_same({"--n", "2", "--top-k", "20", "--max-new-tokens", "12"});
  expect_the_same({"--n", "2", "--top-p", "0.8", "--min-p", "0.02", "--max-new-tokens", "12"});
}

TEST_F(Gpu, SmallBatchesAndFewBlocksChangeNothing) {
  expect_the_same({"--n", "2", "--max-num-seqs", "3", "--max-new-tokens", "20"});
  // Ten blocks of 16 tokens: samples give theirs back and come again.
  expect_the_same({"--n", "4", "--kv-cache-memory-bytes", "81920", "--max-new-tokens", "40"});
}

TEST_F(Gpu, WhatIsMissingIsSaidByName) {
  if (!is_emulated()) GTEST_SKIP() << "needs the emulated device";
  expect_error(one("cuda:7"), 3, {"--device cuda:7", "no device cuda:7", "this machine has 1"});
  expect_error(one("gpu"), 2, {"--device gpu", "cpu, cuda or cuda:N"});
  set("TROUPE_CUDA_EMULATOR", "none");
  expect_error(one("cuda"), 3, {"no device cuda:0", "nvidia-smi"});
  set("TROUPE_CUDA_LIBRARY", path("none.so"));
  expect_error(one("cuda:0"), 3, {"--device cuda:0", "cannot be loaded", "none.so"});
}

TEST_F(Gpu, ARunNamesTheKeyOfAMissingDevice) {
  std::vector<std::string> words = files_.words("run");
  words.insert(words.end(), {"--rollout.device", "cuda:3"});
  expect_error(words, 3, {"rollout.device cuda:3", "this machine has 1"});
  words.back() = "gpu";
  expect_error(words, 2, {"rollout.device", "there is no device 'gpu'"});
}

TEST_F(Gpu, MemoryThatRunsOutIsSaidInNumbersAndFlags) {
  if (!is_emulated()) GTEST_SKIP() << "needs the emulated device";
  set("TROUPE_CUDA_EMULATOR_MEMORY", "20000000");  // the blocks of 256 sequences take 32 MiB
  expect_error(one("cuda"), 3, {"0.02 GiB", "--kv-cache-memory-bytes", "--max-num-seqs"});
  std::vector<std::string> words = one("cuda");
  words.insert(words.end(), {"--kv-cache-memory-bytes", "1000000"});
  EXPECT_EQ(troupe_ends(words, files_ / "log.txt", 30).status, 0);
}

TEST(GpuExperts, AreRefused) {
  const TinyRun files(tiny_moe());
  const char* const build = std::getenv("TROUPE_BUILD_DIR");
  const std::string library =
      std::string(build != nullptr ? build : "build") + "/bin/libtroupe_cuda_emulated.so";
  ::setenv("TROUPE_CUDA_LIBRARY", library.c_str(), 1);
  const Ended ended =
      troupe_ends({"generate", "--model", files.model(), "--prompt", "a", "--device", "cuda"},
                  files / "log.txt", 30);
  EXPECT_EQ(ended.status, 2) << ended.text;
  EXPECT_NE(ended.text.find("on the processor only"), std::string::npos) << ended.text;
}

// Products on tensor cores are not the processor's, but the engine's log-probs are the trainer's.
TEST_F(Gpu, TensorCoresAgreeWithThemselves) {
  const auto metrics = metrics_of(
      trained("tensor", {"--actor.device", "cuda", "--ref.device", "cuda", "--rollout.device",
                         "cuda", "--actor.param_dtype", "bf16-compute"}));
  ASSERT_EQ(metrics.size(), 2u);
  for (const auto& [update, values] : metrics)
    EXPECT_EQ(values.at("kl/rollout_train"), 0) << update << " " << values;
  EXPECT_NE(metrics, metrics_of(trained("exact", {"--actor.param_dtype", "bf16"})));
}

TEST_F(Gpu, TensorCoresOfSomeRolesOnlyAreRefused) {
  std::vector<std::string> words = files_.words("run");
  words.insert(words.end(), {"--actor.param_dtype", "bf16-compute"});
  expect_error(words, 2, {"actor.param_dtype", "--actor.device cuda"});
  words.insert(words.end(), {"--actor.device", "cuda", "--ref.device", "cuda"});
  expect_error(words, 2, {"rollout.device", "--actor.param_dtype bf16"});
}

TEST_F(Gpu, TheDoctorDescribesTheDevice) {
  if (!is_emulated()) GTEST_SKIP() << "needs the emulated device";
  set("TROUPE_CUDA_EMULATOR_MEMORY", "67108864");  // a quarter of it is read and copied
  const ProgramRun facts = run_troupe({"doctor", "--gpus", "--json"});
  ASSERT_EQ(facts.status, 0) << facts.output;
  const auto& gpu = facts.line.at("gpus").at(0);
  EXPECT_EQ(gpu.at("device"), "cuda:0");
  EXPECT_EQ(gpu.at("memory_bytes"), 67108864);
  const auto classes = gpu.at("arithmetic").get<std::vector<std::string>>();
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_TRUE(classes[0].starts_with("f32/v1/")) << classes[0];
  EXPECT_TRUE(classes[2].starts_with("bf16-compute/v1/abi")) << classes[2];
  for (const char* speed : {"read_gb_per_s", "copy_gb_per_s", "upload_gb_per_s",
                            "download_gb_per_s", "fma_gflops", "mma_gflops"})
    EXPECT_GT(gpu.at(speed), 0) << speed;
  const Ended text = troupe_ends({"doctor", "--gpus"}, files_ / "log.txt", 30);
  EXPECT_NE(text.text.find("cuda:0 emulated CUDA device, sm_90, 4 multiprocessors"),
            std::string::npos)
      << text.text;
  EXPECT_NE(text.text.find("arithmetic " + classes[0] + ", " + classes[1]), std::string::npos);
  EXPECT_EQ(text.text.find("WRONG"), std::string::npos) << text.text;
  set("TROUPE_CUDA_EMULATOR", "none");
  expect_error({"doctor", "--gpus", "--json"}, 3, {"no GPU", "nvidia-smi"});
}

TEST_F(Gpu, ProductsAreMeasuredThere) {
  set("TROUPE_CUDA_EMULATOR_MEMORY", "536870912");
  const ProgramRun run = run_troupe({"bench", "gemm", "--device", "cuda", "--n", "32", "--k", "32",
                                     "--m", "2", "--dtype", "bf16-compute", "--json"});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.line.at("isa"), "cuda");
  EXPECT_GT(run.line.at("gflops"), 0);
  EXPECT_GT(run.line.at("share_of_limit"), 0);
}

TEST_F(Gpu, OtherKernelsAreMeasuredThere) {
  set("TROUPE_CUDA_EMULATOR_MEMORY", "536870912");
  const ProgramRun run =
      run_troupe({"bench", "kernels", "--device", "cuda", "--shape", "tiny", "--batch", "2",
                  "--keys", "20", "--rows", "4", "--parameters", "1000", "--json"});
  ASSERT_EQ(run.status, 0) << run.output;
  std::vector<std::string> measured;
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    const auto figures = nlohmann::json::parse(line, nullptr, false);
    if (!figures.is_object()) continue;
    measured.push_back(figures.at("what"));
    EXPECT_EQ(figures.at("isa"), "cuda") << line;
    EXPECT_GT(figures.at("us"), 0) << line;
  }
  EXPECT_EQ(measured,
            (std::vector<std::string>{"attention", "attention", "attention", "attention_backward",
                                      "rmsnorm", "vocab_sums_and_draw", "adamw", "adamw_8bit"}));
}

TEST_F(Gpu, TrainingIsMeasuredThere) {
  set("TROUPE_CUDA_EMULATOR_MEMORY", "536870912");
  for (const auto& [dtype, rank] : {std::pair{"bf16-compute", "0"}, {"bf16", "2"}}) {
    const ProgramRun run = run_troupe({"bench", "train", "--model", files_.model(), "--objective",
                                       "sft", "--prompts", "2", "--new-tokens", "12", "--device",
                                       "cuda", "--dtype", dtype, "--lora", rank, "--json"});
    ASSERT_EQ(run.status, 0) << run.output;
    EXPECT_EQ(run.line.at("isa"), "cuda");
    EXPECT_EQ(run.line.at("dtype"), dtype);
    EXPECT_GT(run.line.at("tokens_per_s"), 0);
    EXPECT_GT(run.line.at("share_of_fma"), 0);
  }
}

TEST_F(Gpu, TheBenchmarkRunsThere) {
  const ProgramRun run =
      run_troupe({"bench", "generate", "--model", files_.model(), "--batch", "3", "--prompt-tokens",
                  "5", "--new-tokens", "4", "--device", "cuda", "--no-limits", "--json"});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.line["isa"], "cuda");
  EXPECT_GT(run.line["decode_tokens_per_s"], 0);
  EXPECT_TRUE(run.line["share_of_limit"].is_null());
}

TEST_F(Gpu, ARunWithRolesOnTheGpuHasTheMetricsOfTheProcessor) {
  const auto host = metrics_of(trained("host", {}));
  ASSERT_EQ(host.size(), 2u);
  EXPECT_EQ(metrics_of(trained("both", {"--actor.device", "cuda", "--rollout.device", "cuda"})),
            host);
  EXPECT_NE(said_.find("policy on cuda:0, generator on cuda:0"), std::string::npos) << said_;
  EXPECT_EQ(metrics_of(trained("trains", {"--actor.device", "cuda", "--ref.device", "cuda"})),
            host);
  // Two engines, each with a thread and a stream of its own.
  const std::vector<std::string> two = {"--rollout.generators", "2"};
  EXPECT_EQ(metrics_of(trained("generate", {two[0], two[1], "--rollout.device", "cuda"})),
            metrics_of(trained("two", two)));
}

TEST_F(Gpu, ACriticLearnsThereAsOnTheProcessor) {
  const std::vector<std::string> gae = {"--algo.advantage.estimator", "gae"};
  const auto host = metrics_of(trained("host", gae));
  ASSERT_EQ(host.size(), 2u);
  EXPECT_EQ(metrics_of(trained("critic", {gae[0], gae[1], "--critic.device", "cuda"})), host);
}

TEST_F(Gpu, AdaptersAreThoseOfTheProcessor) {
  const auto run = [&](const std::string& name, const std::string& device,
                       const std::string& dtype) {
    return trained(name, {"--actor.lora.rank", "3", "--actor.param_dtype", dtype, "--actor.device",
                          device, "--ref.device", device, "--rollout.device", device});
  };
  const auto host = run("host", "cpu", "bf16"), device = run("device", "cuda", "bf16");
  EXPECT_EQ(metrics_of(host).size(), 2u);
  EXPECT_EQ(metrics_of(device), metrics_of(host));
  const auto hashes = hashes_of(host / "ckpt" / "step_000002");
  EXPECT_TRUE(hashes.contains("adapter/adapter_model.safetensors"));
  EXPECT_EQ(hashes_of(device / "ckpt" / "step_000002"), hashes);
  // Merged weights on tensor cores: the engine's log-probs are the trainer's.
  for (const auto& [update, values] : metrics_of(run("tensor", "cuda", "bf16-compute")))
    EXPECT_EQ(values.at("kl/rollout_train"), 0) << update << " " << values;
}

TEST_F(Gpu, ProcessesThatShareAGpuHaveTheMetricsOfTheProcessor) {
  const auto host = metrics_of(trained("host", {}));
  ASSERT_EQ(host.size(), 2u);
  const std::vector<std::string> devices = {"--actor.device", "cuda",         "--rollout.device",
                                            "cuda",           "--ref.device", "cuda"};
  EXPECT_EQ(metrics_of(trained("processes", devices, "caf")), host);
  EXPECT_NE(said_.find("policy on cuda:0, generator on cuda:0, reference on cuda:0"),
            std::string::npos)
      << said_;
}

TEST_F(Gpu, SupervisedTrainingAndScoresAreThoseOfTheProcessor) {
  const auto steps = [&](const std::string& device) {
    const Ended ended =
        troupe_ends({"train", "sft", "--actor.model_name_or_path", files_.model(), "--data.dataset",
                     path("train.jsonl"), "--data.input_key", "prompt", "--data.output_key",
                     "answer", "--train.batch_size", "4", "--train.max_steps", "2", "--run.path",
                     path("sft-" + device), "--actor.device", device},
                    files_ / "sft.txt", 60);
    EXPECT_EQ(ended.status, 0) << ended.text;
    return metrics_of(files_ / ("sft-" + device));
  };
  const auto host = steps("cpu");
  EXPECT_GE(host.size(), 2u);
  EXPECT_EQ(steps("cuda"), host);

  make_reward_model();
  const auto scores = [&](const std::string& device) {
    const Ended ended = troupe_ends(
        {"score", "--model", path("rm"), "--data", path("train.jsonl"), "--response-key", "answer",
         "--out", path(device + ".jsonl"), "--device", device},
        files_ / "score.txt", 60);
    EXPECT_EQ(ended.status, 0) << ended.text;
    return text_of(files_ / (device + ".jsonl"));
  };
  const std::string by_host = scores("cpu");
  EXPECT_NE(by_host.find("reward"), std::string::npos);
  EXPECT_EQ(scores("cuda"), by_host);
  EXPECT_EQ(metrics_of(trained("run-cuda", {"--reward.model_name_or_path", path("rm"),
                                            "--reward.device", "cuda"})),
            metrics_of(trained("run-cpu", {"--reward.model_name_or_path", path("rm")})));
}

// A role that finds no room ends the run with the numbers and the keys that help.
TEST_F(Gpu, TrainingWithoutRoomSaysSo) {
  if (!is_emulated()) GTEST_SKIP() << "needs the emulated device";
  set("TROUPE_CUDA_EMULATOR_MEMORY", "1450000");  // 1 MiB of it is the workspace
  std::vector<std::string> words = files_.words("run");
  words.insert(words.end(), {"--cluster.transport", "loopback", "--actor.device", "cuda"});
  expect_error(words, 3, {"cuda:0 has", "train.micro_tokens_max"});
}

}  // namespace troupe::test
