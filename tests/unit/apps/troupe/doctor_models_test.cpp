// The trial of every family in `troupe doctor`: each is tried, agrees to the bit, and is what it
// says.
#include "apps/troupe/doctor_models.hpp"

#include <gtest/gtest.h>

namespace troupe::app {
namespace {

TEST(DoctorModels, EngineAndScorerAgreeForEveryFamily) {
  for (const model::Family& family : model::families()) {
    const auto check = check_family(family);
    ASSERT_TRUE(check) << family.language << ": " << check.error().message;
    EXPECT_EQ(check->tokens, 48) << family.language;
    EXPECT_EQ(check->differing, 0) << family.language;
  }
}

// A trial that left out what is special about a family would say nothing about it.
TEST(DoctorModels, TinyModelsHaveWhatTheirFamiliesHave) {
  for (const model::Family& family : model::families()) {
    const auto spec = model::parse_spec(tiny_config(family), family.language);
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(spec->architecture, family.language);
    EXPECT_EQ(spec->qk_norm, family.qk_norm);
    EXPECT_EQ(spec->post_norms, family.post_norms);
    EXPECT_EQ(spec->rotary() < spec->head_dim, family.partial_rotary);
    EXPECT_EQ(spec->sliding_rope.has_value(), family.sliding_theta > 0);
    EXPECT_EQ(!spec->sliding.empty(), family.windows != model::WindowRule::kNone);
    EXPECT_LT(spec->window, 19 + 24);  // the last tokens do not see the first
  }
}

TEST(DoctorModels, PrintsALineForEach) {
  testing::internal::CaptureStdout();
  ASSERT_TRUE(print_families());
  const std::string page = testing::internal::GetCapturedStdout();
  for (const model::Family& family : model::families())
    EXPECT_NE(page.find(family.language), std::string::npos) << page;
  EXPECT_EQ(page.find("WRONG"), std::string::npos) << page;
}

}  // namespace
}  // namespace troupe::app
