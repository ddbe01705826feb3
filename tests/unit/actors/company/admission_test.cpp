// Who comes in, under which names.
#include "actors/company/admission.hpp"

#include "actors/company/limits.hpp"
#include "actors/company/pass.hpp"
#include "runtime/cluster/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::company {
namespace {

wire::Hello hello(std::string name, std::string pass = "", std::uint64_t epoch = 1) {
  return {std::move(name), core::RunId{0}, epoch, std::move(pass)};
}

// A node that starts with the epoch of its pass, as it must.
wire::Hello node(std::string name, const std::string& pass) {
  return hello(std::move(name), pass, facts_of_pass(pass).value().number);
}

TEST(Admission, APassIsGoodOnce) {
  Admission admission;
  const std::string pass = admission.issue_pass();
  EXPECT_EQ(pass.size(), std::string("0-1-").size() + 64u);
  EXPECT_FALSE(admission.admit(hello("node/a", ""), "x"));
  EXPECT_FALSE(admission.admit(node("node/a", pass + "0"), "x"));
  EXPECT_TRUE(admission.admit(node("node/a", pass), "x"));
  EXPECT_EQ(admission.node_of("x"), "node/a");
  EXPECT_FALSE(admission.admit(node("node/b", pass), "y"));
}

TEST(Admission, ABrokenLinkIsMadeAgainWithTheSamePass) {
  Admission admission;
  const std::string pass = admission.issue_pass();
  ASSERT_TRUE(admission.admit(node("node/a", pass), "x"));
  EXPECT_FALSE(admission.admit(node("node/a", pass), "y")) << "still there";
  admission.forget("node/a");
  EXPECT_FALSE(admission.admit(node("node/b", pass), "y"));
  EXPECT_TRUE(admission.admit(node("node/a", pass), "y"));
}

TEST(Admission, ANameIsTakenUntilItsNodeIsForgotten) {
  Admission admission;
  ASSERT_TRUE(admission.admit(node("node/a", admission.issue_pass()), "x"));
  const auto refused = admission.admit(node("node/a", admission.issue_pass()), "y");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--name"), std::string::npos);
  admission.forget("node/a");
  EXPECT_EQ(admission.node_of("x"), "");
  EXPECT_TRUE(admission.admit(node("node/a", admission.issue_pass()), "y"));
}

TEST(Admission, ARoleComesFromTheNodeItWasStartedOnWithItsEpoch) {
  Admission admission;
  EXPECT_FALSE(admission.admit(hello("generator/0"), "x")) << "nobody there";
  ASSERT_TRUE(admission.admit(node("node/a", admission.issue_pass()), "x"));
  ASSERT_TRUE(admission.admit(node("node/b", admission.issue_pass()), "y"));
  EXPECT_FALSE(admission.admit(hello("generator/0"), "x")) << "not started";
  admission.expect("node/a", "generator/0", 4);
  EXPECT_FALSE(admission.admit(hello("generator/0", "", 3), "x"));
  EXPECT_FALSE(admission.admit(hello("generator/0", "", 4), "y"));
  EXPECT_TRUE(admission.admit(hello("generator/0", "", 4), "x"));
  EXPECT_FALSE(admission.admit(hello("controller/0", "", 1), "x"));
}

TEST(Admission, OnlyANodeThatAttachesRewardsBringsThem) {
  Admission admission;
  ASSERT_TRUE(admission.admit(node("node/a", admission.issue_pass()), "x"));
  EXPECT_FALSE(admission.admit(hello("reward/format"), "x"));
  admission.allow_kind("node/a", "reward");
  EXPECT_TRUE(admission.admit(hello("reward/format"), "x"));
  EXPECT_FALSE(admission.admit(hello("policy/0"), "x"));
  EXPECT_FALSE(admission.admit(hello("serve/1"), "x"));
  EXPECT_FALSE(admission.admit(hello("rewards/1"), "x"));
}

// A guest chooses the name of its reward, and takes no role of the run with it.
TEST(Admission, AGuestTakesNoRoleOfTheRun) {
  Admission admission;
  ASSERT_TRUE(admission.admit(node("node/own", admission.issue_pass()), "x"));
  ASSERT_TRUE(admission.admit(node("node/guest", admission.issue_pass()), "y"));
  admission.expect("node/own", "reward/judge", 3);
  admission.allow_kind("node/guest", "reward");
  const auto taken = admission.admit(hello("reward/judge"), "y");
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("--name"), std::string::npos) << taken.error().message;
  EXPECT_TRUE(admission.admit(hello("reward/judge-2"), "y"));
  EXPECT_TRUE(admission.admit(hello("reward/judge", "", 3), "x"));
}

