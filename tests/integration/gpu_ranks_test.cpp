// Trainers whose weights are not all on their GPUs: master weights and moments on the host
// (train.offload), weights divided among ranks (train.zero_stage 3). They have the bits of one
// process on processors, and need less of a GPU.
#include "gpu_support.hpp"

namespace troupe::test {

using Words = std::vector<std::string>;

class GpuRanks : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (is_emulated()) set("TROUPE_CUDA_EMULATOR", "guard,devices:2");
  }
  Words words(const std::string& run, const Words& more) const {
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
                 "2",
                 "--train.lanes",
                 "2",
                 "--run.path",
                 path(run)} +
           more;
  }
  // Metrics of a run, and the hash of its weights.
  std::pair<std::string, std::string> left_by(const std::string& run, const Words& more) const {
    output_of(words(run, more));
    std::ostringstream metrics;
    for (const auto& [step, values] : metrics_of(files_ / run))
      metrics << step << ' ' << values << '\n';
    const std::string hash =
        hashes_of(files_ / run / "ckpt" / "step_000002")["model/model.safetensors"];
    EXPECT_FALSE(metrics.str().empty() || hash.empty());
    return {metrics.str(), hash};
  }
};

TEST_F(GpuRanks, OffloadHasTheBitsOfTheProcessor) {
  const auto host = left_by("host", {});
  EXPECT_EQ(left_by("one", {"--actor.device", "cuda", "--train.offload", "true"}), host);
}

TEST_F(GpuRanks, OffloadAndDividedWeightsHaveTheBitsOfTheProcessor) {
  if (!is_emulated()) GTEST_SKIP() << "needs two devices";
  const auto host = left_by("host", {});
  const Words two = {"--actor.ranks", "2", "--actor.device", "cuda:0,cuda:1"};
  EXPECT_EQ(left_by("run", two + Words{"--train.offload", "true", "--train.zero_stage", "3"}),
            host);
}

}  // namespace troupe::test
