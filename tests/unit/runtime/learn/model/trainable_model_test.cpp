// What the optimiser step leaves alone: bits under checkpointing, frozen tensors, and the base
// under adapters; and adapters that stop, resume and merge to the same bits.
#include "runtime/learn/model/trainable_model.hpp"

#include "runtime/learn/optim/muon.hpp"
#include "runtime/model/peft_folder.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;

class TrainedModel : public testing::Test {
 protected:
  TrainedModel()
      : folder_(fs::temp_directory_path() /
                ("troupe_trained_model_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    core::Rng rng(3);
    prompt_ = random_tokens(rng, 9);
    answer_ = random_tokens(rng, 20);
    const model::SampleGroup group{prompt_, {answer_}};
    EXPECT_TRUE(model::build_group_plan({&group, 1}, tiny_spec(), 1, plan_));
  }
  ~TrainedModel() override { fs::remove_all(folder_); }

  static std::unique_ptr<model::ParamStore> weights(std::uint64_t seed = 1, bool tied = true) {
    auto params = std::make_unique<model::ParamStore>(tiny_spec(tied));
    model::randomise(*params, seed, 0.15f);
    return params;
  }
  static OptimSettings settings() {
    OptimSettings optim;
    optim.adam.lr = 1e-2;
    optim.lr_warmup_ratio = 0;
    optim.adam.weight_decay = 0.1;
    optim.max_norm = 0;  // so that one tensor's step does not depend on the others
    return optim;
  }
  static OptimSettings with_lora() {
    OptimSettings optim = settings();
    optim.trained.lora.rank = 4;
    optim.trained.seed = 7;
    return optim;
  }
  std::unique_ptr<TrainableModel> make(const OptimSettings& optim, std::uint64_t seed = 1) {
    auto made = TrainableModel::create(weights(seed), optim, 50, team_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value();
  }

  // One step on the mean negative log-likelihood of the answer.
  StepReport step(TrainableModel& trained) {
    const auto accumulate = [&](const model::PackedWeights& packed) -> core::Result<double> {
      const auto out = trained.forward().logprobs(packed, plan_.plan, plan_.targets, 1.0f, false);
      const at::Tensor loss = -out.logprobs.mean();
      loss.backward();
      return loss.item<double>();
    };
    auto report = trained.step(accumulate, [] { return std::string("a test"); });
    EXPECT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->applied);
    return *report;
  }

  static bool same(const model::ParamStore& a, const model::ParamStore& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
  }

  // Four steps, and two after a restart from the state of the first two.
  void expect_resumes(const OptimSettings& optim) {
    const auto straight = make(optim);
    for (int i = 0; i < 4; ++i)
      step(*straight);
    const auto first = make(optim);
    step(*first);
    step(*first);
    ASSERT_TRUE(first->save_state(folder_));
    const auto second = make(optim, 2);
    ASSERT_TRUE(second->load_state(folder_));
    step(*second);
    step(*second);
    EXPECT_TRUE(same(straight->master(), second->master()));
  }

  core::SerialTeam team_;
  fs::path folder_;
  std::vector<std::int32_t> prompt_, answer_;
  model::GroupPlan plan_;
};

TEST_F(TrainedModel, CheckpointingChangesNoBit) {
  OptimSettings optim = settings();
  const auto plain = make(optim);
  optim.gradient_checkpointing_enable = true;
  const auto checkpointed = make(optim);
  for (int i = 0; i < 3; ++i) {
    const StepReport a = step(*plain), b = step(*checkpointed);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.grad_norm, b.grad_norm);
  }
  EXPECT_TRUE(same(plain->master(), checkpointed->master()));
  EXPECT_LT(checkpointed->forward().bytes(), plain->forward().bytes());
}

// Decay moves every trained tensor and no frozen one; the others go as if nothing were frozen.
TEST_F(TrainedModel, FrozenTensorsDoNotMove) {
  OptimSettings optim = settings();
  const auto whole = make(optim);
  optim.trained.freeze = {"mlp", "k_proj", "layers.0.input_layernorm"};
  const auto part = make(optim);
  const auto before = weights();
  step(*whole);
  step(*part);
  for (const model::ParamView& view : before->layout().views) {
    bool frozen = false;
    for (const std::string& word : optim.trained.freeze)
      frozen = frozen || view.name.find(word) != std::string::npos;
    const model::ParamStore& expected = frozen ? *before : whole->master();
    const auto size = static_cast<std::size_t>(view.count) * sizeof(float);
    EXPECT_EQ(std::memcmp(part->master().data() + view.offset, expected.data() + view.offset, size),
              0)
        << view.name;
    if (frozen) continue;
    EXPECT_NE(std::memcmp(part->master().data() + view.offset, before->data() + view.offset, size),
              0)
        << view.name;
  }
  EXPECT_LT(part->trained_size(), whole->trained_size());
}

