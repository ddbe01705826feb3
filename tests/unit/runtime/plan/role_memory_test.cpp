// The formulas against what trainers and scorers take on a device, on configurations drawn by seed;
// and the terms that only several ranks have, by hand.
#include "runtime/plan/role_memory.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/learn/rl/micro_batch.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/trained_layout.hpp"
#include "tests/unit/runtime/plan/counting_team.hpp"
#include "tests/unit/runtime/plan/known_models.hpp"

#include <gtest/gtest.h>

namespace troupe::plan {
namespace {

using kernels::PanelDtype;

constexpr Place kDevice{false, 1};

template <class T>
const T& one_of(core::Rng& rng, const std::vector<T>& all) {
  return all[rng.next_below(all.size())];
}

model::ModelSpec drawn_spec(core::Rng& rng) {
  const std::int64_t heads = one_of<std::int64_t>(rng, {2, 4, 6});
  model::ModelSpec spec =
      known_spec("LlamaForCausalLM", {one_of<std::int64_t>(rng, {2, 3, 5}), 32 * heads, heads, 2,
                                      one_of<std::int64_t>(rng, {160, 352, 608}),
                                      one_of<std::int64_t>(rng, {300, 1100, 2500}), 512});
  spec.tied = rng.next_below(2) == 0;
  spec.qk_norm = rng.next_below(3) == 0;
  spec.post_norms = rng.next_below(3) == 0;
  return spec;
}

struct Drawn {
  model::ModelSpec spec;
  learn::TrainerSettings settings;
  std::int64_t rows = 0;

  std::string text() const {
    return std::to_string(spec.layers) + " layers of " + std::to_string(spec.hidden) + ", ffn " +
           std::to_string(spec.ffn) + ", vocabulary " + std::to_string(spec.vocab) +
           (spec.tied ? ", tied" : "") + (spec.qk_norm ? ", qk norm" : "") +
           (spec.post_norms ? ", post norms" : "") + "; rows " + std::to_string(rows) + ", lanes " +
           std::to_string(settings.optim.lanes) + ", adapters " +
           std::to_string(settings.optim.trained.lora.rank) + ", " +
           kernels::name_of(settings.optim.panels) +
           (settings.optim.gradient_checkpointing_enable ? ", checkpointing" : "");
  }
};

Drawn draw(std::uint64_t seed) {
  core::Rng rng(seed);
  Drawn drawn;
  drawn.spec = drawn_spec(rng);
  drawn.settings.optim.panels = one_of(rng, std::vector{PanelDtype::kF32, PanelDtype::kBf16});
  drawn.settings.optim.gradient_checkpointing_enable = rng.next_below(2) == 0;
  drawn.settings.optim.lanes = one_of<std::int64_t>(rng, {1, 1, 2, 5, 8});
  drawn.settings.optim.trained.lora.rank = one_of<std::int64_t>(rng, {0, 0, 8});
  drawn.settings.total_steps = 4;
  drawn.rows = one_of<std::int64_t>(rng, {66, 130, 259});
  drawn.settings.batch.micro_tokens_max = drawn.rows;
  return drawn;
}

// Groups of one micro-batch each: a prompt of one token and two responses, `rows` rows in all.
std::vector<experience::Group> groups_for(const Drawn& drawn, core::Version version) {
  std::vector<experience::Group> groups;
  for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(drawn.settings.optim.lanes);
       ++slot) {
    experience::Group group;
    group.ticket = {0, slot, 0};
    group.prompt = {1};
    std::int64_t left = drawn.rows - 1;
    for (int i = 0; i < 2; ++i) {
      experience::Trajectory sample;
      const std::int64_t rows = i == 0 ? left / 2 : left;
      left -= rows;
      sample.tokens.assign(static_cast<std::size_t>(rows) + 1, 3);
      sample.behaviour.assign(sample.tokens.size(), -2.0f);
      sample.score = i;
      sample.versions = experience::VersionRuns::all(version, sample.tokens.size());
      group.samples.push_back(std::move(sample));
    }
    EXPECT_EQ(learn::part_rows(group, 0, 2), drawn.rows);
    groups.push_back(std::move(group));
  }
  return groups;
}

TrainerFacts facts_of(const Drawn& drawn) {
  TrainerFacts facts;
  facts.model = std::make_shared<const ModelSizes>(drawn.spec);
  const auto layout = model::trained_layout(drawn.spec, drawn.settings.optim.trained, "actor");
  EXPECT_TRUE(layout);
  facts.trained = (*layout)->total;
  if (drawn.settings.optim.trained.lora.rank > 0) {
    facts.adapted = drawn.spec.layers * (2 * drawn.spec.q_width() * drawn.spec.hidden +
                                         2 * drawn.spec.kv_width() * drawn.spec.hidden +
                                         3 * drawn.spec.ffn * drawn.spec.hidden);
  }
  facts.trained_layers = drawn.spec.layers - model::first_trained_layer(**layout);
  facts.panels = drawn.settings.optim.panels;
  facts.checkpointing = drawn.settings.optim.gradient_checkpointing_enable;
  facts.rows = drawn.rows;
  facts.lanes = drawn.settings.optim.lanes;
  return facts;
}

std::int64_t taken_by_trainer(const Drawn& drawn) {
  CountingTeam team;
  auto params = std::make_unique<model::ParamStore>(drawn.spec);
  model::randomise(*params, 3, 0.1f);
  auto trainer = learn::PolicyTrainer::create(std::move(params), drawn.settings, team);
  EXPECT_TRUE(trainer) << (trainer ? "" : trainer.error().message);
  if (!trainer) return 0;
  const auto done = (*trainer)->update(groups_for(drawn, (*trainer)->version()));
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  EXPECT_EQ(done ? done->micro_batches : 0, drawn.settings.optim.lanes);
  return team.memory().most();
}

TEST(TrainerMemory, OnADeviceIsWhatATrainerTakesThere) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Drawn drawn = draw(seed);
    const MemoryUse use = facts_of(drawn).memory(kDevice);
    const double planned = static_cast<double>(use.device_total() - use.device(Kind::kContext));
    const double taken = static_cast<double>(taken_by_trainer(drawn));
    EXPECT_NEAR(planned / taken, 1, 0.05) << "seed " << seed << ": " << drawn.text();
  }
}

