// Roles whose log-probs are compared keep to the policy's class of arithmetic.
#include "tests/unit/actors/company/company_stage.hpp"

namespace troupe::actors::testing {
namespace {

using std::chrono::seconds;

const std::string kOther = "bf16-compute/v1/abi7/sm_80/b";

bool says(const CompanyStage& stage, const std::vector<std::string>& parts) {
  for (const std::string& note : stage.notes()) {
    const bool all = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return note.find(part) != note.npos;
    });
    if (all) return true;
  }
  return false;
}

bool is_up(const CompanyStage& stage, const std::string& role) {
  const company::PlacedRole* const placed = stage.company().placement().find(role);
  return placed != nullptr && placed->state == company::RoleState::kUp;
}

}  // namespace

TEST(ArithmeticClasses, AreThePolicysOrRefusedByName) {
  company::ArithmeticClasses classes;
  classes.note("generator/0", "f32/v1/a", "node/g on b");
  classes.note("reward/0", "", "node/r on b");
  EXPECT_TRUE(classes.check("generator/0")) << "the policy's is not known";
  classes.note("policy/0", "bf16-compute/v1/abi7/sm_90/c", "node/p on a");
  const auto refused = classes.check("generator/0");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message,
            "generator/0 (node/g on b) computes in class f32/v1/a, policy/0 (node/p on a) in class "
            "bf16-compute/v1/abi7/sm_90/c: their log-probs would differ; with actor.param_dtype "
            "bf16-compute give them GPUs of one compute capability and one build of "
            "libtroupe_cuda.so, or give --actor.param_dtype bf16, in which all devices mix");
  EXPECT_EQ(classes.strangers(), std::vector<std::string>{"generator/0"});
  EXPECT_TRUE(classes.check("reward/0"));
  EXPECT_TRUE(classes.check("policy/0"));
  classes.note("policy/0", "f32/v1/a", "node/p on a");
  EXPECT_TRUE(classes.check("generator/0"));
  EXPECT_TRUE(classes.strangers().empty());
  classes.note("generator/0", "f32/v1/d", "node/g on b");
  EXPECT_NE(classes.check("generator/0").error().message.find("`troupe doctor`"),
            std::string::npos);
  EXPECT_EQ(classes.of("policy/0"), "f32/v1/a");
  EXPECT_EQ(classes.of("reward/0"), "");
}

TEST(CompanyArithmetic, AJoinedGeneratorOfAnotherClassIsNotUsed) {
  CompanyStage stage(3, {{"node/policy", {"policy"}}}, {{"policy", "policy/0", "node/policy"}});
  stage.refusals().classes["node/odd"] = kOther;
  stage.run_for(seconds(5));
  ASSERT_TRUE(is_up(stage, "policy/0"));
  stage.guest("node/odd", {"generator"}, 7);
  stage.run_for(seconds(30));
  EXPECT_FALSE(is_up(stage, "generator/0"));
  EXPECT_EQ(stage.asked("generator/0 at node/odd"), 1u) << "it is not asked again";
  EXPECT_TRUE(says(stage, {"node/odd cannot run generator/0", "generator/0 (node/odd on here)",
                           kOther, "policy/0 (node/policy on here) in class f32/v1/a"}));
  EXPECT_EQ(stage.hopeless(), "");
  stage.guest("node/even", {"generator"}, 8);
  stage.run_for(seconds(10));
  EXPECT_TRUE(is_up(stage, "generator/1"));
}

TEST(CompanyArithmetic, ALocalRoleOfAnotherClassEndsTheRun) {
  CompanyStage stage(
      5, {{"node/policy", {"policy"}}, {"node/reference", {"reference"}}},
      {{"policy", "policy/0", "node/policy"}, {"reference", "reference/0", "node/reference"}});
  stage.refusals().classes["node/reference"] = kOther;
  stage.may_end();
  stage.run_for(seconds(10));
  EXPECT_NE(stage.hopeless().find("reference/0 (node/reference on here) computes in class " +
                                  kOther + ", policy/0 (node/policy on here) in class f32/v1/a"),
            std::string::npos)
      << stage.hopeless();
  EXPECT_FALSE(is_up(stage, "reference/0"));
}

// The policy says which class a run has, whoever was up first.
TEST(CompanyArithmetic, AGeneratorThatWasUpBeforeThePolicyIsTakenDown) {
  CompanyStage stage(9, {}, {{"policy", "policy/0", ""}});
  stage.refusals().classes["node/odd"] = kOther;
  stage.guest("node/odd", {"generator"}, 7);
  stage.guest("node/even", {"generator"}, 8);
  stage.run_for(seconds(10));
  ASSERT_TRUE(is_up(stage, "generator/0"));
  ASSERT_TRUE(is_up(stage, "generator/1"));
  stage.guest("node/policy", {"policy"}, 9);
  stage.run_for(seconds(40));
  EXPECT_TRUE(is_up(stage, "policy/0"));
  const bool odd_first = stage.asked("generator/0 at node/odd") > 0;
  EXPECT_FALSE(is_up(stage, odd_first ? "generator/0" : "generator/1"));
  EXPECT_TRUE(is_up(stage, odd_first ? "generator/1" : "generator/0"));
  EXPECT_TRUE(says(stage, {"node/odd cannot run", kOther}));
  EXPECT_EQ(stage.hopeless(), "");
}

}  // namespace troupe::actors::testing