TEST_F(TrainedModel, FrozenStatesResumeToTheSameBits) {
  OptimSettings optim = settings();
  optim.trained.freeze = {"embed_tokens", "q_proj"};
  expect_resumes(optim);
}

TEST_F(TrainedModel, EveryOptimiserResumesToTheSameBits) {
  for (const OptimKind& kind : OptimKind::all()) {
    SCOPED_TRACE(kind.name);
    OptimSettings optim = settings();
    optim.optim = kind;
    optim.trained.freeze = {"q_proj"};
    expect_resumes(optim);
    EXPECT_EQ(fs::exists(folder_ / "adam_v.safetensors"), kind.adam);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

// Fewer bits change the path a little, and not where it leads.
TEST_F(TrainedModel, MomentsInFewerBitsLearnAlike) {
  OptimSettings optim = settings();
  const auto loss_of = [&](const char* kind) {
    optim.optim = Chosen<OptimKind>(kind);
    const auto trained = make(optim);
    double loss = 0;
    for (int i = 0; i < 30; ++i)
      loss = step(*trained).loss;
    return loss;
  };
  const double start = step(*make(optim)).loss, exact = loss_of("adamw");
  ASSERT_LT(exact, 0.5 * start);
  EXPECT_NEAR(loss_of("adamw_bf16"), exact, 0.05 * start);
  EXPECT_NEAR(loss_of("adamw_8bit"), exact, 0.05 * start);
}

// A first step: momentum 0.05 g, with Nesterov u = 0.0975 g, so the direction is that of g.
TEST_F(TrainedModel, MuonMovesMatricesAlongTheirOrthogonalPartAndTheRestByAdam) {
  OptimSettings optim = settings();
  const auto adam = make(optim);
  optim.optim = "muon";
  optim.muon.lr = 0.05;
  const auto muon = make(optim);
  const auto before = weights();
  step(*adam);
  const double lr = 5 * step(*muon).lr;  // 0.05 where the rest has 0.01
  Orthogonalizer orthogonalizer(team_);
  OptimSettings plain = settings();
  plain.optim = "sgd";
  plain.adam.weight_decay = 0;
  plain.adam.lr = 1;
  const auto gradient = make(plain);  // one step of which takes the gradient off
  step(*gradient);
  std::int64_t matrices = 0;
  for (const model::ParamView& view : before->layout().views) {
    const auto at = [&](const model::ParamStore& store, std::int64_t i) {
      return store.data()[view.offset + i];
    };
    if (!is_muon_matrix(before->layout(), view)) {
      for (std::int64_t i = 0; i < view.count; ++i)
        ASSERT_EQ(at(muon->master(), i), at(adam->master(), i)) << view.name;
      continue;
    }
    ++matrices;
    std::vector<float> u;
    for (std::int64_t i = 0; i < view.count; ++i)
      u.push_back(at(*before, i) - at(gradient->master(), i));
    orthogonalizer.run(u.data(), view.shape[0], view.shape[1], 5);
    const double scale = std::sqrt(
        std::max(1.0, static_cast<double>(view.shape[0]) / static_cast<double>(view.shape[1])));
    for (std::int64_t i = 0; i < view.count; ++i) {
      const double was = at(*before, i);
      const double expected =
          was - lr * (scale * static_cast<double>(u[static_cast<std::size_t>(i)]) + 0.1 * was);
      ASSERT_NEAR(at(muon->master(), i), expected, 2e-4) << view.name;
    }
  }
  EXPECT_EQ(matrices, 7 * tiny_spec().layers);
}

TEST_F(TrainedModel, AStateOfAnotherOptimiserIsRefusedWithItsName) {
  OptimSettings optim = settings();
  optim.optim = "sgd";
  const auto sgd = make(optim);
  step(*sgd);
  ASSERT_TRUE(sgd->save_state(folder_));
  const auto adam = make(settings());
  const auto loaded = adam->load_state(folder_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, core::ErrorCode::kData);
  EXPECT_NE(loaded.error().message.find("give --actor.optim sgd"), std::string::npos)
      << loaded.error().message;
}

// Decay 0 for norms, a tenth of the rate for the embedding, nothing for layer 1.
TEST_F(TrainedModel, GroupsHaveARateAndADecayOfTheirOwn) {
  OptimSettings optim = settings();
  optim.optim = "sgd";  // whose steps are multiples of the rate
  optim.adam.weight_decay = 0;
  const auto plain = make(optim);
  optim.groups = {{"layers.1.", 0, {}}, {"embed_tokens", 0.1, {}}, {"norm", 1, 0.5}};
  const auto grouped = make(optim);
  const auto before = weights();
  step(*plain);
  const double lr = step(*grouped).lr;
  for (const model::ParamView& view : before->layout().views) {
    const bool still = view.name.find("layers.1.") != std::string::npos;
    const double rate = still ? 0 : view.name.find("embed_tokens") != std::string::npos ? 0.1 : 1;
    const double decay = !still && view.name.find("norm") != std::string::npos ? 0.5 : 0;
    for (std::int64_t i = view.offset; i < view.offset + view.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double was = before->data()[at], moved = plain->master().data()[at] - was;
      ASSERT_NEAR(grouped->master().data()[at], was + rate * moved - lr * decay * was, 2e-7)
          << view.name;
    }
  }
}

TEST_F(TrainedModel, GroupsAreReadAndRefusedWithTheReason) {
  const auto groups = parse_param_groups({"norm weight_decay=0", "embed lr=0.1 weight_decay=0.5"});
  ASSERT_TRUE(groups);
  EXPECT_EQ((*groups)[0].word, "norm");
  EXPECT_EQ((*groups)[0].lr_scale, 1);
  EXPECT_EQ((*groups)[0].weight_decay, 0);
  EXPECT_EQ((*groups)[1].lr_scale, 0.1);
  EXPECT_EQ((*groups)[1].weight_decay, 0.5);
  for (const char* wrong : {"", "norm", "lr=0.1", "norm lr", "norm lr=", "norm lr=x", "norm lr=-1",
                            "norm lr=nan", "norm decay=0", "norm lr=0.1x"}) {
    const auto refused = parse_param_groups({wrong});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("lr=SHARE"), std::string::npos);
  }
  OptimSettings optim = settings();
  optim.groups = {{"norms", 1, 0.0}};
  const auto made = TrainableModel::create(weights(), optim, 5, team_, "critic");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("critic.param_groups: 'norms'"), std::string::npos)
      << made.error().message;
}

