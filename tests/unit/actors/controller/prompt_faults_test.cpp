// Prompts that always fail, and weights that fail at every prompt: what ends a run, and what does
// not.
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;
using core::ErrorCode;

Script faulty_script(std::uint64_t rows, std::uint32_t groups) {
  Script script;
  script.plan.updates = 4;
  script.plan.groups = groups;
  script.plan.samples = 2;
  script.rows = rows;
  return script;
}

}  // namespace

// Of eight groups four get the bad row; their slots are issued again together, so that the first of
// them gets it four times in a row.
TEST(PromptFaults, APromptThatAlwaysFailsEndsNoRunThatHasOthers) {
  Script script = faulty_script(2, 8);
  script.bad_row = [](std::uint64_t row) { return row == 1; };
  ScriptedCompany company(script);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(company.data().trained.size(), 4u * 8);
  std::size_t attempts = 0;
  for (const auto& [ticket, times] : company.data().trained)
    attempts = std::max<std::size_t>(attempts, ticket.attempt);
  EXPECT_GE(attempts, 4u) << "a slot that failed as often as ends a run";
}

TEST(PromptFaults, WhenAllThatThereAreFailTheRunEndsAndSaysSo) {
  for (const std::uint64_t rows : {1, 2}) {
    Script script = faulty_script(rows, 2);
    script.bad_row = [](std::uint64_t) { return true; };
    ScriptedCompany company(script);
    const auto outcome = company.play();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kData);
    const std::string said =
        rows == 1 ? "4 groups in a row, with the only prompt that there is, failed for update 1"
                  : "4 groups in a row, with all 2 prompts that there are, failed for update 1";
    EXPECT_NE(outcome.error().message.find(said), std::string::npos) << outcome.error().message;
  }
}

TEST(PromptFaults, FourDifferentOnesInARowEndTheRun) {
  Script script = faulty_script(50, 2);
  script.bad_row = [](std::uint64_t row) { return row >= 7; };
  ScriptedCompany company(script);
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message.find("4 groups in a row failed for update"), 0u)
      << outcome.error().message;
}

// ---- log-probs that are not finite

TEST(NumericFaults, AreTheWeightsWhenAFreshGeneratorHasThemForThreePrompts) {
  for (const std::size_t generators : {1, 2}) {
    Script script = faulty_script(0, 8);
    script.token_time.clear();
    for (std::size_t i = 0; i < generators; ++i)
      script.token_time["generator/" + std::to_string(i)] = 1ms;
    script.poison = [](const experience::Ticket& ticket) { return ticket.update >= 2; };
    ScriptedCompany company(script);
    company.restart_sick_after(10s);
    const auto outcome = company.play();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kNumeric);
    const std::string& said = outcome.error().message;
    EXPECT_NE(said.find("3 different prompts have logits that are not finite on generator/"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("the last checkpoint before them is /good"), std::string::npos) << said;
    EXPECT_EQ(company.count("restart generator/"), generators) << "each once";
    ASSERT_EQ(company.hearer().diverged.size(), 1u);
    EXPECT_EQ(company.hearer().diverged[0], 2u);
    EXPECT_EQ(company.count("save"), 0u) << "such weights are not kept";
  }
}

TEST(NumericFaults, OfTheOnlyPromptThereIsAreTheWeightsToo) {
  Script script = faulty_script(1, 1);
  script.poison = [](const experience::Ticket&) { return true; };
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kNumeric);
  EXPECT_EQ(outcome.error().message.find(
                "the weights that the run began with are at fault: the only prompt has logits"),
            0u)
      << outcome.error().message;
  EXPECT_EQ(company.count("restart generator/0"), 1u);
}

// Two rows of three overflow: they are set aside, and the run goes on with the third.
TEST(NumericFaults, OfSomePromptsWhileOthersAreSampledAreTheirs) {
  Script script = faulty_script(0, 6);
  script.poison = [](const experience::Ticket& ticket) {
    return ticket.update == 1 && ticket.slot < 2 && ticket.attempt < 2;
  };
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(company.count("set aside"), 4u);
  EXPECT_EQ(company.count("restart generator/0"), 1u);
  EXPECT_EQ(company.data().trained.size(), 4u * 6);
}

TEST(NumericFaults, TheVerdictIsOfOneVersionOfTheWeights) {
  using Verdict = NumericFaults::Verdict;
  NumericFaults faults;
  EXPECT_EQ(faults.add("generator/0", 4, {0, 1}, 3, "row 1"), Verdict::kGenerator)
      << "it may be its own";
  EXPECT_EQ(faults.add("generator/0", 4, {0, 1}, 3, "row 1"), Verdict::kPrompt);
  EXPECT_EQ(faults.add("generator/0", 4, {0, 1}, 3, "row 1"), Verdict::kPrompt)
      << "the same prompt";
  EXPECT_EQ(faults.add("generator/1", 4, {0, 2}, 3, "row 2"), Verdict::kGenerator);
  EXPECT_EQ(faults.add("generator/1", 4, {0, 2}, 3, "row 2"), Verdict::kPrompt);
  EXPECT_EQ(faults.add("generator/0", 5, {0, 3}, 3, "row 3"), Verdict::kGenerator)
      << "other weights";
  faults.succeeded(5);
  EXPECT_EQ(faults.add("generator/0", 4, {0, 3}, 3, "row 3"), Verdict::kWeights);
  faults.succeeded(4);
  EXPECT_EQ(faults.add("generator/0", 4, {0, 4}, 3, "row 4"), Verdict::kPrompt)
      << "others were sampled";
}

// A step of an engine fails for all groups in it, whichever overflowed.
TEST(NumericFaults, PromptsThatOneTookAlongAreNotAtFault) {
  using Verdict = NumericFaults::Verdict;
  NumericFaults faults;
  EXPECT_EQ(faults.add("generator/0", 4, {0, 1}, 3, "row 1"), Verdict::kGenerator);
  for (std::uint64_t row = 1; row < 6; ++row)
    EXPECT_EQ(faults.add("generator/0", 4, {0, row}, 3, "row 1"), Verdict::kPrompt) << row;
  EXPECT_EQ(faults.add("generator/0", 4, {0, 2}, 3, "row 2"), Verdict::kPrompt);
  EXPECT_EQ(faults.add("generator/0", 4, {0, 3}, 3, "row 3"), Verdict::kWeights);
}

}  // namespace troupe::actors::controller