TEST(ScorerMemory, OnADeviceIsWhatScoringTakesThere) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Drawn drawn = draw(seed);
    CountingTeam team;
    model::ParamStore params(drawn.spec);
    model::PackedWeights weights(drawn.spec, drawn.settings.optim.panels, team.memory());
    weights.fill({}, params, 0);
    const std::vector<std::int32_t> prompt(1, 1), response(static_cast<std::size_t>(drawn.rows), 2);
    model::SampleGroup group;
    group.prompt = prompt;
    group.responses.emplace_back(response);
    model::GroupPlan plan;
    ASSERT_TRUE(model::build_group_plan(std::span(&group, 1), drawn.spec, 1, plan));
    plan.plan.place(team.memory());
    model::ScoreScratch scratch;
    std::vector<float> logprobs(response.size());
    model::score_logprobs(team, weights, plan.plan, plan.targets, 1, scratch, logprobs);
    ScorerFacts facts;
    facts.model = std::make_shared<const ModelSizes>(drawn.spec);
    facts.panels = drawn.settings.optim.panels;
    facts.rows = drawn.rows;
    const MemoryUse use = facts.memory(kDevice);
    EXPECT_NEAR(static_cast<double>(use.device_total() - use.device(Kind::kContext)) /
                    static_cast<double>(team.memory().most()),
                1, 0.1)
        << "seed " << seed << ": " << drawn.text();
  }
}

TrainerFacts large(std::int64_t ranks, std::int64_t stage, bool offload) {
  TrainerFacts facts;
  facts.model = std::make_shared<const ModelSizes>(llama3_70b());
  facts.panels = PanelDtype::kBf16Compute;
  facts.trained = facts.model->weights();
  facts.trained_layers = 80;
  facts.checkpointing = true;
  facts.rows = 4096;
  facts.lanes = ranks;
  facts.ranks = {ranks, stage, offload};
  return facts;
}

