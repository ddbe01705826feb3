// Runs whose policy has a rank on each of two emulated devices, with an emulated NCCL between them.
#pragma once

#include "company_support.hpp"
#include "gpu_support.hpp"

namespace troupe::test {

using Words = std::vector<std::string>;

class GpuGangs : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (!is_emulated_) GTEST_SKIP() << "needs two devices";
    const char* const build = std::getenv("TROUPE_BUILD_DIR");
    set("TROUPE_CUDA_EMULATOR", "guard,devices:2");
    set("TROUPE_NCCL_LIBRARY",
        std::string(build != nullptr ? build : "build") + "/bin/libtroupe_nccl_emulated.so");
    set("TROUPE_NCCL_EMULATOR_FOLDER", path(""));
    set("TROUPE_NCCL_EMULATOR", "");
  }
  // Two ranks of the policy on two devices, for `steps` updates.
  Words on_devices(const std::string& run, int steps) const {
    return files_.words(run) + Words{"--actor.ranks",     "2",
                                     "--actor.device",    "cuda:0,cuda:1",
                                     "--train.max_steps", std::to_string(steps)};
  }
  // The same in one process on the processor.
  std::filesystem::path calm(int steps) {
    return trained("calm", {"--train.lanes", "2", "--train.max_steps", std::to_string(steps)});
  }
  // What rank 0 has printed.
  static std::string said_by_rank_0(const CompanyRun& run) {
    return text_of(run.folder() / "nodes" / "policy.log");
  }
  // What the ranks say of the bytes that went from device to device, each once for a gang.
  std::string moved() const { return text_of(files_ / "moved.txt"); }
};

}  // namespace troupe::test