TEST_F(TrainedModel, UnknownWordsAreRefusedWithTheSection) {
  OptimSettings optim = settings();
  optim.trained.freeze = {"atention"};
  const auto made = TrainableModel::create(weights(), optim, 5, team_, "critic");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(made.error().message.find("--critic.freeze 'atention'"), std::string::npos);
}

TEST_F(TrainedModel, LoraTrainsAdaptersAlone) {
  const auto trained = make(with_lora());
  const auto whole = make(settings());
  const auto base = weights();
  EXPECT_TRUE(same(trained->master(), *base));  // B is zero
  const double first = step(*trained).loss;
  double last = first;
  for (int i = 0; i < 12; ++i)
    last = step(*trained).loss;
  EXPECT_LT(last, 0.7 * first);
  for (const model::ParamView& view : base->layout().views) {
    const bool linear = view.name.find("_proj.weight") != std::string::npos;
    const bool moved =
        std::memcmp(trained->master().data() + view.offset, base->data() + view.offset,
                    static_cast<std::size_t>(view.count) * sizeof(float)) != 0;
    EXPECT_EQ(moved, linear) << view.name;
  }
  // 4 (rows + columns) of each of 7 maps of 2 layers, instead of rows * columns.
  EXPECT_EQ(trained->trained_size(), 2 * 4 * (64 + 48 + 48 + 64 + 80 + 80 + 80));
  EXPECT_GT(whole->trained_size(), base->spec().parameter_count() - 1);
}

TEST_F(TrainedModel, LoraResumesToTheSameBitsOnItsOwnBaseAlone) {
  const auto straight = make(with_lora());
  for (int i = 0; i < 4; ++i)
    step(*straight);
  const auto first = make(with_lora());
  step(*first);
  step(*first);
  ASSERT_TRUE(first->save_state(folder_));
  OptimSettings other_start = with_lora();
  other_start.trained.seed = 99;  // other fresh adapters, all replaced
  const auto second = make(other_start);
  (void)second->packed();
  ASSERT_TRUE(second->load_state(folder_));
  EXPECT_TRUE(same(first->master(), second->master()));
  step(*second);
  step(*second);
  EXPECT_TRUE(same(straight->master(), second->master()));
  const auto stranger = make(with_lora(), 2);
  const auto refused = stranger->load_state(folder_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("adapters of other base weights"), std::string::npos);
  const auto whole = make(settings());
  EXPECT_FALSE(whole->load_state(folder_));
}

// What is saved and merged into the base is the model that was trained, bit for bit.
TEST_F(TrainedModel, TheSavedAdapterMergesToTheMaster) {
  OptimSettings optim = with_lora();
  optim.trained.lora.target = {"q_proj", "layers.1.mlp.down_proj"};
  optim.trained.lora.alpha = 7;
  const auto trained = make(optim);
  for (int i = 0; i < 3; ++i)
    step(*trained);
  ASSERT_TRUE(trained->save_adapter(folder_ / "adapter", "some/base"));
  const auto merged = weights();
  auto lora = model::load_adapter(folder_ / "adapter", *merged);
  ASSERT_TRUE(lora) << lora.error().message;
  ThreadTeam team(2);
  (*lora)->merge(team, *merged);
  EXPECT_TRUE(same(*merged, trained->master()));
}

}  // namespace
}  // namespace troupe::learn
