// Whole runs of the controller against scripted roles on virtual time: how far ahead it goes, what
// it waits for, and what it does when others die.
#include "actors/controller/limits.hpp"
#include "runtime/core/rng.hpp"
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::controller {
namespace {

using namespace testing;

RunPlan plan_of(std::uint64_t staleness, std::uint64_t updates) {
  RunPlan plan;
  plan.updates = updates;
  plan.groups = 8;
  plan.samples = 4;
  plan.staleness_max = staleness;
  return plan;
}

// Lengths with a long tail, the same for a ticket whoever samples it.
std::uint64_t pareto_length(std::uint64_t seed,
                            const experience::Ticket& ticket,
                            std::size_t sample) {
  core::Rng rng(
      core::derive_seed(seed, ticket.update * 1000 + ticket.slot, ticket.attempt, sample));
  return std::min<std::uint64_t>(
      4000, 1 + static_cast<std::uint64_t>(20.0 * std::pow(rng.next_uniform(), -1.0 / 1.3)));
}

Script async_script(std::uint64_t staleness, std::uint64_t updates) {
  Script script;
  script.plan = plan_of(staleness, updates);
  script.token_time = {{"generator/0", 1ms}, {"generator/1", 3ms}};
  script.length = [](const experience::Ticket& ticket, std::size_t sample) {
    return pareto_length(7, ticket, sample);
  };
  return script;
}

}  // namespace

TEST(AsyncRun, NoTokenIsOlderThanTheBoundAndNothingIsDiscarded) {
  for (const std::uint64_t staleness : {1, 2, 4}) {
    ScriptedCompany company(async_script(staleness, 50));
    ASSERT_TRUE(company.play());
    EXPECT_GT(company.data().tokens, 100'000u);
    EXPECT_EQ(company.data().ages.rbegin()->first, staleness) << "the bound was never reached";
    EXPECT_EQ(company.data().trained.size(), 50u * 8);
    EXPECT_EQ(company.data().doubled_deliveries, 0u);
    EXPECT_TRUE(company.controller().snapshot().counts.empty());
  }
}

TEST(AsyncRun, AheadOfTheTrainerIsFasterThanInTurn) {
  const auto time_of = [](std::uint64_t staleness) {
    ScriptedCompany company(async_script(staleness, 30));
    EXPECT_TRUE(company.play());
    return company.took();
  };
  const auto in_turn = time_of(0);
  EXPECT_LT(time_of(2), in_turn * 3 / 4);
}

TEST(AsyncRun, WithoutStalenessEveryTokenComesFromTheWeightsOfItsUpdate) {
  ScriptedCompany company(async_script(0, 20));
  ASSERT_TRUE(company.play());
  EXPECT_EQ(company.data().ages.size(), 1u);
  EXPECT_GT(company.data().ages.at(0), 0u);
}

TEST(AsyncRun, WithoutStalenessTicketsWaitForEvaluationAndCheckpoint) {
  Script script = async_script(0, 3);
  script.plan.save_steps = 1;
  script.plan.evaluation_groups = 5;
  script.plan.evaluation.n_samples_per_prompt = 1;
  script.plan.evaluation.steps = 1;
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  EXPECT_LT(company.place("evaluated 0"), company.place("issue u0.0.0"));
  EXPECT_LT(company.place("evaluated 1"), company.place("issue u1.0.0"));
  EXPECT_LT(company.place("save"), company.place("issue u1.0.0"));
  EXPECT_EQ(company.count("save"), 3u);
}

TEST(AsyncRun, EvaluationsUseExactlyOneVersionWhileTrainingIsSampledBesideThem) {
  Script script = async_script(3, 8);
  script.plan.evaluation_groups = 30;
  script.plan.evaluation.n_samples_per_prompt = 1;
  script.plan.evaluation.steps = 2;
  ScriptedCompany company(script);  // the data role checks the versions
  ASSERT_TRUE(company.play());
  const std::size_t begin = company.place("issue e5.0.0"), end = company.place("evaluated 2");
  std::size_t puts = 0;
  for (std::size_t i = begin; i < end; ++i)
    puts += company.events()[i].starts_with("put u") ? 1 : 0;
  EXPECT_GT(puts, 0u);
}

TEST(AsyncRun, AStaleGeneratorGetsNoTickets) {
  Script script = async_script(1, 10);
  script.push_time = 400ms;
  script.late = {"generator/1"};
  ScriptedCompany company(script);
  company.at(2s, [&company] {
    company.start_generator("generator/1");
    company.tell_up("generator/1");
  });
  ASSERT_TRUE(company.play());
  std::size_t first_weights = 0, first_ticket = 0;
  for (std::size_t i = 0; i < company.events().size(); ++i) {
    const std::string& event = company.events()[i];
    if (!event.ends_with("at generator/1")) continue;
    if (event.starts_with("weights") && first_weights == 0) first_weights = i;
    if (event.starts_with("generate") && first_ticket == 0) first_ticket = i;
  }
  EXPECT_GT(first_weights, 0u);
  EXPECT_GT(first_ticket, first_weights);
}

TEST(AsyncRun, ADeadReceiverOfWeightsHoldsUpNobody) {
  Script script = async_script(1, 10);
  ScriptedCompany company(script);
  company.at(500ms, [&company] { company.crash("generator/1"); });  // noticed by its calls alone
  ASSERT_TRUE(company.play());
  EXPECT_EQ(company.data().trained.size(), 80u);
}

TEST(AsyncRun, CrashesOfGeneratorsLoseNoTicketAndDoubleNone) {
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Script script = async_script(seed % 3, 6);
    script.seed = seed;
    core::Rng rng(seed);
    ScriptedCompany company(script);
    for (int crash = 0; crash < 4; ++crash) {
      const std::string name = "generator/" + std::to_string(rng.next_below(2));
      const auto when = std::chrono::milliseconds(rng.next_below(4000));
      const auto away = std::chrono::milliseconds(rng.next_below(1500));
      company.at(when, [&company, name] {
        company.crash(name);
        company.at(500ms, [&company, name] {
          if (!company.alive(name)) company.tell_lost(name);
        });
      });
      company.at(when + away, [&company, name] {
        if (company.alive(name)) return;
        company.start_generator(name);
        company.tell_up(name);
      });
    }
    const auto outcome = company.play();
    ASSERT_TRUE(outcome) << "seed " << seed << ": " << outcome.error().message;
    ASSERT_EQ(company.data().trained.size(), 6u * 8) << "seed " << seed;
    ASSERT_EQ(company.data().trained_prompts.size(), 6u * 8) << "seed " << seed;
    for (const auto& [ticket, times] : company.data().trained) {
      ASSERT_EQ(times, 1) << "seed " << seed << ": " << text_of(ticket);
      ASSERT_EQ(ticket.attempt, 0u) << "seed " << seed << ": the same ticket, not another prompt";
    }
    ASSERT_LE(company.data().ages.rbegin()->first, seed % 3) << "seed " << seed;
  }
}

TEST(AsyncRun, WithoutAnyGeneratorTheRunEndsSayingSo) {
  Script script = async_script(1, 10);
  ScriptedCompany company(script);
  company.at(300ms, [&company] {
    company.crash("generator/0");
    company.crash("generator/1");
  });
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kDeadline);
  EXPECT_NE(outcome.error().message.find("no generator"), std::string::npos);
  EXPECT_GE(company.took(), limits::kGeneratorWait);
}

