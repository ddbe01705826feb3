// Ranks that have a device each, emulated, and NCCL between them, emulated too: the bits of one
// process on the processor, and the bytes go from device to device.
#include "two_gpus_support.hpp"

namespace troupe::test {

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
