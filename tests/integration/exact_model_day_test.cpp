// `troupe bench exact` on the real small model.
#include "tests/integration/exact_support.hpp"

namespace troupe::test {
namespace {

TEST(ExactModel, EngineAndTrainerAgreeInEveryBitOf500Tokens) {
  const char* model = std::getenv("TROUPE_TEST_MODEL");
  if (model == nullptr || !std::filesystem::exists(std::filesystem::path(model) / "config.json")) {
    GTEST_SKIP() << "the real small model is not here (TROUPE_TEST_MODEL); ./dev demo fetches it";
  }
  const ProgramRun run =
      run_troupe({"bench", "exact", "--model", model, "--tokens", "500", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.line["tokens"], 500);
  EXPECT_EQ(run.line["differing_bits"], 0);
  EXPECT_EQ(run.line["scorer_differing_bits"], 0);
  EXPECT_GT(run.line["trainer"]["grad_norm"], 0);
}

}  // namespace
}  // namespace troupe::test
