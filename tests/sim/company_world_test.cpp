// Whole runs of a company under faults, one a seed. A failing seed prints its plan and the command
// that plays it again with a trace.
#include "tests/sim/world/world.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace troupe::sim {
namespace {

constexpr std::uint64_t kSeeds = 300;
constexpr std::uint64_t kLongBatch = 5000;

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string play_again(const WorldPlan& plan) {
  return "TROUPE_SIM_SEED=" + std::to_string(plan.seed) +
         " build/bin/test_sim --gtest_filter=CompanyWorld." +
         (plan.supervised() ? "NoStep*" : "NothingIs*") + " writes sim_trace.txt";
}

// What was found wrong first; "" when all is well. A run at bound 0, and a supervised one, must
// learn what it learns without faults, unless they had to replace prompts.
std::string verdict(World& world, const WorldPlan& plan) {
  world.run();
  if (!world.wrong().empty()) return world.wrong().front();
  if (plan.asynchronous() || !plan.rewards.empty() || plan.replaces_prompts()) return "";
  World quiet(calm(plan));
  quiet.run();
  if (!quiet.wrong().empty()) return "without faults: " + quiet.wrong().front();
  return world.learned() == quiet.learned() ? "" : "it learned something else than without faults";
}

using Draw = WorldPlan (*)(std::uint64_t seed);

bool play(const WorldPlan& plan, Census& census) {
  World world(plan);
  const std::string wrong = verdict(world, plan);
  census.add(world.census());
  if (wrong.empty()) return true;
  ADD_FAILURE() << wrong << "\n" << plan.text() << "\n" << play_again(plan);
  return false;
}

void play_with_trace(const WorldPlan& plan) {
  World world(plan, true);
  const std::string wrong = verdict(world, plan);
  std::ofstream trace("sim_trace.txt");
  trace << plan.text() << "\n";
  for (const std::string& line : world.trace())
    trace << line << "\n";
  for (const std::string& line : world.wrong())
    trace << "WRONG " << line << "\n";
  EXPECT_EQ(wrong, "");
}

// Plays the seeds that the environment names; what was met.
Census play_all(Draw draw) {
  Census census;
  if (const char* const text = std::getenv("TROUPE_SIM_SEED")) {
    play_with_trace(draw(std::strtoull(text, nullptr, 10)));
    return census;
  }
  const std::uint64_t first = number_in("TROUPE_SIM_FIRST", 0);
  const std::uint64_t count = number_in("TROUPE_SIM_SEEDS", kSeeds);
  const std::uint64_t failures_max = number_in("TROUPE_SIM_FAILURES", 1);
  std::uint64_t failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < failures_max; ++seed)
    failures += play(draw(seed), census) ? 0 : 1;
  std::printf("%s", census.text().c_str());
  return census;
}

// The messages of supervised runs alone.
const std::set<std::string> kOfRows = {"fetchRows", "rowsPage", "evaluateRows"};
// The messages of environments: no world has one.
const std::set<std::string> kOfEpisodes = {"fetchEpisodes", "episodeTasks", "complete",
                                           "completed"};

// What no run of a long batch has met was not tested.
void expect_everything_met(const Census& census) {
  const std::set<std::string> absent = {"queryStatus", "status", "awaitPublished", "putLog"};
  std::vector<std::string> messages;
#define MESSAGE(Name, arm) messages.push_back(#Name);
#include "schema/messages.inc"
#undef MESSAGE
  for (std::string name : messages) {
    name[0] = static_cast<char>(std::tolower(name[0]));
    const bool elsewhere =
        absent.contains(name) || kOfRows.contains(name) || kOfEpisodes.contains(name);
    EXPECT_TRUE(elsewhere || census.of("message", name) > 0) << name;
  }
  for (int code = 0; code < core::kErrorCodes; ++code) {
    const std::string name(core::error_name(static_cast<core::ErrorCode>(code)));
    EXPECT_TRUE(name == "closed" || census.of("error", name) > 0) << name;
  }
  for (int kind = 0; kind <= static_cast<int>(Fault::Kind::kRankLoss); ++kind) {
    const std::string name = kind_name(static_cast<Fault::Kind>(kind));
    EXPECT_GT(census.of("fault", name), 0u) << name;
  }
}

