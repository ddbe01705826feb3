// Who comes in, under which names.
#include "actors/node/admission.hpp"

#include "runtime/core/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

wire::Hello hello(std::string name, std::string pass = "", std::uint64_t epoch = 1) {
  return {std::move(name), core::RunId{0}, epoch, std::move(pass)};
}

TEST(Admission, APassIsGoodOnce) {
  Admission admission;
  const std::string pass = admission.issue_pass();
  EXPECT_EQ(pass.size(), 64u);
  EXPECT_FALSE(admission.admit(hello("node/a", ""), "x"));
  EXPECT_FALSE(admission.admit(hello("node/a", pass + "0"), "x"));
  EXPECT_TRUE(admission.admit(hello("node/a", pass), "x"));
  EXPECT_EQ(admission.node_of("x"), "node/a");
  EXPECT_FALSE(admission.admit(hello("node/b", pass), "y"));
}

TEST(Admission, ABrokenLinkIsMadeAgainWithTheSamePass) {
  Admission admission;
  const std::string pass = admission.issue_pass();
  ASSERT_TRUE(admission.admit(hello("node/a", pass), "x"));
  EXPECT_FALSE(admission.admit(hello("node/a", pass), "y")) << "still there";
  admission.forget("node/a");
  EXPECT_FALSE(admission.admit(hello("node/b", pass), "y"));
  EXPECT_TRUE(admission.admit(hello("node/a", pass), "y"));
}

TEST(Admission, ANameIsTakenUntilItsNodeIsForgotten) {
  Admission admission;
  ASSERT_TRUE(admission.admit(hello("node/a", admission.issue_pass()), "x"));
  const auto refused = admission.admit(hello("node/a", admission.issue_pass()), "y");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--name"), std::string::npos);
  admission.forget("node/a");
  EXPECT_EQ(admission.node_of("x"), "");
  EXPECT_TRUE(admission.admit(hello("node/a", admission.issue_pass()), "y"));
}

TEST(Admission, ARoleComesFromTheNodeItWasStartedOnWithItsEpoch) {
  Admission admission;
  EXPECT_FALSE(admission.admit(hello("generator/0"), "x")) << "nobody there";
  ASSERT_TRUE(admission.admit(hello("node/a", admission.issue_pass()), "x"));
  ASSERT_TRUE(admission.admit(hello("node/b", admission.issue_pass()), "y"));
  EXPECT_FALSE(admission.admit(hello("generator/0"), "x")) << "not started";
  admission.expect("node/a", "generator/0", 4);
  EXPECT_FALSE(admission.admit(hello("generator/0", "", 3), "x"));
  EXPECT_FALSE(admission.admit(hello("generator/0", "", 4), "y"));
  EXPECT_TRUE(admission.admit(hello("generator/0", "", 4), "x"));
  EXPECT_FALSE(admission.admit(hello("controller/0", "", 1), "x"));
}

TEST(Admission, OnlyANodeThatAttachesRewardsBringsThem) {
  Admission admission;
  ASSERT_TRUE(admission.admit(hello("node/a", admission.issue_pass()), "x"));
  EXPECT_FALSE(admission.admit(hello("reward/format"), "x"));
  admission.allow_kind("node/a", "reward");
  EXPECT_TRUE(admission.admit(hello("reward/format"), "x"));
  EXPECT_FALSE(admission.admit(hello("policy/0"), "x"));
  EXPECT_FALSE(admission.admit(hello("serve/1"), "x"));
  EXPECT_FALSE(admission.admit(hello("rewards/1"), "x"));
}

TEST(Admission, ANameThatIsNoneIsRefused) {
  Admission admission;
  for (const std::string name :
       {"", "node", "node/", "/a", "node/a b", "node/\x1b[2J", "node/../x"}) {
    EXPECT_FALSE(admission.admit(hello(name, admission.issue_pass()), "x")) << name;
  }
  EXPECT_FALSE(admission.admit(
      hello("node/" + std::string(core::limits::kPeerName_bytes_max, 'a'), admission.issue_pass()),
      "x"));
}

TEST(Admission, TheOldestUnusedPassesLapse) {
  Admission admission;
  const std::string first = admission.issue_pass();
  for (std::uint64_t i = 0; i < core::limits::kPasses_max; ++i)
    admission.issue_pass();
  EXPECT_FALSE(admission.admit(hello("node/a", first), "x"));
}

}  // namespace
}  // namespace troupe::actors
