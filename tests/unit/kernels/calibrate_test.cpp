// The share of a limit, worked by hand, and that every member of a team sees the same limits.
#include "kernels/calibrate.hpp"

#include "tests/unit/kernels/support.hpp"

#include <array>
#include <thread>

namespace troupe::kernels::test {
namespace {

TEST(MachineLimits, ShareIsOfTheNarrowerLimit) {
  const MachineLimits limits{.threads = 1, .fma_gflops = 100.0, .read_gb_per_s = 10.0};
  EXPECT_DOUBLE_EQ(limits.share_of_limit(1e11, 1.0, 2.0), 0.5);   // a second of multiply-adds
  EXPECT_DOUBLE_EQ(limits.share_of_limit(1.0, 1e10, 4.0), 0.25);  // a second of reading
  EXPECT_DOUBLE_EQ(limits.share_of_limit(1e11, 3e10, 3.0), 1.0);
}

TEST(Calibration, MembersSeeTheSameLimits) {
  Calibration calibration(ops(), 1 << 20);
  core::TeamBarrier barrier(2);
  std::array<MachineLimits, 2> limits;
  {
    const auto member = [&](int rank) {
      flush_denormals();
      limits[static_cast<std::size_t>(rank)] = calibration.measure({rank, 2, &barrier}, 2);
    };
    std::jthread other(member, 1);
    member(0);
  }
  EXPECT_EQ(limits[0].threads, 2);
  EXPECT_GT(limits[0].fma_gflops, 0.0);
  EXPECT_GT(limits[0].read_gb_per_s, 0.0);
  EXPECT_EQ(limits[0].fma_gflops, limits[1].fma_gflops);
  EXPECT_EQ(limits[0].read_gb_per_s, limits[1].read_gb_per_s);
}

}  // namespace
}  // namespace troupe::kernels::test
