// Classes of arithmetic on the emulated device, where device 1 is of an older compute capability:
// what mixes, what is refused at the start of a role and when a run goes on, and with which words.
#include "gpu_support.hpp"

namespace troupe::test {

using Words = std::vector<std::string>;

class GpuClasses : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (!is_emulated()) GTEST_SKIP() << "needs devices of two compute capabilities";
    set("TROUPE_CUDA_EMULATOR", "guard,devices:2,older:1");
  }
  Words on_tensor_cores(const std::string& run,
                        const std::string& engines,
                        const std::string& steps = "1") const {
    return files_.words(run) + Words{"--actor.param_dtype",
                                     "bf16-compute",
                                     "--actor.device",
                                     "cuda:0",
                                     "--ref.device",
                                     "cuda:0",
                                     "--rollout.device",
                                     engines,
                                     "--train.max_steps",
                                     steps,
                                     "--actor.min_lr_ratio",
                                     "1",
                                     "--actor.lr_warmup_ratio",
                                     "0"};
  }
};

TEST_F(GpuClasses, TensorCoresOfTwoKindsAreRefusedWithBothNames) {
  const Words both = {"in class bf16-compute/v1/abi", "/sm_80/", "/sm_90/",
                      "their log-probs would differ", "--actor.param_dtype bf16"};
  const Words words = on_tensor_cores("run", "cuda:1");
  expect_error(words + Words{"--cluster.transport", "loopback"}, 2,
               both + Words{"generator/0 (rollout.device cuda:1) computes",
                            "policy/0 (actor.device cuda:0) in class"});
  expect_error(words, 2,
               both + Words{"generator/0 (node/generator-0 on ", "policy/0 (node/policy on "});
}

// Two ranks of the policy cannot share its work either: the gang never meets.
TEST_F(GpuClasses, RanksOfTwoClassesAreRefusedWithBothNames) {
  expect_error(on_tensor_cores("run", "cuda:0") +
                   Words{"--actor.ranks", "2", "--actor.device", "cuda:0,cuda:1"},
               2,
               {"in class bf16-compute/v1/abi", "/sm_80/", "/sm_90/", "policy/0", "policy/1",
                "ranks of policy with different bits cannot share its work", "--actor.device"});
}

TEST_F(GpuClasses, ExactOnesMixWithEachOtherAndTheProcessor) {
  const Words bf16 = {"--actor.param_dtype", "bf16", "--rollout.generators", "2"};
  const auto host = metrics_of(trained("host", bf16));
  ASSERT_EQ(host.size(), 2u);
  EXPECT_EQ(metrics_of(trained(
                "mixed", bf16 + Words{"--actor.device", "cuda:0", "--rollout.device", "cpu,cuda:1"},
                "caf")),
            host);
  EXPECT_NE(said_.find("policy on cuda:0, generators in turn on cpu and cuda:1"), std::string::npos)
      << said_;
}

TEST_F(GpuClasses, ARunGoesOnInItsClassOrAsABranch) {
  const Words one_process = {"--cluster.transport", "loopback"};
  output_of(on_tensor_cores("run", "cuda:0") + one_process);
  const std::string first = path("run") + "/ckpt/step_000001";
  const std::string manifest = text_of(first + "/manifest.json");
  EXPECT_NE(manifest.find("bf16-compute/v1/abi"), std::string::npos) << manifest;
  const Words words = on_tensor_cores("run", "cuda:0", "2") + one_process;
  set("TROUPE_CUDA_EMULATOR", "guard,older:0");
  expect_error(
      words, 2,
      {"step_000001 was made on other devices or by another build: the class of "
       "arithmetic was bf16-compute/v1/abi",
       "/sm_90/", "and is", "/sm_80/", "start a branch: the same command with --resume " + first});
  const std::string branch =
      output_of(words + Words{"--resume", first, "--run.path", path("branch")});
  EXPECT_NE(branch.find("changed since the checkpoint: the class of arithmetic was bf16-compute/"),
            std::string::npos)
      << branch;
  set("TROUPE_CUDA_EMULATOR", "guard");
  const std::string again = output_of(words);
  EXPECT_NE(again.find("going on from " + first), std::string::npos) << again;
}

TEST_F(GpuClasses, SupervisedTrainingGoesOnInItsClass) {
  const auto sft = [&](const std::string& steps, const std::string& device) {
    return Words{"train",
                 "sft",
                 "--actor.model_name_or_path",
                 files_.model(),
                 "--data.dataset",
                 path("train.jsonl"),
                 "--data.input_key",
                 "prompt",
                 "--data.output_key",
                 "answer",
                 "--train.batch_size",
                 "4",
                 "--train.max_steps",
                 steps,
                 "--run.path",
                 path("sft"),
                 "--actor.min_lr_ratio",
                 "1",
                 "--actor.lr_warmup_ratio",
                 "0",
                 "--actor.param_dtype",
                 "bf16-compute",
                 "--actor.device",
                 device};
  };
  output_of(sft("1", "cuda:0"));
  set("TROUPE_CUDA_EMULATOR", "guard,older:0");
  expect_error(sft("2", "cuda:0"), 2,
               {"the class of arithmetic was bf16-compute/v1/abi", "/sm_90/", "/sm_80/"});
  set("TROUPE_CUDA_EMULATOR", "guard");
  output_of(sft("2", "cuda:0"));
}

}  // namespace troupe::test