void expect_every_loss_met(const Census& census) {
  for (const std::string& message : kOfRows)
    EXPECT_GT(census.of("message", message), 0u) << message;
  for (const char* phase : {"start", "meet", "load", "train", "evaluate", "save", "model"}) {
    for (const char* how : {" killed", " frozen"})
      EXPECT_GT(census.of("rank lost", std::string(phase) + how), 0u) << phase << how;
  }
  for (const char* event : {"a role keeps running", "a step is taken again", "step again",
                            "evaluation again", "crash in a write", "update failed"})
    EXPECT_GT(census.of("event", event), 0u) << event;
}

bool plays_one() {
  return std::getenv("TROUPE_SIM_SEED") != nullptr;
}

TEST(CompanyWorld, NothingIsLostOrDoneTwice) {
  const Census census = play_all(draw_plan);
  if (!plays_one() && !HasFailure() && number_in("TROUPE_SIM_SEEDS", kSeeds) >= kSeeds) {
    EXPECT_GT(census.of("reward", "changed"), 0u) << "no run has ever taken the guest's reward";
  }
  if (number_in("TROUPE_SIM_SEEDS", kSeeds) >= kLongBatch) expect_everything_met(census);
}

TEST(CompanyWorld, NoStepIsLostOrTakenTwice) {
  const Census census = play_all(draw_supervised_plan);
  if (!plays_one() && !HasFailure()) expect_every_loss_met(census);
}

// A host with a rank is cut off for longer than the gang waits, and comes back.
TEST(CompanyWorld, AGangTakesItsRanksInAgainAtACheckpoint) {
  WorldPlan plan;
  plan.seed = 7;
  plan.updates = 60;
  plan.save_steps = 3;
  plan.ranks = 3;
  plan.far_rank = true;
  plan.far_nodes = {"node/b1", "node/b2"};
  plan.token = std::chrono::milliseconds(2);
  plan.train = std::chrono::milliseconds(400);
  plan.load = std::chrono::milliseconds(100);
  plan.score = std::chrono::milliseconds(1);
  Fault& cut = plan.faults.emplace_back();
  cut.kind = Fault::Kind::kCut;
  cut.at = std::chrono::seconds(4);
  cut.span = std::chrono::seconds(18);
  World world(plan);
  EXPECT_EQ(verdict(world, plan), "");
  EXPECT_EQ(world.census().of("event", "a gang goes on with fewer ranks"), 1u);
  EXPECT_EQ(world.census().of("event", "a gang has all of its ranks again"), 1u);
}

// A gang of three that saves each update. Its ranks are lost in turn, or always the one of
// `target`, each `pace` from the fourth second on.
WorldPlan striking_ranks(int losses, core::Duration pace, const std::string& target = "") {
  WorldPlan plan;
  plan.seed = 11;
  plan.updates = 120;
  plan.save_steps = 1;
  plan.ranks = 3;
  plan.far_nodes = {"node/b1"};
  plan.token = std::chrono::milliseconds(2);
  plan.train = std::chrono::milliseconds(400);
  plan.load = std::chrono::milliseconds(100);
  plan.score = std::chrono::milliseconds(1);
  const std::vector<std::string> ranks = {"node/policy-1", "node/policy-2", "node/policy"};
  for (int loss = 0; loss < losses; ++loss) {
    Fault& crash = plan.faults.emplace_back();
    crash.kind = Fault::Kind::kCrash;
    crash.at = std::chrono::seconds(4) + loss * pace;
    crash.target = target.empty() ? ranks[static_cast<std::size_t>(loss) % ranks.size()] : target;
  }
  return plan;
}