TEST(AsyncRun, AGeneratorThatComesInTimeLetsTheRunGoOn) {
  Script script = async_script(1, 10);
  script.token_time = {{"generator/0", 1s}, {"generator/1", 1s}};
  script.length = [](const experience::Ticket&, std::size_t) { return std::uint64_t{50}; };
  ScriptedCompany company(script);
  company.at(10s, [&company] {
    company.crash("generator/0");
    company.crash("generator/1");
  });
  company.at(200s, [&company] {
    company.start_generator("generator/0");
    company.tell_up("generator/0");
  });
  ASSERT_TRUE(company.play());
  EXPECT_EQ(company.data().trained.size(), 80u);
  EXPECT_GT(company.took(), 10s + limits::kGeneratorWait) << "it outlived the wait";
}

TEST(AsyncRun, ALostPolicyEndsTheRunByName) {
  ScriptedCompany company(async_script(1, 10));
  company.at(700ms, [&company] { company.tell_lost("policy/0"); });
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(outcome.error().message.find("policy/0"), std::string::npos);
}

TEST(AsyncRun, StopEndsAfterACheckpoint) {
  ScriptedCompany company(async_script(2, 50));
  company.at(1s, [&company] { company.hearer().stop = true; });
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kInterrupted);
  EXPECT_EQ(company.count("save"), 1u);
  for (std::size_t i = company.place("save"); i < company.events().size(); ++i) {
    EXPECT_FALSE(company.events()[i].starts_with("trained"));
    EXPECT_FALSE(company.events()[i].starts_with("issue"));
  }
}

