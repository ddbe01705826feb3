// Guests that wait for a newer version of the weights: answered when it is published and not
// before, and in the end with what there is. The scripted policy publishes versions 0, 2, 4 ...
#include "actors/protocol/limits.hpp"
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

using namespace testing;

Script short_script(std::uint64_t updates) {
  Script script;
  script.plan.updates = updates;
  script.plan.groups = 2;
  script.plan.samples = 2;
  script.token_time = {{"generator/0", 1ms}};
  script.length = [](const experience::Ticket&, std::size_t) { return 20; };
  return script;
}

TEST(AwaitPublished, IsAnsweredOnceThereIsSomethingNewer) {
  ScriptedCompany company(short_script(3));
  company.at(0ms, [&company] {
    company.ask_controller(AwaitPublished{}, "the first");
    company.ask_controller(AwaitPublished{0}, "after 0");
    company.ask_controller(AwaitPublished{3}, "after 3");
  });
  ASSERT_TRUE(company.play());
  EXPECT_LT(company.place("publish 0"), company.place("the first is version 0"));
  EXPECT_LT(company.place("the first is version 0"), company.place("trained 0"));
  EXPECT_LT(company.place("publish 2"), company.place("after 0 is version 2"));
  EXPECT_LT(company.place("after 0 is version 2"), company.place("trained 1"));
  EXPECT_LT(company.place("publish 4"), company.place("after 3 is version 4"));
}

TEST(AwaitPublished, WhatIsNewerAlreadyIsToldAtOnceAndNothingNewerInTheEnd) {
  ScriptedCompany company(short_script(2));
  ASSERT_TRUE(company.play());
  company.ask_controller(AwaitPublished{0}, "late");
  const auto asked = company.time().now();
  company.ask_controller(AwaitPublished{4}, "has all");
  EXPECT_TRUE(company.time().run_until_quiet(kSteps));
  EXPECT_TRUE(company.has("late is version 4"));
  EXPECT_TRUE(company.has("has all is version 4"));
  EXPECT_LT(company.place("late is version 4"), company.place("has all is version 4"));
  EXPECT_EQ(company.time().now() - asked, actors::limits::kNewsWait);
}

TEST(AwaitPublished, WithoutAnyVersionThereIsNone) {
  ScriptedCompany company(short_script(2));  // does not play
  company.ask_controller(AwaitPublished{}, "a guest");
  EXPECT_TRUE(company.time().run_until_quiet(kSteps));
  EXPECT_TRUE(company.has("a guest: no weights were published yet"));
}

}  // namespace
}  // namespace troupe::actors::controller
