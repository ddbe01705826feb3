// A generator that is drained gets no more tickets; what it samples finishes, or is sampled
// elsewhere with every ticket trained on once.
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;

Script two_generators(std::uint64_t staleness) {
  Script script;
  script.plan.updates = 6;
  script.plan.groups = 8;
  script.plan.samples = 4;
  script.plan.staleness_max = staleness;
  script.token_time = {{"generator/0", 1ms}, {"generator/1", 1ms}};
  return script;
}

void expect_each_trained_once(ScriptedCompany& company) {
  EXPECT_EQ(company.data().trained.size(), 6u * 8);
  for (const auto& [ticket, times] : company.data().trained) {
    EXPECT_EQ(times, 1) << text_of(ticket);
    EXPECT_EQ(ticket.attempt, 0u) << text_of(ticket) << ": the same ticket, not another prompt";
  }
}

// How often generator/1 was given a ticket after the first event of this text.
std::size_t tickets_after(const ScriptedCompany& company, const std::string& event) {
  std::size_t tickets = 0;
  for (std::size_t i = company.place(event); i < company.events().size(); ++i) {
    const std::string& what = company.events()[i];
    tickets += what.starts_with("generate ") && what.ends_with(" at generator/1") ? 1 : 0;
  }
  return tickets;
}

}  // namespace

TEST(DrainedGenerator, FinishesWhatItHasAndGetsNothingMore) {
  for (const std::uint64_t staleness : {0, 1}) {
    ScriptedCompany company(two_generators(staleness));
    company.at(30ms, [&] {
      company.note("drain");
      company.ask_controller(DrainGenerator{"generator/1", 60'000}, "generator/1 is idle");
    });
    const auto outcome = company.play();
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_GT(company.count("generate"), 0u);
    EXPECT_EQ(tickets_after(company, "drain"), 0u) << "staleness " << staleness;
    EXPECT_LT(company.place("drain"), company.place("generator/1 is idle"));
    EXPECT_EQ(company.count("generate"), 6u * 8) << "nothing was sampled twice";
    expect_each_trained_once(company);
  }
}

TEST(DrainedGenerator, WhatItCannotFinishInTimeIsSampledElsewhere) {
  Script script = two_generators(1);
  script.token_time["generator/1"] = 10s;
  ScriptedCompany company(script);
  company.at(30ms, [&] {
    company.note("drain");
    company.ask_controller(DrainGenerator{"generator/1", 100}, "time is up");
  });
  company.at(200ms, [&] { company.tell_lost("generator/1"); });
  const auto outcome = company.play();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_LT(company.place("drain"), company.place("time is up"));
  EXPECT_EQ(tickets_after(company, "drain"), 0u);
  EXPECT_GT(company.count("generate"), 6u * 8) << "some were sampled again";
  expect_each_trained_once(company);
}

TEST(DrainedGenerator, OneThatIsLostMeanwhileOrNotThereIsAnsweredAtOnce) {
  Script script = two_generators(1);
  script.token_time["generator/1"] = 10s;
  ScriptedCompany company(script);
  company.at(30ms, [&] {
    company.ask_controller(DrainGenerator{"generator/1", 3'600'000}, "it is lost");
    company.ask_controller(DrainGenerator{"generator/7", 3'600'000}, "nobody knows it");
  });
  company.at(60ms, [&] { company.tell_lost("generator/1"); });
  ASSERT_TRUE(company.play());
  EXPECT_LT(company.place("nobody knows it"), company.place("it is lost"));
  EXPECT_LT(company.place("it is lost"), company.events().size() - 1) << "long before the end";
  expect_each_trained_once(company);
}

}  // namespace troupe::actors::controller