// Each rank is lost four times within a minute, and the roles that end with the sessions twelve
// times; those have lost nothing.
TEST(CompanyWorld, AGangThatIsLostTwelveTimesAMinuteCostsNoOtherRole) {
  const WorldPlan plan = striking_ranks(12, std::chrono::milliseconds(4'500));
  World world(plan);
  EXPECT_EQ(verdict(world, plan), "");
  EXPECT_EQ(world.census().of("event", "another session"), 12u);
}

TEST(CompanyWorld, ARankThatIsLostOverAndOverEndsTheRun) {
  const WorldPlan plan = striking_ranks(12, std::chrono::milliseconds(4'500), "node/policy-1");
  World world(plan);
  world.run();
  ASSERT_FALSE(world.wrong().empty());
  EXPECT_NE(world.wrong().front().find("policy/1 was lost 8 times within 60 s"), std::string::npos)
      << world.wrong().front();
}

// Its ranks are lost in turn, none too often, and always before the first update is learned.
TEST(CompanyWorld, AGangThatNeverTrainsEndsTheRun) {
  WorldPlan plan = striking_ranks(200, std::chrono::milliseconds(100));
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    Fault& loss = plan.faults[i];
    loss.kind = Fault::Kind::kRankLoss;
    loss.at = i * std::chrono::milliseconds(100);
    loss.what = "train";
    loss.times = 0;  // it is killed
  }
  World world(plan);
  world.run();
  ASSERT_FALSE(world.wrong().empty());
  EXPECT_EQ(world.wrong().front(), "the run ended: policy/0 is lost: its process ended");
  EXPECT_EQ(world.census().of("event", "another session"), 8u);
}

// Run A has a node and a guest with a reward on the far host; its own host is lost, in odd seeds
// for the second time, so that run B begins with a lower generation. The node serves B, the guest
// ends, and B learns what it learns without either.
TEST(CompanyWorld, ANodeServesTheNextRunAndAGuestDoesNot) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    WorldPlan plan = calm(draw_plan(seed));
    plan.updates = 20;
    plan.staleness_max = 0;
    plan.straggler_timeout = {};
    plan.ranks = plan.critic_ranks = 1;
    plan.far_rank = false;
    plan.far_nodes = {"node/b1"};
    plan.rewards = {{RewardStep::Kind::kAttach, std::chrono::milliseconds(1500), 2}};
    plan.train = std::chrono::milliseconds(400);  // so that the first is not over by then
    plan.next_run = std::chrono::milliseconds(6000 + 100 * seed);
    if (seed % 2 == 1) {
      Fault& crash = plan.faults.emplace_back();
      crash.kind = Fault::Kind::kHeadCrash;
      crash.at = std::chrono::seconds(3);
      crash.span = std::chrono::milliseconds(500);
    }
    World world(plan), quiet(calm(plan));
    world.run();
    quiet.run();
    EXPECT_TRUE(world.wrong().empty()) << world.wrong().front() << "\n" << plan.text();
    EXPECT_TRUE(quiet.wrong().empty()) << quiet.wrong().front() << "\n" << plan.text();
    EXPECT_EQ(world.learned(), quiet.learned()) << plan.text();
    const auto events = [&world](const char* event) { return world.census().of("event", event); };
    EXPECT_EQ(events("another run"), 1u) << plan.text();
    EXPECT_EQ(events("a guest does not follow another run"), 1u) << plan.text();
    EXPECT_GE(events("a node serves another run"), 1u) << plan.text();
    EXPECT_GE(world.census().of("reward", "changed"), 1u) << "it was attached to the first\n"
                                                          << plan.text();
  }
}

TEST(CompanyWorld, ASeedRepeatsItself) {
  for (const std::uint64_t seed : {3, 14, 15}) {
    World first(draw_plan(seed), true), second(draw_plan(seed), true);
    first.run();
    second.run();
    EXPECT_GT(first.trace().size(), 100u);
    EXPECT_EQ(first.trace(), second.trace()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::sim
