// What is trained: checkpointing and freezing leave the bits of the gradients that remain, and save
// memory; words that name nothing are refused.
#include "runtime/model/trained_layout.hpp"

#include "tests/unit/runtime/model/gradient_problem.hpp"

namespace troupe::model {
namespace {

using core::ErrorCode;

std::shared_ptr<const ParamLayout> layout_of(const ModelSpec& spec, const TrainedSet& set) {
  auto layout = trained_layout(spec, set, "actor");
  EXPECT_TRUE(layout) << layout.error().message;
  return layout ? *layout : nullptr;
}

std::string refusal(const ModelSpec& spec, const TrainedSet& set) {
  const auto layout = trained_layout(spec, set, "actor");
  EXPECT_FALSE(layout);
  if (layout) return {};
  EXPECT_EQ(layout.error().code, ErrorCode::kConfig);
  return layout.error().message;
}

ModelSpec deep(ModelSpec spec) {
  spec.layers = 6;
  if (!spec.sliding.empty()) spec.sliding = {true, false, true, true, false, false};
  return spec;
}

class TrainedLayoutOf : public testing::TestWithParam<ModelSpec> {};

TEST_P(TrainedLayoutOf, CheckpointingGivesTheSameBitsInLessMemory) {
  const GradientProblem problem(deep(GetParam()));
  core::SerialTeam one;
  PairTeam two;
  const auto plain = problem.gradient(one);
  for (core::TeamRunner* team :
       {static_cast<core::TeamRunner*>(&one), static_cast<core::TeamRunner*>(&two)}) {
    const auto checkpointed = problem.gradient(*team, nullptr, {.checkpointing = true});
    EXPECT_TRUE(same_bits(plain.grads.data(), checkpointed.grads.data(), plain.grads.size()));
    const ModelSpec& s = problem.model.params.spec();
    const std::int64_t rows = problem.plan(1).plan.rows();
    // Five of six layers' inner values are not kept.
    const auto saved = static_cast<std::uint64_t>(
                           5 * rows * (s.hidden + s.qkv_width() + s.q_width() + 2 * s.ffn)) *
                       sizeof(float);
    EXPECT_LT(checkpointed.bytes + saved, plain.bytes);
  }
}

TEST_P(TrainedLayoutOf, FrozenTensorsChangeNoOtherGradient) {
  const GradientProblem problem(GetParam());
  const ModelSpec& spec = problem.model.params.spec();
  core::SerialTeam one;
  PairTeam two;
  const auto all = problem.gradient(one);
  const std::vector<std::vector<std::string>> sets = {{"k_proj"},
                                                      {"q_proj", "embed_tokens"},
                                                      {"layers.0.", "embed_tokens"},
                                                      {"norm"},
                                                      {"mlp"},
                                                      {"self_attn"},
                                                      {"gate_proj"},
                                                      {"up_proj", "o_proj"},
                                                      {"v_proj", "down_proj", "input_layernorm"},
                                                      {"layers", "embed"},
                                                      {"model.norm.weight"}};
  for (const auto& freeze : sets) {
    TrainedSet set;
    set.freeze = freeze;
    if (spec.tied && freeze.front() == "layers") set.freeze.pop_back();
    const auto layout = layout_of(spec, set);
    ASSERT_LT(layout->total, problem.model.params.layout().total);
    for (core::TeamRunner* team :
         {static_cast<core::TeamRunner*>(&one), static_cast<core::TeamRunner*>(&two)}) {
      for (const bool checkpointing : {false, true}) {
        const auto part = problem.gradient(*team, layout, {.checkpointing = checkpointing});
        for (const ParamView& view : layout->views) {
          const auto whole = all.grads.view(view.name);
          ASSERT_EQ(static_cast<std::int64_t>(whole.size()), view.count);
          EXPECT_TRUE(same_bits(part.grads.data() + view.offset, whole.data(), view.count))
              << view.name << " with " << freeze.front() << " frozen";
        }
      }
    }
    for (const ParamView& view : problem.model.params.layout().views) {
      bool frozen = false;
      for (const std::string& word : set.freeze)
        frozen = frozen || view.name.find(word) != std::string::npos;
      EXPECT_EQ(layout->find(view.name) == nullptr, frozen) << view.name;
    }
  }
}

TEST_P(TrainedLayoutOf, NothingIsKeptBelowTheFirstTrainedLayer) {
  if (GetParam().tied) return;  // the embedding is the head and so is trained
  const GradientProblem problem(deep(GetParam()));
  core::SerialTeam team;
  TrainedSet set;
  set.freeze = {"embed_tokens", "layers.0.", "layers.1.", "layers.2.", "layers.3."};
  const auto layout = layout_of(problem.model.params.spec(), set);
  EXPECT_EQ(first_trained_layer(*layout), 4);
  const auto all = problem.gradient(team), part = problem.gradient(team, layout);
  EXPECT_LT(2 * part.bytes, all.bytes + part.bytes);
  set.freeze = {"embed_tokens", "layers."};
  EXPECT_EQ(first_trained_layer(*layout_of(problem.model.params.spec(), set)), 6);
  set.freeze = {"layers."};
  EXPECT_EQ(first_trained_layer(*layout_of(problem.model.params.spec(), set)), 0);
}

INSTANTIATE_TEST_SUITE_P(Specs,
                         TrainedLayoutOf,
                         testing::Values(tiny_spec(),
                                         qwen_spec(),
                                         with_score_head(qwen_spec()),
                                         qwen3_spec(),
                                         gemma_spec()),
                         [](const auto& i) { return i.param.architecture; });

TEST(TrainedLayout, EverythingIsTheModelsOwnLayout) {
  const ModelSpec spec = qwen_spec();
  const auto layout = layout_of(spec, {});
  const ParamLayout whole(spec);
  ASSERT_EQ(layout->views.size(), whole.views.size());
  EXPECT_EQ(layout->total, whole.total);
  for (std::size_t i = 0; i < whole.views.size(); ++i)
    EXPECT_EQ(layout->views[i].offset, whole.views[i].offset);
}

TEST(TrainedLayout, AWordThatNamesNothingIsRefusedWithNearNames) {
  const std::string near = refusal(qwen_spec(), {.freeze = {"qproj"}, .lora = {}});
  EXPECT_NE(near.find("--actor.freeze 'qproj' matches no tensor name of this model; the nearest "
                      "are model.layers.0.self_attn.q_proj.weight"),
            std::string::npos)
      << near;
  EXPECT_NE(refusal(tiny_spec(), {.freeze = {"lm_head"}, .lora = {}}).find("lm_head"),
            std::string::npos);
  EXPECT_NE(refusal(qwen_spec(), {.freeze = {""}, .lora = {}}).find("matches no tensor"),
            std::string::npos);
  const std::string all = refusal(qwen_spec(), {.freeze = {"model", "lm_head"}, .lora = {}});
  EXPECT_NE(all.find("leaves nothing to train"), std::string::npos) << all;
}

TEST(TrainedLayout, LoraHasAdaptersOnItsTargetsAlone) {
  const ModelSpec spec = qwen_spec();
  const auto all = layout_of(spec, {.freeze = {}, .lora = {.rank = 4}});
  EXPECT_EQ(all->views.size(), static_cast<std::size_t>(2 * 7 * spec.layers));
  EXPECT_EQ(all->embedding, -1);
  EXPECT_EQ(all->head, -1);
  const auto* a = all->find("model.layers.1.mlp.down_proj.lora_A.weight");
  const auto* b = all->find("model.layers.1.mlp.down_proj.lora_B.weight");
  ASSERT_TRUE(a != nullptr && b != nullptr);
  EXPECT_EQ(a->shape, (std::vector<std::int64_t>{4, spec.ffn}));
  EXPECT_EQ(b->shape, (std::vector<std::int64_t>{spec.hidden, 4}));
  const auto some = layout_of(
      spec, {.freeze = {}, .lora = {.rank = 4, .target = {"q_proj", "layers.1.mlp.up_proj"}}});
  ASSERT_EQ(some->views.size(), 6u);
  EXPECT_NE(some->find("model.layers.0.self_attn.q_proj.lora_A.weight"), nullptr);
  EXPECT_NE(some->find("model.layers.1.mlp.up_proj.lora_B.weight"), nullptr);
  EXPECT_EQ(first_trained_layer(*some), 0);
  const auto above = layout_of(spec, {.freeze = {"layers.0."}, .lora = {.rank = 4}});
  EXPECT_EQ(above->views.size(), 14u);
  EXPECT_EQ(first_trained_layer(*above), 1);
  // A score head is new: it is trained whole beside the adapters.
  const auto score = layout_of(with_score_head(spec), {.freeze = {}, .lora = {.rank = 4}});
  EXPECT_NE(score->find("score.weight"), nullptr);
  EXPECT_GE(score->head, 0);
}

TEST(TrainedLayout, LoraRefusesModulesThatAreNotThere) {
  const auto target = [](std::vector<std::string> words) {
    return TrainedSet{.freeze = {}, .lora = {.rank = 4, .target = std::move(words)}};
  };
  const std::string typo = refusal(qwen_spec(), target({"q_proj", "k_prj"}));
  EXPECT_NE(typo.find("--actor.lora.target 'k_prj' matches no module"), std::string::npos) << typo;
  EXPECT_NE(typo.find("model.layers.0.self_attn.k_proj"), std::string::npos) << typo;
  EXPECT_NE(refusal(qwen_spec(), target({"proj"})).find("'proj'"), std::string::npos);
  for (const char* const other : {"lm_head", "model.embed_tokens"}) {
    EXPECT_NE(refusal(qwen_spec(), target({other})).find("heads and embeddings have no adapters"),
              std::string::npos);
  }
  EXPECT_NE(refusal(qwen_spec(), target({})).find("all-linear"), std::string::npos);
  TrainedSet bad = target({"q_proj"});
  bad.lora.alpha = 0;
  EXPECT_NE(refusal(qwen_spec(), bad).find("lora.alpha"), std::string::npos);
}

}  // namespace
}  // namespace troupe::model
