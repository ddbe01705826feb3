// Generators that answer with errors: whatever one of them says, the run ends well as long as
// another can do the work or the same one may come back, with each ticket trained on once. A ticket
// that is itself at fault is set aside with its cause.
#include "tests/sim/living_errors.hpp"
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;
using core::ErrorCode;

Script sick_script(std::uint64_t staleness, std::size_t generators) {
  Script script;
  script.plan.updates = 5;
  script.plan.groups = 8;
  script.plan.samples = 4;
  script.plan.staleness_max = staleness;
  script.token_time.clear();
  for (std::size_t i = 0; i < generators; ++i)
    script.token_time["generator/" + std::to_string(i)] = 1ms;
  return script;
}

// A call of generator/0 in the midst of the run.
Script::Sickness once(ErrorCode code) {
  return [code](const std::string& name, std::size_t call) -> std::optional<ErrorCode> {
    if (name == "generator/0" && call == 2) return code;
    return std::nullopt;
  };
}

// Every call of generator/0.
Script::Sickness always(ErrorCode code) {
  return [code](const std::string& name, std::size_t) -> std::optional<ErrorCode> {
    if (name == "generator/0") return code;
    return std::nullopt;
  };
}

// The first attempt of slot 3 of the second update.
bool is_u1_3(const experience::Ticket& ticket) {
  return ticket == experience::Ticket{1, 3, 0};
}

void expect_all_trained_once(ScriptedCompany& company) {
  EXPECT_EQ(company.data().trained.size(), 5u * 8);
  for (const auto& [ticket, times] : company.data().trained) {
    EXPECT_EQ(times, 1) << text_of(ticket);
    EXPECT_EQ(ticket.attempt, 0u) << text_of(ticket) << ": the same ticket, not another prompt";
  }
}

}  // namespace

TEST(SickGenerator, NoErrorOfATicketEndsTheRun) {
  for (const ErrorCode code : sim::kLivingErrors) {
    for (const std::uint64_t staleness : {0, 1}) {
      for (const std::size_t generators : {1, 2, 4}) {
        const std::string where = std::string(core::error_name(code)) + ", staleness " +
                                  std::to_string(staleness) + ", " + std::to_string(generators);
        SCOPED_TRACE(where);
        Script script = sick_script(staleness, generators);
        script.sick_tickets = once(code);
        ScriptedCompany company(script);
        company.restart_sick_after(300ms);
        const auto outcome = company.play();
        ASSERT_TRUE(outcome) << outcome.error().message;
        expect_all_trained_once(company);
      }
    }
  }
}

TEST(SickGenerator, NoErrorOfAPushEndsTheRun) {
  for (const ErrorCode code : sim::kLivingErrors) {
    for (const std::uint64_t staleness : {0, 1}) {
      for (const std::size_t generators : {1, 2}) {
        const std::string where = std::string(core::error_name(code)) + ", staleness " +
                                  std::to_string(staleness) + ", " + std::to_string(generators);
        SCOPED_TRACE(where);
        Script script = sick_script(staleness, generators);
        script.sick_weights = once(code);
        ScriptedCompany company(script);
        company.restart_sick_after(300ms);
        const auto outcome = company.play();
        ASSERT_TRUE(outcome) << outcome.error().message;
        expect_all_trained_once(company);
      }
    }
  }
}

TEST(SickGenerator, WhatIsSickIsStartedAgainAndWhatIsNotIsNot) {
  for (const ErrorCode code :
       {ErrorCode::kResources, ErrorCode::kInternal, ErrorCode::kDeadline, ErrorCode::kNumeric}) {
    Script script = sick_script(1, 2);
    script.sick_tickets = once(code);
    ScriptedCompany company(script);
    company.restart_sick_after(50ms);
    ASSERT_TRUE(company.play());
    EXPECT_EQ(company.count("restart generator/0 of 0: sick"), 1u) << core::error_name(code);
    EXPECT_LT(company.place("generator/0 lost"), company.place("restart generator/0 of 0: sick"));
  }
  for (const ErrorCode code : {ErrorCode::kData, ErrorCode::kOverloaded, ErrorCode::kConfig}) {
    Script script = sick_script(1, 2);
    script.sick_tickets = once(code);
    ScriptedCompany company(script);
    ASSERT_TRUE(company.play());
    EXPECT_EQ(company.count("restart"), 0u) << core::error_name(code);
  }
}

