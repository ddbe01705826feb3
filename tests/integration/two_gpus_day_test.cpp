// A rank that has a device, and is lost.
#include "two_gpus_support.hpp"

namespace troupe::test {

class GpuGangsDay : public GpuGangs {};

TEST_F(GpuGangsDay, AKilledRankChangesNoBit) {
  const auto host = calm(4);
  CompanyRun run(files_ / "struck", on_devices("struck", 4));
  const pid_t pid = run.node_after("policy-1", 2);
  ASSERT_GT(pid, 0) << run.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
  expect_same_bits(host, run.folder(), 4);
  EXPECT_NE(run.log().find("going on from "), std::string::npos) << run.log();
}

}  // namespace troupe::test
