// Rewards attached, re-weighted, detached and lost while a run goes on.
#include "actors/controller/reward_board.hpp"
#include "runtime/config/reward_names.hpp"
#include "tests/unit/actors/controller/scripted_company.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::controller {
namespace {

using namespace testing;

Script reward_script() {
  Script script;
  script.plan.updates = 30;
  script.plan.groups = 4;
  script.plan.samples = 2;
  script.plan.staleness_max = 2;
  script.plan.rewards = {{"rule", "reward/rule", 1.0}};
  return script;
}

std::string code_of(const core::Result<void>& result) {
  return result ? "" : std::string(core::error_name(result.error().code));
}

}  // namespace

TEST(RewardBoard, RefusesWhatMakesNoSense) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  EXPECT_FALSE(board.attach({"rule", "reward/other", 1.0}));
  EXPECT_FALSE(board.attach({"x", "reward/x", 0.0}));
  EXPECT_FALSE(board.attach({"x", "reward/x", std::nan("")}));
  EXPECT_FALSE(board.attach({"", "reward/x", 1.0}));
  EXPECT_FALSE(board.reweight({"x", 1.0}));
  EXPECT_FALSE(board.reweight({"rule", 0.0}));
  EXPECT_FALSE(board.detach({"x"}));
  const auto last = board.detach({"rule"});
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_NE(last.error().message.find("attach another"), std::string::npos);
  EXPECT_EQ(board.set(), 0u) << "a refused change changes nothing";
}

// A name never takes the place of a figure, a word of formulas or a role of the run's own.
TEST(RewardBoard, RefusesNamesThatAreOurs) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  std::vector<std::string> ours(config::kRewardFigures.begin(), config::kRewardFigures.end());
  ours.insert(ours.end(), {"rest", "0", "eval-a-b", "a b"});
  for (const std::string& name : ours) {
    const auto attached = board.attach({name, "reward/" + name, 1.0});
    ASSERT_FALSE(attached) << name;
    EXPECT_EQ(attached.error().code, core::ErrorCode::kInvalidArgument);
    EXPECT_NE(attached.error().message.find("--name"), std::string::npos);
  }
  EXPECT_EQ(board.set(), 0u);
  EXPECT_TRUE(board.attach({"meaning", "reward/meaning", 1.0}));
}

TEST(RewardBoard, WhatWasAttachedInAnEarlierLifeIsAwaited) {
  const RewardMember rule{"rule", "reward/rule", 1.0}, x{"x", "reward/x", 0.3};
  RewardBoard board({rule}, {{1, 4, {rule, x}, {}}, {7, 9, {rule, {"x", "reward/x", 0.5}}, {}}});
  EXPECT_EQ(board.set(), 7u);
  EXPECT_EQ(board.absent(), std::set<std::string>{"x"});
  EXPECT_FALSE(board.came("x", "reward/other"));
  EXPECT_FALSE(board.came("rule", "reward/rule")) << "the run's own are not awaited";
  EXPECT_TRUE(board.came("x", "reward/x"));
  EXPECT_FALSE(board.came("x", "reward/x")) << "once";
  EXPECT_TRUE(board.absent().empty());
  EXPECT_TRUE(board.is_attached("reward/x"));
  EXPECT_EQ(board.members()[1].weight, 0.5);
  ASSERT_TRUE(board.reweight({"x", 0.25}));
  EXPECT_EQ(board.set(), 8u) << "no number is used twice";
}

TEST(RewardBoard, EachChangeMakesANewSet) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  EXPECT_EQ(code_of(board.attach({"x", "reward/x", -0.5})), "");
  EXPECT_EQ(code_of(board.reweight({"rule", 2.0})), "");
  const SetRewards told = board.change(7);
  EXPECT_EQ(told.set, 2u);
  EXPECT_EQ(told.from_update, 7u);
  ASSERT_EQ(told.members.size(), 2u);
  EXPECT_EQ(told.members[0].weight, 2.0);
  EXPECT_EQ(told.members[1].weight, -0.5);
}

TEST(RewardBoard, OnlyAttachedRewardsCanBeLost) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  EXPECT_FALSE(board.lose("reward/rule"));
  ASSERT_TRUE(board.attach({"x", "reward/x", 1.0}));
  EXPECT_TRUE(board.lose("reward/x"));
  EXPECT_EQ(board.change(0).lost, std::vector<std::string>{"x"});
  EXPECT_EQ(board.change(0).members.size(), 1u);
  EXPECT_FALSE(board.bereft());
  board.told();
  EXPECT_TRUE(board.change(0).lost.empty());
}