TEST(SickGenerator, OneThatFailsEveryTicketIsStartedAgainAndAgainWhileTheOtherWorks) {
  for (const ErrorCode code : {ErrorCode::kResources, ErrorCode::kData}) {
    Script script = sick_script(1, 2);
    script.sick_tickets = always(code);
    ScriptedCompany company(script);
    company.restart_sick_after(50ms);
    const auto outcome = company.play();
    ASSERT_TRUE(outcome) << outcome.error().message;
    expect_all_trained_once(company);
    EXPECT_GT(company.count("restart generator/0"), 1u) << core::error_name(code);
    EXPECT_EQ(company.count("restart generator/1"), 0u);
  }
}

// It is full only while it has tickets.
TEST(SickGenerator, OneThatRefusesAsFullThoughItHasNothingToDoIsStartedAgain) {
  Script script = sick_script(0, 2);
  script.token_time["generator/1"] = 50ms;
  script.sick_tickets = always(ErrorCode::kOverloaded);
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  expect_all_trained_once(company);
  EXPECT_GE(company.count("restart generator/0"), 1u);
  EXPECT_EQ(company.count("restart generator/1"), 0u);
}

TEST(SickGenerator, ATicketThatFailsThreeTimesIsSetAsideAndItsSlotGetsAnotherPrompt) {
  for (const std::size_t generators : {1, 2, 5}) {
    Script script = sick_script(1, generators);
    script.poison = is_u1_3;
    ScriptedCompany company(script);
    company.restart_sick_after(50ms);
    const auto outcome = company.play();
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(company.count("set aside u1.3.0: it failed 3 times, the last time at generator/"),
              1u);
    EXPECT_EQ(company.count("reissue u1.3.0"), 1u);
    EXPECT_EQ(company.data().trained.size(), 5u * 8);
    EXPECT_TRUE(company.data().trained.contains({1, 3, 1}));
    EXPECT_FALSE(company.data().trained.contains({1, 3, 0}));
    EXPECT_EQ(company.hearer().faults, std::vector<std::uint32_t>{1});
    EXPECT_EQ(company.controller().snapshot().counts.at("ticket set aside"), 1u);
    std::set<std::string> tried;
    for (const std::string& event : company.events())
      if (event.starts_with("generate u1.3.0")) tried.insert(event);
    EXPECT_EQ(tried.size(), std::min<std::size_t>(generators, 3));
    EXPECT_EQ(company.count("generate u1.3.0"), 3u);
  }
}

// As a prompt at which the engine's process crashes: those that were sampled beside it are not set
// aside with it.
TEST(SickGenerator, ATicketThatEndsItsGeneratorsIsSetAsideAlone) {
  for (const std::size_t generators : {1, 2, 5}) {
    Script script = sick_script(1, generators);
    script.plan.groups = 16;
    script.poison_code = ErrorCode::kPeerLost;
    script.poison = is_u1_3;
    ScriptedCompany company(script);
    company.restart_sick_after(50ms);
    const auto outcome = company.play();
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(company.count("set aside"), 1u);
    EXPECT_EQ(company.count("set aside u1.3.0: 6 times the generator that sampled it was lost, the "
                            "last time generator/"),
              1u);
    EXPECT_EQ(company.data().trained.size(), 5u * 16);
    for (const auto& [ticket, times] : company.data().trained)
      EXPECT_EQ(ticket.attempt, ticket.update == 1 && ticket.slot == 3 ? 1u : 0u);
    EXPECT_EQ(company.count("clear generator/") > 0, generators > 1);
  }
}

// As one that never finds room in any of them.
TEST(SickGenerator, ATicketThatIsRefusedByIdleGeneratorsIsSetAside) {
  Script script = sick_script(0, 3);
  script.poison_code = ErrorCode::kOverloaded;
  script.poison = is_u1_3;
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(company.count("set aside u1.3.0: it failed 3 times"), 1u);
  EXPECT_EQ(company.data().trained.size(), 5u * 8);
}

// Three poisonous prompts, one after the other, say nothing about the engines that tried them.
TEST(SickGenerator, EnginesAreClearedOfTicketsThatAreSetAside) {
  Script script = sick_script(1, 4);
  script.poison_code = ErrorCode::kData;
  script.poison = [](const experience::Ticket& ticket) {
    return ticket.update == 1 && ticket.slot < 3 && ticket.attempt == 0;
  };
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(company.count("set aside"), 3u);
  EXPECT_EQ(company.count("restart generator"), 0u);
  EXPECT_EQ(company.count("clear generator"), 9u) << "three of four, three times";
}

// Such a prompt is in an evaluation like one that cannot be scored.
TEST(SickGenerator, AHeldOutProblemThatFailsEverywhereIsLeftOutOfTheFigures) {
  Script script = sick_script(0, 3);
  script.plan.evaluation_groups = 4;
  script.plan.evaluation.n_samples_per_prompt = 2;
  script.poison = [](const experience::Ticket& ticket) {
    return experience::is_evaluation(ticket.update) && ticket.slot == 2;
  };
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(company.hearer().evaluations.empty());
  for (const EvaluationReport& report : company.hearer().evaluations) {
    EXPECT_EQ(report.sets.at(0).missing, 1u);
    EXPECT_EQ(report.sets.at(0).accuracy.size(), 3u);
  }
}

