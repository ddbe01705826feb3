// Where roles go, what is refused, and which settings are found to help.
#include "runtime/plan/plan.hpp"

#include "runtime/plan/remedies.hpp"
#include "tests/unit/runtime/plan/known_models.hpp"

#include <gtest/gtest.h>

namespace troupe::plan {
namespace {

using kernels::PanelDtype;

std::shared_ptr<const ModelSizes> small_model() {
  static const auto model = std::make_shared<const ModelSizes>(llama3_8b());
  return model;
}

TrainerFacts trainer(std::int64_t ranks = 1, std::int64_t stage = 0) {
  TrainerFacts facts;
  facts.model = small_model();
  facts.panels = PanelDtype::kBf16Compute;
  facts.trained = facts.model->weights();
  facts.trained_layers = 32;
  facts.checkpointing = true;
  facts.rows = 2048;
  facts.lanes = ranks;
  facts.ranks = {ranks, stage, false};
  return facts;
}

EngineFacts engine() {
  EngineFacts facts;
  facts.model = small_model();
  facts.panels = PanelDtype::kBf16Compute;
  facts.keys_bytes_max = std::int64_t{30} << 30;
  facts.sequences = 256;
  facts.step_rows = 2048;
  return facts;
}

ScorerFacts scorer() {
  ScorerFacts facts;
  facts.model = small_model();
  facts.panels = PanelDtype::kBf16Compute;
  facts.rows = 2048;
  return facts;
}

RunFacts run_on(const std::string& cluster, std::vector<Role> roles) {
  RunFacts facts;
  facts.cluster = *parse_cluster(cluster);
  facts.place = {false, 1};
  facts.roles = std::move(roles);
  const std::int64_t ranks = facts.roles.front().count;
  facts.batch = {true, 64, 8, 1, 1, 256, 255, 2048, ranks, ranks};
  return facts;
}

Role policy(std::int64_t ranks = 1, std::int64_t stage = 0) {
  return {"policy", trainer(ranks, stage), ranks, "--actor-ranks", {}, {}};
}

TEST(Placement, RolesTakeNeighbouringDevicesInOrder) {
  const auto plan = plan_of(run_on("2x8xH100-80", {policy(4, 3),
                                                   {"generator", engine(), 6, "--engines", {}, {}},
                                                   {"reference", scorer(), 1, {}, {}, {}}}));
  ASSERT_TRUE(plan);
  const std::vector<std::vector<std::int64_t>> devices = {{0, 1, 2, 3}, {4, 5, 6, 7, 8, 9}, {10}};
  EXPECT_EQ(plan->placement.devices, devices);
  EXPECT_EQ(plan->placement.idle, 5);
  // Two engines are on another node than the policy's first rank.
  EXPECT_EQ(plan->push.engines, 6);
  EXPECT_EQ(plan->push.remote, 2);
  ASSERT_EQ(plan->loads.size(), 3u);
  EXPECT_EQ(plan->loads[0].devices, 4);
  EXPECT_EQ(plan->loads[1].devices, 6);
}

TEST(Placement, NamedDevicesAreKeptAndMayBeShared) {
  Role generator{"generator", engine(), 3, "--engines", {2, 3}, "rollout.device"};
  Role reference{"reference", scorer(), 1, {}, {3}, "ref.device"};
  Role reward{"reward/rm", scorer(), 1, {}, {}, {}};
  Role first = policy();
  first.named = {1};
  first.key = "actor.device";
  const auto plan = plan_of(run_on("4xH100-80", {first, generator, reference, reward}));
  ASSERT_TRUE(plan);
  const std::vector<std::vector<std::int64_t>> devices = {{1}, {2, 3, 2}, {3}, {0}};
  EXPECT_EQ(plan->placement.devices, devices);
  EXPECT_EQ(plan->placement.idle, 0);
  for (const DeviceLoad& load : plan->loads) {
    std::int64_t sum = 0;
    for (const std::size_t role : load.roles)
      sum += plan->memory[role].device_total();
    EXPECT_EQ(load.bytes, sum);
    const std::vector<std::vector<std::size_t>> roles = {{3}, {0}, {1, 1}, {1, 2}};
    EXPECT_EQ(load.roles, roles[static_cast<std::size_t>(load.device)]);
  }
}

std::string refusal(const RunFacts& facts) {
  const auto plan = plan_of(facts);
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().code, core::ErrorCode::kConfig);
  return plan.error().message;
}

TEST(Plan, RefusesWhatCannotBe) {
  EXPECT_EQ(
      refusal(run_on("4xH100-80", {policy(3, 3), {"generator", engine(), 2, "--engines", {}, {}}})),
      "the roles want 5 devices (policy 3, generator 2), --cluster has 4; give more devices, "
      "or less with --actor-ranks, --engines");
  RunFacts lanes = run_on("8xH100-80", {policy(4, 3)});
  lanes.lanes_set = true;
  lanes.batch.lanes = 2;
  EXPECT_EQ(refusal(lanes),
            "--actor-ranks 4: more ranks than lanes (2); raise --train.lanes or give fewer");
  RunFacts data = run_on("8xH100-80", {policy(4, 3)});
  data.batch.groups = 1;
  data.batch.samples = 2;
  EXPECT_EQ(refusal(data),
            "--actor-ranks 4: a step has only 2 samples; raise --train.batch_size or give fewer");
  EXPECT_EQ(refusal(run_on("8xH100-80", {policy(1, 2)})),
            "--zero-stage 2: one rank shares nothing; give --actor-ranks as well");
  Role far = policy();
  far.named = {7};
  far.key = "actor.device";
  EXPECT_EQ(refusal(run_on("4xH100-80", {far})),
            "actor.device leads to device 7 for policy, but --cluster has 4 on a node; name "
            "another or give fewer with --actor-ranks");
  RunFacts host = run_on("4xH100-80", {policy()});
  host.cluster = processors(0);
  std::get<TrainerFacts>(host.roles[0].facts).ranks.offload = true;
  EXPECT_EQ(refusal(host),
            "--offload: without devices everything is on the host; give --cluster or leave it out");
}

TEST(Plan, OfUnknownMemoryHasNoVerdict) {
  RunFacts host = run_on("1xH100-80", {policy()});
  host.cluster = processors(0);
  host.place = {true, 2};
  const auto plan = plan_of(host);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->judged);
  EXPECT_TRUE(plan->fits());
  host.cluster = processors(64'000'000'000);
  const auto judged = plan_of(host);
  ASSERT_TRUE(judged);
  EXPECT_TRUE(judged->judged);
  ASSERT_EQ(judged->shortfalls.size(), 1u);
  EXPECT_EQ(judged->shortfalls[0].where, "the host");
}

TEST(Plan, AHostThatIsTooSmallForWhatIsOffloadedIsAShortfall) {
  RunFacts facts = run_on("8xH100-80", {policy(8, 3)});
  std::get<TrainerFacts>(facts.roles[0].facts).ranks.offload = true;
  const auto unknown = plan_of(facts);
  ASSERT_TRUE(unknown);
  // All 8 ranks' shares of 12 P, and the windows of 1 MiB to and from 7 others.
  EXPECT_NEAR(static_cast<double>(unknown->fullest_host.bytes), 12 * 8.030e9 + 8 * 14 * 1048576.0,
              0.01e9);
  EXPECT_TRUE(unknown->fits());
  facts.cluster.host_bytes = 90'000'000'000;
  const auto small = plan_of(facts);
  ASSERT_TRUE(small);
  ASSERT_EQ(small->shortfalls.size(), 1u);
  EXPECT_TRUE(small->shortfalls[0].host);
  facts.cluster.host_bytes = 100'000'000'000;
  EXPECT_TRUE(plan_of(facts)->fits());
}

// What `remedy` says, one text; each remedy is tried.
std::string remedies_of(const RunFacts& facts) {
  const auto plan = plan_of(facts);
  EXPECT_TRUE(plan);
  std::string text;
  for (const Shortfall& shortfall : plan->shortfalls) {
    text += facts.roles[shortfall.role].name + ":";
    for (const std::string& setting : remedy(facts, shortfall))
      text += " " + setting;
    text += "\n";
  }
  return text;
}

TEST(Remedy, IsTheSmallestChangeThatWorks) {
  // 16 P = 128 GB. On the host 12 P of it; 4 P of gradients, 2.1 P of panels, a layer of 4 bytes a
  // weight (4 E = 2.1) and less than 10 GB for rows and context stay.
  EXPECT_EQ(remedies_of(run_on("1xH100-80", {policy()})), "policy: --offload\n");
  // 4 P of gradients are more than the card has.
  EXPECT_EQ(remedies_of(run_on("1xA10-24", {policy()})), "policy:\n");
  // Two ranks, stage 3: 8 P and 10 E are 69.5; with offload at stage 1 two gradients and panels are
  // 81.
  EXPECT_EQ(remedies_of(run_on("2xH100-80", {policy(2, 1)})), "policy: --zero-stage 3\n");
  // With 8 ranks 4 P of master, of gradients and of partial sums are 96 at stage 1, and at stage 2
  // 64 with 17 of panels and 4 of shares.
  EXPECT_EQ(remedies_of(run_on("8xH100-80", {policy(8, 1)})), "policy: --zero-stage 3\n");
  EXPECT_EQ(remedies_of(run_on("8xH100-80", {policy(8, 3)})), "");
}

TEST(Remedy, OfAnEngineIsRoomForFewerKeys) {
  EngineFacts full = engine();
  full.keys_bytes_max = std::int64_t{60} << 30;
  const RunFacts facts =
      run_on("8xH100-80", {policy(4, 3), {"generator", full, 4, "--engines", {}, {}}});
  EXPECT_EQ(remedies_of(facts), "generator: --rollout.kv_cache_gb 30\n");
  // 34 GB of panels in two versions are more than a card has.
  const RunFacts small =
      run_on("8xA10-24", {policy(4, 3), {"generator", engine(), 4, "--engines", {}, {}}});
  EXPECT_NE(remedies_of(small).find("generator:\n"), std::string::npos);
}

// A cache that cannot hold the longest group is no remedy.
TEST(Remedy, NeverTakesTheRoomOfTheLongestGroup) {
  EngineFacts full = engine();
  full.keys_bytes_max = std::int64_t{60} << 30;
  full.keys_bytes_min = std::int64_t{31} << 30;
  const RunFacts facts =
      run_on("8xH100-80", {policy(4, 3), {"generator", full, 4, "--engines", {}, {}}});
  EXPECT_EQ(remedies_of(facts).find("kv_cache_gb"), std::string::npos) << remedies_of(facts);
}

TEST(IdleDevices, GetMoreEnginesElseMoreRanks) {
  const auto advice = [](const RunFacts& facts) {
    const auto plan = plan_of(facts);
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
    return plan ? use_of_idle(facts, *plan) : "";
  };
  const Role one = {"generator", engine(), 1, "--engines", {}, {}};
  EXPECT_EQ(advice(run_on("8xH100-80", {policy(4, 3), one})), "--engines 4");
  EXPECT_EQ(advice(run_on("5xH100-80", {policy(4, 3), one})), "");
  EXPECT_EQ(advice(run_on("8xH100-80", {policy(4, 3)})), "--actor-ranks 8");
  // Engines whose devices are named stay where they are.
  const Role named = {"generator", engine(), 1, "--engines", {4}, "rollout.device"};
  EXPECT_EQ(advice(run_on("6xH100-80", {policy(4, 3), named})), "");
  // What does not fit needs something else first.
  EXPECT_EQ(advice(run_on("8xA10-24", {policy(4, 3), one})), "");
}

TEST(Remedy, OfActivationsIsFewerRowsOrCheckpointing) {
  Role large = policy(8, 3);
  std::get<TrainerFacts>(large.facts).rows = 65'536;
  std::get<TrainerFacts>(large.facts).checkpointing = false;
  RunFacts facts = run_on("8xH100-80", {large});
  facts.batch.rows_max = 65'536;
  const std::string text = remedies_of(facts);
  EXPECT_EQ(text.find("policy: --train.micro_tokens_max "), 0u) << text;
}

}  // namespace
}  // namespace troupe::plan