TEST(RewardBoard, ADetachedRewardThatStillScoresCanBeLostAndKeepsItsName) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  ASSERT_TRUE(board.attach({"x", "reward/x", 1.0}));
  ASSERT_TRUE(board.detach({"x"}));
  EXPECT_FALSE(board.attach({"x", "reward/x", 1.0}));
  EXPECT_TRUE(board.is_attached("reward/x"));
  board.drained("x");
  EXPECT_FALSE(board.is_attached("reward/x"));
  EXPECT_TRUE(board.attach({"x", "reward/x", 1.0}));
}

TEST(RewardBoard, ARewardThatWasLostWhileItDrainedIsAttachedAgainAsAnother) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  ASSERT_TRUE(board.attach({"x", "reward/x", 1.0}));
  ASSERT_TRUE(board.detach({"x"}));
  ASSERT_TRUE(board.lose("reward/x"));
  ASSERT_TRUE(board.attach({"x", "reward/x", 1.0}));
  board.drained("x");  // the detach of the first ends only now
  EXPECT_TRUE(board.is_attached("reward/x"));
}

TEST(RewardChange, HoldsFromTheFirstUpdateWithoutTickets) {
  ScriptedCompany company(reward_script());
  company.data().reward_change_time = 300ms;  // long enough that updates would go out meanwhile
  company.at(1s, [&company] {
    company.ask_controller(AttachReward{"x", "reward/x", 0.5}, "attach");
  });
  ASSERT_TRUE(company.play());
  std::string from;
  for (const auto& event : company.events()) {
    if (event.starts_with("attach holds from ")) from = event.substr(18);
  }
  ASSERT_FALSE(from.empty());
  EXPECT_TRUE(company.has("rewards 1 from " + from + ": rule x"));
  EXPECT_GT(company.place("issue " + from + ".0.0"), company.place("rewards 1 set"));
  const std::string before = "u" + std::to_string(std::stoull(from.substr(1)) - 1);
  EXPECT_LT(company.place("issue " + before + ".0.0"),
            company.place("rewards 1 from " + from + ": rule x"));
}

TEST(RewardChange, ChangesComeOneAfterAnother) {
  ScriptedCompany company(reward_script());
  company.data().reward_change_time = 100ms;
  company.at(1s, [&company] {
    company.ask_controller(AttachReward{"x", "reward/x", 0.5}, "attach x");
    company.ask_controller(AttachReward{"x", "reward/x", 0.5}, "attach x again");
    company.ask_controller(ReweightReward{"x", 2.0}, "reweight x");
  });
  ASSERT_TRUE(company.play());
  ASSERT_EQ(company.count("rewards 2 from"), 1u);
  std::size_t second = 0;
  for (std::size_t i = 0; i < company.events().size(); ++i) {
    if (company.events()[i].starts_with("rewards 2 from")) second = i;
  }
  EXPECT_LT(company.place("rewards 1 set"), second);
  EXPECT_EQ(company.count("attach x again: a reward 'x' is attached already"), 1u);
  EXPECT_EQ(company.controller().snapshot().reward_set, 2u);
  EXPECT_EQ(company.controller().snapshot().rewards.at(1).weight, 2.0);
}

TEST(RewardChange, DetachAnswersOnceTheRewardHasScoredItsLastGroup) {
  ScriptedCompany company(reward_script());
  company.at(500ms, [&company] {
    company.ask_controller(AttachReward{"x", "reward/x", 0.5}, "attach");
  });
  company.at(1s, [&company] { company.ask_controller(DetachReward{"x"}, "detach"); });
  ASSERT_TRUE(company.play());
  std::size_t answered = 0;
  for (std::size_t i = 0; i < company.events().size(); ++i) {
    if (company.events()[i].starts_with("detach holds")) answered = i;
  }
  EXPECT_LT(company.place("rewards 2 set"), company.place("drain x"));
  EXPECT_GT(answered, company.place("drained x"));
}

TEST(RewardChange, ALostRewardLeavesTheSet) {
  ScriptedCompany company(reward_script());
  company.at(500ms, [&company] {
    company.ask_controller(AttachReward{"x", "reward/x", 0.5}, "attach");
  });
  company.at(1s, [&company] { company.tell_lost("reward/x"); });
  ASSERT_TRUE(company.play());
  EXPECT_TRUE(company.has("rewards 2 set"));
  bool named = false;
  for (const auto& event : company.events()) {
    named = named || (event.starts_with("rewards 2 from") && event.ends_with(": rule -x"));
  }
  EXPECT_TRUE(named);
}

