// Runs whose groups are filtered by their mean score, and runs with a critic, against scripted
// roles on virtual time.
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;

Script filtered_script(std::uint64_t staleness, std::uint64_t updates) {
  Script script;
  script.plan.updates = updates;
  script.plan.groups = 4;
  script.plan.samples = 2;
  script.plan.staleness_max = staleness;
  script.plan.filters = true;
  script.token_time = {{"generator/0", 1ms}, {"generator/1", 3ms}};
  return script;
}

double metric(const UpdateReport& report, const std::string& name) {
  for (const auto& [key, value] : report.metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return -1;
}

}  // namespace

TEST(FilteredRun, FilteredSlotsAreIssuedAgainAndAcceptedGroupsAreTrainedOnce) {
  for (const std::uint64_t staleness : {0, 2}) {
    Script script = filtered_script(staleness, 5);
    // Slot 1 needs seven attempts: more than may go wrong in a slot.
    script.filtered = [](const experience::Ticket& ticket) {
      return ticket.slot == 1 && ticket.attempt < 6;
    };
    ScriptedCompany company(script);
    const auto played = company.play();
    ASSERT_TRUE(played) << played.error().message;
    EXPECT_EQ(company.data().trained.size(), 20u);
    for (const auto& [ticket, times] : company.data().trained) {
      EXPECT_EQ(times, 1);
      EXPECT_EQ(ticket.attempt, ticket.slot == 1 ? 6u : 0u);
    }
    EXPECT_EQ(company.controller().snapshot().counts.at("group filtered"), 30u);
    EXPECT_EQ(company.hearer().failed, 0) << "a filtered group is no failure";
    ASSERT_EQ(company.hearer().reports.size(), 5u);
    EXPECT_EQ(metric(company.hearer().reports[2], "reward/filtered_groups"), 6);
  }
}

TEST(FilteredRun, WithoutStalenessFreshPromptsAreDrawnInSlotOrderWhenAllIsKnown) {
  Script script = filtered_script(0, 1);
  script.filtered = [](const experience::Ticket& ticket) { return ticket.attempt == 0; };
  // The later the slot, the sooner it is done.
  script.length = [](const experience::Ticket& ticket, std::size_t) {
    return 40 - 9 * ticket.slot;
  };
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  for (int slot = 0; slot + 1 < 4; ++slot) {
    const std::string name = "reissue u0.";
    EXPECT_LT(company.place(name + std::to_string(slot) + ".0"),
              company.place(name + std::to_string(slot + 1) + ".0"));
  }
  EXPECT_LT(company.place("put u0.0.0"), company.place("reissue u0.0.0"));
}

TEST(FilteredRun, ARewardThatNeverVariesEndsTheRunWithItsReason) {
  Script script = filtered_script(0, 2);
  script.plan.filtered_max = 9;
  script.filtered = [](const experience::Ticket& ticket) { return ticket.slot == 2; };
  ScriptedCompany company(script);
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, core::ErrorCode::kData);
  EXPECT_NE(played.error().message.find("9 groups in a row were filtered for update 1, prompt 3"),
            std::string::npos)
      << played.error().message;
  EXPECT_NE(played.error().message.find("mean 1"), std::string::npos);
}

TEST(FilteredRun, TheEndOfTheDataIsACheckpointAndAnErrorThatSaysHowToGoOn) {
  for (const std::uint64_t staleness : {0, 1}) {
    Script script = filtered_script(staleness, 5);
    script.prompts_max = 20;  // five updates, if all were kept
    script.filtered = [](const experience::Ticket& ticket) {
      return ticket.slot == 3 && ticket.attempt < 2;
    };
    ScriptedCompany company(script);
    const auto played = company.play();
    ASSERT_FALSE(played);
    EXPECT_NE(played.error().message.find("prompts are used up"), std::string::npos)
        << played.error().message;
    EXPECT_NE(played.error().message.find("--train.num_episodes"), std::string::npos);
    const std::size_t updates = company.hearer().reports.size();
    EXPECT_GE(updates, 2u);
    EXPECT_EQ(company.data().trained.size(), updates * 4);
    EXPECT_EQ(company.count("save"), 1u) << "what was learned is kept";
  }
}

TEST(CriticInARun, IsSavedAndWrittenWithThePolicy) {
  Script script = filtered_script(0, 2);
  script.plan.save_steps = 1;
  script.plan.save_critic = true;
  script.critic = true;
  ScriptedCompany company(script);
  const auto played = company.play();
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(company.count("critic saves"), 2u);
  EXPECT_EQ(company.count("critic writes critic_model"), 1u);
}

TEST(CriticInARun, ItsLossEndsThePlayAsThePolicysDoes) {
  Script script = filtered_script(0, 50);
  script.critic = true;
  ScriptedCompany company(script);
  company.at(2s, [&company] { company.tell_lost("critic/0"); });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(played.error().message.find("critic/0"), std::string::npos);
}

TEST(StopRequest, EndsARunThatWaitsForAGeneratorAndKeepsWhatWasLearned) {
  Script script = filtered_script(0, 1000);
  script.token_time = {{"generator/0", 1ms}};
  ScriptedCompany company(script);
  company.at(2s, [&company] {
    company.crash("generator/0");
    company.tell_lost("generator/0");
    company.hearer().stop = true;
  });
  const auto played = company.play();
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().code, core::ErrorCode::kInterrupted);
  EXPECT_LT(company.took(), 5s);
  EXPECT_GT(company.hearer().reports.size(), 0u);
  EXPECT_EQ(company.count("save"), 1u);
}

}  // namespace troupe::actors::controller
