// Which level runs: TROUPE_ISA is obeyed or refused, and denormals are flushed per thread.
#include "tests/unit/kernels/support.hpp"

#include <cstdlib>
#include <thread>

namespace troupe::kernels::test {
namespace {

TEST(Dispatch, ReferenceIsAlwaysThere) {
  EXPECT_TRUE(isa_available(Isa::kReference));
  EXPECT_STREQ(ops_for(Isa::kReference).name, "reference");
}

TEST(DispatchDeathTest, UnknownLevelExitsWithTwo) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  ASSERT_EXIT(
      {
        setenv("TROUPE_ISA", "sse9", 1);
        ops();
      },
      ::testing::ExitedWithCode(2), "TROUPE_ISA=sse9.*reference");
}

TEST(DispatchDeathTest, NamedLevelIsChosen) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  ASSERT_EXIT(
      {
        setenv("TROUPE_ISA", "reference", 1);
        std::exit(std::string(ops().name) == "reference" ? 7 : 8);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(Dispatch, DenormalsAreFlushedInTheCallingThread) {
  float sum = 1.0f;
  std::jthread([&] {
    flush_denormals();
    volatile float tiny = 1e-38f;
    sum = tiny * 0.5f;
  }).join();
  EXPECT_EQ(sum, 0.0f);
}

}  // namespace
}  // namespace troupe::kernels::test