TEST(RewardChange, TheRunWaitsForAnotherRewardWhenTheLastIsLost) {
  for (const bool another : {true, false}) {
    Script script = reward_script();
    script.plan.reward_away = 90s;
    ScriptedCompany company(script);
    company.at(500ms, [&company] {
      company.ask_controller(AttachReward{"x", "reward/x", 0.5}, "attach");
    });
    company.at(700ms, [&company] { company.ask_controller(DetachReward{"rule"}, "detach"); });
    company.at(1500ms, [&company] { company.tell_lost("reward/x"); });
    if (another) {
      company.at(60s, [&company] {
        company.ask_controller(AttachReward{"y", "reward/y", 1.0}, "attach y");
      });
    }
    const auto outcome = company.play();
    EXPECT_EQ(outcome.has_value(), another);
    if (another) {
      EXPECT_GT(company.took(), 60s);
    } else {
      EXPECT_EQ(outcome.error().code, core::ErrorCode::kDeadline);
      EXPECT_NE(outcome.error().message.find("reward/x"), std::string::npos);
      EXPECT_NE(outcome.error().message.find("within 90 s (--reward.away_s)"), std::string::npos);
      EXPECT_LT(company.took(), 100s);
    }
  }
}

// It goes on with the rewards that were attached to it: none of its tickets is out before.
TEST(RewardChange, AResumedRunWaitsForWhatWasAttached) {
  for (const std::string how : {"comes", "is up", "is detached", "stays away"}) {
    Script script = reward_script();
    script.plan.reward_away = 90s;
    script.plan.earlier_sets = {{4, 0, {{"rule", "reward/rule", 1.0}, {"x", "reward/x", 0.5}}, {}}};
    ScriptedCompany company(script);
    std::size_t issued = 0;
    company.at(60s, [&, how] {
      issued = company.count("issue ");
      if (how == "comes") company.ask_controller(AttachReward{"x", "reward/x", 1.0}, "attach");
      if (how == "is up") company.tell_up("reward/x");
      if (how == "is detached") company.ask_controller(DetachReward{"x"}, "detach");
    });
    const auto outcome = company.play();
    EXPECT_EQ(issued, 0u) << how;
    EXPECT_EQ(company.hearer().awaited, std::set<std::string>{"x"}) << how;
    EXPECT_EQ(outcome.has_value(), how != "stays away") << how;
    if (!outcome) {
      EXPECT_EQ(outcome.error().code, core::ErrorCode::kDeadline);
      EXPECT_NE(outcome.error().message.find("reward x"), std::string::npos);
      EXPECT_NE(outcome.error().message.find("within 90 s (--reward.away_s)"), std::string::npos);
      EXPECT_LT(company.took(), 100s);
    } else if (how == "is detached") {
      EXPECT_TRUE(company.has("rewards 5 from u0: rule -x"));
      EXPECT_EQ(company.count("drain"), 0u) << "nobody is there to score";
    } else {
      EXPECT_EQ(company.count("rewards "), 0u) << "the data role knows the set";
      EXPECT_EQ(company.controller().snapshot().rewards.at(1).weight, 0.5);
    }
  }
}

TEST(RewardBoard, AFormulaHoldsForTheNextSetAndFitsItsRewards) {
  RewardBoard board({{"rule", "reward/rule", 1.0}}, {}, "2 * rule");
  EXPECT_EQ(board.change(1).formula, "2 * rule");
  EXPECT_EQ(code_of(board.attach({"safe", "reward/safe", 1.0, "gate(safe, 0.5, rest)"})), "");
  EXPECT_EQ(board.change(1).formula, "gate(safe, 0.5, rest)");
  const auto unknown = board.reweight({"", 1.0, "min(rule, other)"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "the formula names reward 'other', which the run does not have; its rewards are: rule, "
            "safe");
  EXPECT_EQ(code_of(board.reweight({"", 1.0, ""})), "invalid argument");
  const auto named = board.detach({"safe"});
  ASSERT_FALSE(named);
  EXPECT_NE(named.error().message.find("give one that fits with --formula"), std::string::npos);
  EXPECT_FALSE(board.attach({"x", "reward/x", 1.0, "min(x"}));
  EXPECT_EQ(board.members().size(), 2u) << "a refused change changes nothing";
  EXPECT_EQ(board.set(), 1u);
  EXPECT_EQ(code_of(board.reweight({"rule", 0.5, "min(rule, safe)"})), "");
  EXPECT_EQ(board.members()[0].weight, 0.5);
  EXPECT_EQ(board.formula(), "min(rule, safe)");
}

TEST(RewardBoard, ALostRewardThatTheFormulaNamesIsWaitedFor) {
  RewardBoard board({{"rule", "reward/rule", 1.0}});
  ASSERT_TRUE(board.attach({"safe", "reward/safe", 1.0, "gate(safe, 0.5, rest)"}));
  ASSERT_TRUE(board.lose("reward/safe"));
  EXPECT_TRUE(board.bereft()) << "a gate that is lost does not open";
  RewardBoard changed = board;
  ASSERT_TRUE(changed.reweight({"", 1.0, "rest"}));
  EXPECT_FALSE(changed.bereft());
  EXPECT_EQ(changed.change(3).lost, std::vector<std::string>{"safe"});
  ASSERT_TRUE(board.attach({"safe", "reward/safe-2", 1.0}));
  EXPECT_FALSE(board.bereft());
}

}  // namespace troupe::actors::controller