TEST(AsyncRun, StragglersAreDeliveredShortOrIssuedAgain) {
  Script script = async_script(1, 4);
  script.plan.straggler_timeout = 2s;
  script.length = [](const experience::Ticket& ticket, std::size_t sample) -> std::uint64_t {
    if (ticket.update == 1 && ticket.slot == 2 && sample == 3) return 0;  // one of four hangs
    if (ticket.update == 2 && ticket.slot == 5 && ticket.attempt == 0) return 0;  // all of them
    return 30;
  };
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  EXPECT_TRUE(company.has("cut put u1.2.0"));
  EXPECT_TRUE(company.has("reissue u2.5.0"));
  EXPECT_TRUE(company.data().trained.contains({1, 2, 0}));
  EXPECT_TRUE(company.data().trained.contains({2, 5, 1}));
  const auto counts = company.controller().snapshot().counts;
  EXPECT_EQ(counts.at("cut short"), 1u);
  EXPECT_EQ(counts.at("straggler retired"), 1u);
  for (const auto& report : company.hearer().reports) {
    for (const auto& [name, value] : report.metrics) {
      if (name == "time/generate") {
        EXPECT_LT(value, 2 * 2.0 + 0.5);
      }
    }
  }
}

TEST(AsyncRun, AFailedGroupIsIssuedAgainAtOnce) {
  Script script = async_script(1, 3);
  script.fails = [](const experience::Ticket& ticket) {
    return ticket.update == 0 && ticket.slot == 1 && ticket.attempt == 0;
  };
  script.length = [](const experience::Ticket& ticket, std::size_t) -> std::uint64_t {
    return ticket.slot == 1 ? 5 : 500;
  };
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  EXPECT_LT(company.place("reissue u0.1.0"), company.place("put u0.0.0"));
  EXPECT_TRUE(company.data().trained.contains({0, 1, 1}));
  EXPECT_EQ(company.hearer().failed, 1);
}

TEST(AsyncRun, WithoutStalenessFailedGroupsAreIssuedAgainInSlotOrder) {
  Script script = async_script(0, 2);
  script.fails = [](const experience::Ticket& ticket) {
    return ticket.update == 0 && ticket.attempt == 0 && (ticket.slot == 1 || ticket.slot == 6);
  };
  script.length = [](const experience::Ticket& ticket, std::size_t) -> std::uint64_t {
    return 800 - ticket.slot * 100;  // the later slot fails first
  };
  ScriptedCompany company(script);
  ASSERT_TRUE(company.play());
  EXPECT_LT(company.place("put u0.0.0"), company.place("reissue u0.1.0"));
  EXPECT_EQ(company.place("reissue u0.1.0") + 1, company.place("reissue u0.6.0"));
}

TEST(AsyncRun, ASlotThatFailsAgainAndAgainEndsTheRun) {
  Script script = async_script(1, 3);
  script.fails = [](const experience::Ticket& ticket) { return ticket.slot == 3; };
  ScriptedCompany company(script);
  const auto outcome = company.play();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kData);
  EXPECT_EQ(company.hearer().failed, 4);
}

TEST(AsyncRun, ReportsStalenessInUpdates) {
  ScriptedCompany company(async_script(2, 20));
  ASSERT_TRUE(company.play());
  double mean = -1, oldest = -1, queue = -1, generators = -1;
  for (const auto& [name, value] : company.hearer().reports.back().metrics) {
    if (name == "async/staleness_mean") {
      EXPECT_EQ(std::exchange(mean, value), -1) << "named twice";
    }
    if (name == "async/staleness_max") oldest = value;
    if (name == "async/queue") queue = value;
    if (name == "async/generators") generators = value;
  }
  EXPECT_GT(mean, 0);
  EXPECT_GT(oldest, 0);
  EXPECT_LE(oldest, 2);
  EXPECT_GE(queue, 0);
  EXPECT_EQ(generators, 2);
  const ControllerSnapshot now = company.controller().snapshot();
  EXPECT_EQ(now.done, 20u);
  EXPECT_EQ(now.version, 40u);
  ASSERT_EQ(now.generators.size(), 2u);
  EXPECT_EQ(now.generators[0].state, "fresh");
}

}  // namespace troupe::actors::controller
