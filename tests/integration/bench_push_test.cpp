// `troupe bench push`: weights reach an engine in a second process on every path, and each token
// has the bits of the version that it claims.
#include "tests/integration/exact_support.hpp"

namespace troupe::test {
namespace {

class BenchPush : public testing::TestWithParam<const char*> {};

TEST_P(BenchPush, NoTokenIsMadeOfTwoVersions) {
  const ProgramRun run =
      run_troupe({"bench", "push", "--bytes", "3000000", "--path", GetParam(), "--pushes", "5",
                  "--checked", "6", "--slice-us", "1", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.line["path"], GetParam());
  EXPECT_GE(run.line["checked_versions"], 2);
  EXPECT_GT(run.line["checked_tokens"], 24);
  EXPECT_EQ(run.line["mixed_tokens"], 0);
  EXPECT_GT(run.line["steps_during"], 0);
  EXPECT_GT(run.line["gb_per_s"], 0);
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         BenchPush,
                         testing::Values("shm", "tcp", "local"),
                         [](const auto& path) { return std::string(path.param); });

TEST(BenchPushTypes, SendsHalfOfItForABf16Engine) {
  const ProgramRun run = run_troupe({"bench", "push", "--bytes", "3000000", "--dtype", "bf16",
                                     "--pushes", "2", "--checked", "2", "--alone", "5", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_LT(run.line["bytes"], 1'700'000);
  EXPECT_EQ(run.line["mixed_tokens"], 0);
  EXPECT_GT(run.line["checked_tokens"], 24);
}

TEST(BenchPushFlags, RefuseAPathThatIsNone) {
  EXPECT_EQ(run_troupe({"bench", "push", "--path", "pigeon"}).status, 2);
  EXPECT_EQ(run_troupe({"bench", "push", "--dtype", "int8"}).status, 2) << "it cannot be checked";
}

}  // namespace
}  // namespace troupe::test