// It takes weights and fails all it is given: for the run it is as if it were not there.
TEST(SickGenerator, TheOnlyOneThatNeverSucceedsEndsTheRunAfterItsTime) {
  Script script = sick_script(0, 1);
  script.sick_tickets = [](const std::string&, std::size_t) { return ErrorCode::kResources; };
  script.plan.attempts_max = 1000;
  ScriptedCompany company(script);
  company.restart_sick_after(10s);
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kDeadline);
  EXPECT_NE(outcome.error().message.find("no generator came up within 300 s that works"),
            std::string::npos)
      << outcome.error().message;
}

TEST(SickGenerator, WeightsThatNeverArriveCostThatGeneratorAlone) {
  for (const ErrorCode code : {ErrorCode::kDeadline, ErrorCode::kData}) {
    Script script = sick_script(1, 2);
    script.sick_weights = [code](const std::string& name, std::size_t) -> std::optional<ErrorCode> {
      if (name == "generator/0") return code;
      return std::nullopt;
    };
    ScriptedCompany company(script);
    company.restart_sick_after(50ms);
    const auto outcome = company.play();
    ASSERT_TRUE(outcome) << outcome.error().message;
    expect_all_trained_once(company);
    const auto counts = company.controller().snapshot().counts;
    EXPECT_GT(counts.at("weights missed"), 2u) << "it is tried with each version";
    // A link that carries nothing is no fault of the generator behind it.
    EXPECT_EQ(company.count("restart generator/0") > 0, code == ErrorCode::kData);
    EXPECT_EQ(company.hearer().troubles.size(), 1u) << "said once";
  }
}

TEST(SickGenerator, TheOnlyOneIsTriedForAsLongAsItMayComeBack) {
  Script script = sick_script(1, 1);
  script.sick_weights = [](const std::string&, std::size_t call) -> std::optional<ErrorCode> {
    if (call < 30) return ErrorCode::kDeadline;  // about four minutes of tries
    return std::nullopt;
  };
  ScriptedCompany company(script);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  expect_all_trained_once(company);
}

TEST(SickGenerator, WithoutOneThatIsAbleToWorkTheRunEndsSayingWhy) {
  Script script = sick_script(1, 1);
  script.sick_weights = [](const std::string&, std::size_t) { return ErrorCode::kData; };
  ScriptedCompany company(script);
  company.restart_sick_after(50ms);
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(core::exit_status(outcome.error().code), 5);
  EXPECT_NE(outcome.error().code, ErrorCode::kPeerLost)
      << "it would be played again from the start";
  EXPECT_NE(outcome.error().message.find("no generator came up within 300 s"), std::string::npos)
      << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("sick"), std::string::npos) << "the cause is said";
}

TEST(SickGenerator, TicketsGoToThoseThatHoldTheWeights) {
  Script script = sick_script(0, 2);
  script.sick_weights = [](const std::string& name, std::size_t call) -> std::optional<ErrorCode> {
    if (name == "generator/0" && call > 0) return ErrorCode::kDeadline;
    return std::nullopt;
  };
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  expect_all_trained_once(company);
  for (const std::string& event : company.events()) {
    const bool its = event.starts_with("generate u") && event.ends_with("generator/0");
    EXPECT_TRUE(!its || event.starts_with("generate u0.")) << event << ": it lacks those weights";
  }
}

TEST(Evaluation, AProblemThatCannotBeScoredIsCountedAndTheRunGoesOn) {
  Script script = sick_script(1, 2);
  script.plan.evaluation_groups = 6;
  script.plan.evaluation.n_samples_per_prompt = 1;
  script.fails = [](const experience::Ticket& ticket) {
    return experience::is_evaluation(ticket.update) && ticket.slot % 3 == 1;
  };
  ScriptedCompany company(script);
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(company.hearer().evaluations.size(), 4u) << "before and after, greedy and sampled";
  for (const EvaluationReport& report : company.hearer().evaluations) {
    EXPECT_EQ(report.sets.at(0).accuracy.size(), 4u);
    EXPECT_EQ(report.sets.at(0).missing, 2u);
  }
  ASSERT_EQ(company.hearer().troubles.size(), 4u) << "one line an evaluation";
  EXPECT_NE(company.hearer().troubles[0].find("held-out problem 2 cannot be scored"),
            std::string::npos);
}

}  // namespace troupe::actors::controller