double gb(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

// P = 70.55e9, the embedding 1.0507e9, panels 2 (P + embedding): the table of docs/scale.md.
TEST(TrainerMemory, StagesShareWhatTheySay) {
  const MemoryUse one = large(32, 1, false).memory(kDevice);
  const MemoryUse two = large(32, 2, false).memory(kDevice);
  const MemoryUse three = large(32, 3, false).memory(kDevice);
  EXPECT_NEAR(gb(one.device(Kind::kMaster)), 282.2, 0.1);
  EXPECT_NEAR(gb(one.device(Kind::kMoments)), 17.64, 0.01);
  EXPECT_NEAR(gb(one.device(Kind::kGradients)), 8.82, 0.01);
  EXPECT_NEAR(gb(one.device(Kind::kPartials)), 282.2, 0.1);
  EXPECT_NEAR(gb(one.device(Kind::kPanels)), 143.2, 0.1);
  EXPECT_EQ(one.device(Kind::kGathered), 0);
  EXPECT_NEAR(gb(two.device(Kind::kGradients)), 8.82, 0.01);
  EXPECT_EQ(two.device(Kind::kMaster), one.device(Kind::kMaster));
  EXPECT_NEAR(gb(three.device(Kind::kMaster)), 8.82, 0.01);
  EXPECT_NEAR(gb(three.device(Kind::kPartials)), 4.20, 0.01);  // 4 embeddings
  EXPECT_EQ(three.device(Kind::kPanels), 0);
  EXPECT_NEAR(gb(three.device(Kind::kGathered)), 6.30, 0.01);  // 4 + 2 embeddings
  for (const MemoryUse& use : {one, two, three})
    EXPECT_EQ(use.host_total(), 2 * 31 << 20) << "windows to and from 31 ranks";
}

TEST(TrainerMemory, OffloadMovesMasterAndMomentsToTheHost) {
  const MemoryUse three = large(32, 3, true).memory(kDevice);
  EXPECT_EQ(three.device(Kind::kMaster) + three.device(Kind::kMoments), 0);
  EXPECT_NEAR(gb(three.host(Kind::kMaster)), 8.82, 0.01);
  EXPECT_NEAR(gb(three.host(Kind::kMoments)), 17.64, 0.01);
  const MemoryUse two = large(32, 2, true).memory(kDevice);
  EXPECT_NEAR(gb(two.device(Kind::kGathered)), 4.20, 0.01);  // 4 embeddings
  EXPECT_NEAR(gb(two.host(Kind::kMaster)), 282.2, 0.1);      // whole, to be packed
  const MemoryUse alone = large(1, 0, true).memory(kDevice);
  EXPECT_NEAR(gb(alone.host(Kind::kMaster)), 282.2, 0.1);
  EXPECT_NEAR(gb(alone.host(Kind::kMoments)), 564.4, 0.1);
}

// A rank with 4 lanes has the one that it computes and two subtrees that wait; alone with 8 lanes
// three wait. docs/adr/0020: 2 + floor(log2 L) gradients in all.
TEST(TrainerMemory, SubtreesThatWaitTakeAGradientEach) {
  const double gradient = 4.0 * 70'553'706'496;
  const auto partials = [&](std::int64_t ranks, std::int64_t lanes) {
    TrainerFacts facts = large(ranks, 0, false);
    facts.lanes = lanes;
    return static_cast<double>(facts.memory(kDevice).device(Kind::kPartials)) / gradient;
  };
  EXPECT_EQ(partials(1, 1), 0);
  EXPECT_EQ(partials(1, 8), 4);
  EXPECT_EQ(partials(2, 8), 3);
  EXPECT_EQ(partials(8, 8), 1);
}

TEST(EngineMemory, HasTwoVersionsAndTheKeysThatSequencesCanUse) {
  EngineFacts facts;
  facts.model = std::make_shared<const ModelSizes>(llama3_8b());
  facts.panels = PanelDtype::kBf16Compute;
  facts.keys_bytes_max = 40'000'000'000;
  facts.sequences = 256;
  facts.step_rows = 2048;
  const MemoryUse use = facts.memory(kDevice);
  EXPECT_NEAR(gb(use.device(Kind::kPanels)), 17.12, 0.01);
  EXPECT_EQ(use.device(Kind::kPanels), use.device(Kind::kSparePanels));
  // 131,072 bytes a token in blocks of 16: 19,073 blocks.
  EXPECT_EQ(use.device(Kind::kKeys), std::int64_t{19'073} * 16 * 131'072);
  facts.sequences = 2;  // of 8,192 tokens
  EXPECT_EQ(facts.memory(kDevice).device(Kind::kKeys), std::int64_t{2} * 8192 * 131'072);
  // A vocabulary of 128,256: 2 rows, where many sequences have 2^29 bytes.
  EXPECT_EQ(facts.memory(kDevice).device(Kind::kLogits), 2 * 4 * 128'256);
  EXPECT_EQ(use.device(Kind::kLogits), 256 * 4 * 128'256);
  facts.sequences = 4096;
  EXPECT_EQ(facts.memory(kDevice).device(Kind::kLogits), std::int64_t{1040} * 4 * 128'256);
  EXPECT_EQ(facts.memory({true, 1}).device(Kind::kLogits), 64 * 4 * 128'256);  // 65 would fit
  facts.sequences = 2;
  // Keys of the exact classes, and all of those on processors, are f32.
  facts.panels = PanelDtype::kBf16;
  EXPECT_EQ(facts.memory(kDevice).device(Kind::kKeys), std::int64_t{2} * 8192 * 262'144);
}

}  // namespace
}  // namespace troupe::plan
