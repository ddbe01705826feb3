// Ranks that have a device each, emulated, and NCCL between them, emulated too: the bits of one
// process on the processor, and the bytes go from device to device.
#include "company_support.hpp"
#include "gpu_support.hpp"

namespace troupe::test {
namespace {

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

}  // namespace

TEST_F(GpuGangs, BytesGoFromDeviceToDevice) {
  const auto host = calm(2);
  CompanyRun run(files_ / "devices", on_devices("devices", 2));
  ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
  expect_same_bits(host, run.folder(), 2);
  const std::string said = said_by_rank_0(run);
  EXPECT_NE(said.find("the ranks of policy move bytes between their devices by NCCL 2.28.9"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("have no link"), std::string::npos) << said;
  // Each rank sends and gets a half of the gradient and of the weights in each step.
  for (const char* rank : {"rank 0 of 2: ", "rank 1 of 2: "}) {
    EXPECT_TRUE(within(10, [&] { return moved().find(rank) != std::string::npos; }));
    const std::string lines = moved();
    const auto at = lines.find(rank);
    ASSERT_NE(at, std::string::npos) << lines;
    EXPECT_GT(std::stoull(lines.substr(at + 13)), 100'000u) << lines;
  }
}

TEST_F(GpuGangs, AKilledRankChangesNoBit) {
  const auto host = calm(4);
  CompanyRun run(files_ / "struck", on_devices("struck", 4));
  const pid_t pid = run.node_after("policy-1", 2);
  ASSERT_GT(pid, 0) << run.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
  expect_same_bits(host, run.folder(), 4);
  EXPECT_NE(run.log().find("going on from "), std::string::npos) << run.log();
}

TEST_F(GpuGangs, WithoutALinkTheyGoByWayOfTheHost) {
  const auto host = calm(2);
  set("TROUPE_NCCL_EMULATOR", "refuse");
  CompanyRun run(files_ / "host", on_devices("host", 2));
  ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
  expect_same_bits(host, run.folder(), 2);
  const std::string said = said_by_rank_0(run);
  const auto line = said.find("the devices of policy have no link (");
  ASSERT_NE(line, std::string::npos) << said;
  EXPECT_EQ(said.find("have no link", line + 40), std::string::npos) << said;
  EXPECT_EQ(said.find("between their devices by NCCL"), std::string::npos) << said;
  EXPECT_EQ(text_of(run.folder() / "nodes" / "policy-1.log").find("have no link"),
            std::string::npos);
  EXPECT_EQ(moved(), "");
}

}  // namespace troupe::test
