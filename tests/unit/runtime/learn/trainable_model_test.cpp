// What the optimiser step leaves alone: bits under checkpointing, frozen tensors, and the base
// under adapters; and adapters that stop, resume and merge to the same bits.
#include "runtime/learn/trainable_model.hpp"

#include "runtime/model/peft_folder.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

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
    optim.lr = 1e-2;
    optim.warmup_ratio = 0;
    optim.weight_decay = 0.1;
    optim.grad_norm_max = 0;  // so that one tensor's step does not depend on the others
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

  core::SerialTeam team_;
  fs::path folder_;
  std::vector<std::int32_t> prompt_, answer_;
  model::GroupPlan plan_;
};

TEST_F(TrainedModel, CheckpointingChangesNoBit) {
  OptimSettings optim = settings();
  const auto plain = make(optim);
  optim.checkpointing = true;
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