TEST(Admission, ANameThatIsNoneIsRefused) {
  Admission admission;
  for (const std::string name : {"", "node", "node/", "/a", "node/a b", "node/\x1b[2J", "node/../x",
                                 "node/.", "node/..", "../a", "node/a\n"}) {
    EXPECT_FALSE(admission.admit(node(name, admission.issue_pass()), "x")) << name;
  }
  EXPECT_FALSE(
      admission.admit(node("node/" + std::string(cluster::limits::kPeerName_bytes_max, 'a'),
                           admission.issue_pass()),
                      "x"));
}

TEST(Admission, TheOldestUnusedPassesLapse) {
  Admission admission;
  const std::string first = admission.issue_pass();
  for (std::uint64_t i = 0; i < limits::kPasses_max; ++i)
    admission.issue_pass();
  EXPECT_FALSE(admission.admit(node("node/a", first), "x"));
}

// Of two starts of a name the later one has the higher epoch, whatever its host's clock says.
TEST(Admission, PassesAreNumberedAndANodeStartsWithTheNumberOfItsPass) {
  Admission admission;
  const std::string first = admission.issue_pass(), second = admission.issue_pass();
  EXPECT_EQ(facts_of_pass(first).value().number, 1u);
  EXPECT_EQ(facts_of_pass(second).value().number, 2u);
  EXPECT_FALSE(admission.admit(hello("node/a", first, 2), "x"));
  EXPECT_FALSE(admission.admit(hello("node/a", second, 1'795'378'055'169), "x"));
  EXPECT_TRUE(admission.admit(hello("node/a", second, 2), "x"));
  for (const char* none : {"", "7", "7x", "-7", "0-ab", "x-1", "7-ab", "7-0-ab", "-7-ab", "7-x-ab",
                           "7-99999999999999999999-ab", "99999999999999999999-7-ab"}) {
    EXPECT_FALSE(facts_of_pass(none)) << none;
  }
}

// Who holds a pass knows which run gave it.
TEST(Admission, APassNamesItsRun) {
  Admission admission(core::RunId{77}, 5);
  const auto facts = facts_of_pass(admission.issue_pass());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->run.value, 77u);
  EXPECT_EQ(facts->number, 6u);
}

// Visitors that come and go leave what a node that is in needs.
TEST(Admission, ANodeMakesItsLinkAgainWhateverCameAndWentMeanwhile) {
  Admission admission;
  const std::string pass = admission.issue_pass();
  ASSERT_TRUE(admission.admit(node("node/a", pass), "x"));
  for (std::uint64_t i = 0; i < limits::kPasses_max + 1; ++i) {
    const std::string name = "node/visitor-" + std::to_string(i);
    ASSERT_TRUE(admission.admit(node(name, admission.issue_pass()), name));
    admission.forget(name);
  }
  EXPECT_FALSE(admission.admit(node("node/a", pass), "y")) << "still there";
  admission.forget("node/a");
  EXPECT_TRUE(admission.admit(node("node/a", pass), "y"));
}

}  // namespace
}  // namespace troupe::actors::company
