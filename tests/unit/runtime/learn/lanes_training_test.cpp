// The gradients of whole trainers over lanes, against separate gradients of each micro-batch, added
// in a tree that is built level by level: the same bits for every kind of trainer, on any number of
// threads, on a device, and after a resume.
#include "runtime/learn/loss/objective.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/prepare_update.hpp"
#include "runtime/learn/rl/ptx_term.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/rl/value_loss.hpp"
#include "runtime/learn/state/state_counts.hpp"
#include "runtime/learn/supervised/packing.hpp"
#include "runtime/learn/supervised/row_runner.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/model/lora.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "runtime/model/trained_layout.hpp"
#include "runtime/store/safetensors.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/lanes/level_tree.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;
using Gradients = std::vector<std::optional<Numbers>>;

// With beta1 = 0 and no clipping the first moment after a step is the step's gradient.
OptimSettings gradient_in_moment(std::int64_t lanes) {
  OptimSettings optim;
  optim.adam.lr = 1e-2;
  optim.lr_warmup_ratio = 0;
  optim.adam.betas[0] = 0;
  optim.max_norm = 0;
  optim.lanes = lanes;
  return optim;
}

// A model, and gradients of single micro-batches on it: each adds to numbers of its own.
class Alone {
 public:
  Alone(std::unique_ptr<model::ParamStore> master, const OptimSettings& optim)
      : optim_(optim), master_(std::move(master)), layout_(master_->shared_layout()) {
    if (optim.trained.lora.rank > 0) {
      layout_ = *model::trained_layout(master_->spec(), optim.trained, "actor");
      lora_.emplace(*master_, layout_,
                    optim.trained.lora.alpha / static_cast<double>(optim.trained.lora.rank));
      lora_->start(optim.trained.seed);
      lora_->merge(team_, *master_);
    }
    weights_ = std::make_shared<model::PackedWeights>(master_->spec());
    team_.run([&](core::Team member) { weights_->fill(member, *master_, 0); });
  }

  core::TeamRunner& team() { return team_; }
  const model::ModelSpec& spec() const { return master_->spec(); }
  const model::PackedWeights& weights() const { return *weights_; }
  std::size_t size() const { return static_cast<std::size_t>(layout_->total); }

  // The gradient of what `backward` does with a forward pass.
  Numbers gradient(const std::function<void(model::TrainForward&)>& backward) {
    model::ParamStore grads(master_->spec(), layout_);
    model::TrainForward forward(team_, *master_, &grads, false, lora_ ? &*lora_ : nullptr);
    const c10::AutoGradMode with_grad(true);
    backward(forward);
    return model::numbers_of(grads);
  }

  // What a trainer's state must have as the first moment.
  Numbers moment_of(const Numbers& gradient) {
    model::ParamStore grads(master_->spec(), layout_), params = grads.same_layout();
    std::copy(gradient.begin(), gradient.end(), grads.data());
    StoreOptimizer adam(params, *layout_, optim_);
    adam.step(team_, params, grads, 1e-3, 1.0);
    MomentStore& moment = adam.moment(Moment::kFirst);
    return Numbers(moment.floats(), moment.floats() + moment.size());
  }
  Numbers saved_moment(const fs::path& folder) const {
    model::ParamStore moment(master_->spec(), layout_);
    auto file = store::SafetensorsFile::open(folder / "adam_m.safetensors");
    EXPECT_TRUE(file) << file.error().message;
    for (const model::ParamView& view : layout_->views)
      EXPECT_TRUE(file->read_f32(*file->find(view.name), moment.data() + view.offset));
    return model::numbers_of(moment);
  }

 private:
  const OptimSettings optim_;
  core::SerialTeam team_;
  std::unique_ptr<model::ParamStore> master_;
  std::shared_ptr<const model::ParamLayout> layout_;
  std::optional<model::Lora> lora_;
  std::shared_ptr<model::PackedWeights> weights_;
};

class LanesInTraining : public testing::Test {
 protected:
  LanesInTraining()
      : folder_(fs::temp_directory_path() / ("troupe_lanes_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    kernels::flush_denormals();
  }
  ~LanesInTraining() override { fs::remove_all(folder_); }

  static std::unique_ptr<model::ParamStore> weights(model::ModelSpec spec = tiny_spec()) {
    auto params = std::make_unique<model::ParamStore>(spec);
    model::randomise(*params, 11, 0.15f);
    return params;
  }

  static bool same(const Numbers& a, const Numbers& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  // Whether the state that `trainer` saves has the gradient of these micro-batches.
  template <class Trainer>
  void expect_gradient(const Trainer& trainer,
                       Alone& alone,
                       const Gradients& micro_batches,
                       std::int64_t lanes) {
    ASSERT_TRUE(trainer.save_state(folder_));
    const Numbers gradient =
        gradient_of(micro_batches, static_cast<std::size_t>(lanes), alone.size());
    EXPECT_TRUE(same(alone.saved_moment(folder_), alone.moment_of(gradient))) << lanes;
    double sum = 0;
    for (const float number : gradient)
      sum += std::fabs(static_cast<double>(number));
    EXPECT_GT(sum, 1e-3);
  }

  static TrainerSettings policy(std::int64_t lanes) {
    TrainerSettings settings;
    settings.optim = gradient_in_moment(lanes);
    settings.batch.micro_tokens_max = 64;
    settings.total_steps = 12;
    return settings;
  }

  static std::unique_ptr<PolicyTrainer> make(const TrainerSettings& settings,
                                             core::TeamRunner& team) {
    auto made = PolicyTrainer::create(weights(), settings, team);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value();
  }

  // Five groups, of which one has equal scores: nothing is learned from it.
  static std::vector<experience::Group> groups(const model::PackedWeights& weights,
                                               std::uint64_t update = 0) {
    auto all = random_groups(weights, update, 5, 4);
    for (auto& sample : all[1].samples)
      sample.score = 0.5;
    return all;
  }

  Gradients alone_policy(const TrainerSettings& settings,
                         Alone& alone,
                         std::size_t& looked_at) const {
    RunningMoments moments;
    const ScoreStart never = [](const auto&, const auto&) -> core::Result<TokenTable<float>> {
      return core::fail(core::ErrorCode::kInternal, "on-policy groups need no scores");
    };
    const auto update = prepare_update(settings, 0, groups(alone.weights()), never, moments);
    EXPECT_TRUE(update);
    Gradients all;
    for (const MicroBatch& micro : update->plan.mini_batches.front().micro_batches) {
      if (!micro.learns) {
        all.emplace_back();
        ++looked_at;
        continue;
      }
      all.push_back(alone.gradient([&](model::TrainForward& forward) {
        model::GroupPlan plan;
        EXPECT_TRUE(plan_micro_batch(update->groups, micro, alone.spec(), alone.team(), plan));
        const TokenBatch batch = token_batch(settings.algo, *update, micro, 0);
        const auto out = forward.logprobs(alone.weights(), plan.plan, plan.targets, 1.0f, true);
        policy_loss(settings.algo, batch, out.logprobs, out.entropies).backward();
      }));
    }
    return all;
  }

  fs::path folder_;
};

TEST_F(LanesInTraining, APolicysGradientIsTheTreeOverItsMicroBatches) {
  core::SerialTeam team;
  for (const std::int64_t lanes : {2, 3, 8}) {
    for (const std::int64_t lora : {0, 4}) {
      TrainerSettings settings = policy(lanes);
      settings.optim.trained.lora.rank = lora;
      settings.optim.trained.seed = 7;
      Alone alone(weights(), settings.optim);
      std::size_t looked_at = 0;
      const Gradients parts = alone_policy(settings, alone, looked_at);
      EXPECT_GT(looked_at, 0u);
      EXPECT_EQ(parts.size() % static_cast<std::size_t>(lanes), lanes == 8 ? 4u : 0u);
      const auto trainer = make(settings, team);
      ASSERT_TRUE(trainer->update(groups(*trainer->packed())));
      expect_gradient(*trainer, alone, parts, lanes);
    }
  }
}

TEST_F(LanesInTraining, TextsAreFurtherMicroBatches) {
  core::SerialTeam team;
  auto texts = std::make_shared<PtxTexts>();
  core::Rng rng(4);
  for (int i = 0; i < 7; ++i)
    texts->texts.push_back(random_tokens(rng, 14));
  texts->coef = 2;
  for (const std::int64_t lanes : {2, 3, 8}) {
    TrainerSettings settings = policy(lanes);
    settings.ptx = texts;
    Alone alone(weights(), settings.optim);
    std::size_t looked_at = 0, parts = 1;
    Gradients all = alone_policy(settings, alone, looked_at);
    for (std::size_t part = 0; part < parts; ++part) {
      all.push_back(alone.gradient([&](model::TrainForward& forward) {
        PtxTerm term(texts, 64, alone.team(), forward);
        const PtxTerm::Step step = term.take(0, lanes);
        parts = step.parts.size();
        EXPECT_EQ(step.texts, 4u);  // 4 x 13 rows
        EXPECT_TRUE(term.add(alone.weights(), step, part));
      }));
    }
    EXPECT_EQ(parts, static_cast<std::size_t>(std::min<std::int64_t>(lanes, 4)));
    const auto trainer = make(settings, team);
    ASSERT_TRUE(trainer->update(groups(*trainer->packed())));
    expect_gradient(*trainer, alone, all, lanes);
  }
}

TEST_F(LanesInTraining, ACriticsGradientIsTheTreeOverItsMicroBatches) {
  core::SerialTeam team;
  for (const std::int64_t lanes : {2, 3, 8}) {
    CriticSettings settings;
    settings.optim = gradient_in_moment(lanes);
    settings.batch.micro_tokens_max = 64;
    settings.total_steps = 12;
    const model::ModelSpec spec = model::with_score_head(tiny_spec(false));
    Alone language(weights(), settings.optim), alone(weights(spec), settings.optim);
    const auto all = groups(language.weights());
    auto made = CriticTrainer::create(weights(spec), settings, team);
    ASSERT_TRUE(made) << made.error().message;
    const auto old = (*made)->values(all);
    ASSERT_TRUE(old);
    TokenValues returns = *old;
    for (auto& group : returns) {
      for (auto& sample : group) {
        for (float& value : sample)
          value += sample.size() % 2 == 0 ? 1.0f : -0.5f;
      }
    }
    const auto plan = plan_update(all, settings.batch, {}, {.lanes = lanes});
    ASSERT_TRUE(plan);
    Gradients parts;
    for (const MicroBatch& micro : plan->mini_batches.front().micro_batches) {
      parts.push_back(alone.gradient([&](model::TrainForward& forward) {
        model::GroupPlan rows;
        EXPECT_TRUE(plan_micro_batch(all, micro, alone.spec(), alone.team(), rows));
        ValueBatch batch;
        batch.weight = Chosen<Reducer>("token_mean")->weight(plan->counts(), 1, 1);
        for (const GroupPart& part : micro.parts) {
          for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
            const auto &before = (*old)[part.group][i], &target = returns[part.group][i];
            batch.old.insert(batch.old.end(), before.begin(), before.end());
            batch.returns.insert(batch.returns.end(), target.begin(), target.end());
          }
        }
        ValueStats stats;
        const at::Tensor heads = forward.values(alone.weights(), rows.plan);
        const at::Tensor targets =
            at::from_blob(rows.targets.row.data(), {rows.targets.size()}, at::kInt).to(at::kLong);
        const at::Tensor values = heads.to(at::kDouble).index_select(0, targets) * 1.0 + 0.0;
        value_loss(settings.value_clip, batch, values, stats).backward();
      }));
    }
    ASSERT_TRUE((*made)->update(all, *old, returns));
    expect_gradient(**made, alone, parts, lanes);
  }
}

TEST_F(LanesInTraining, ASupervisedGradientIsTheTreeOverItsMicroBatches) {
  core::SerialTeam team;
  for (const char* method : {"sft", "dpo"}) {
    core::Rng rng(5);
    std::vector<data::TokenRow> rows(10);
    for (data::TokenRow& row : rows) {
      row.answer = random_tokens(rng, 2 + rng.next_below(14));
      if (std::string(method) == "sft") continue;
      row.prompt = random_tokens(rng, 2 + rng.next_below(8));
      row.rejected = random_tokens(rng, 2 + rng.next_below(8));
    }
    const auto data = data::SupervisedDataset::of_tokens(rows);
    const std::vector<std::uint64_t> indices = {3, 0, 5, 1, 4, 2, 9, 8, 7, 6};
    for (const std::int64_t lanes : {2, 3, 8}) {
      SupervisedSettings settings;
      settings.loss.method = Chosen<Method>(method);
      settings.optim = gradient_in_moment(lanes);
      settings.micro_tokens_max = 64;
      settings.total_steps = 10;
      Alone alone(weights(), settings.optim);
      // All that a micro-batch's loss needs of the whole step.
      model::ParamStore unused(tiny_spec());
      model::TrainForward forward(alone.team(), unused, nullptr);
      RowRunner runner(settings.loss, {}, alone.team(), forward);
      std::vector<data::SupervisedRow> chosen;
      std::vector<std::int64_t> costs;
      for (const std::uint64_t index : indices) {
        chosen.push_back(data.row(index));
        costs.push_back(row_cost(*settings.loss.method, chosen.back()));
      }
      StepTotals totals;
      totals.rows = static_cast<double>(chosen.size());
      totals.first_tokens = sum_of(runner.facts_of(chosen).first_tokens);
      Gradients parts;
      for (const auto& micro : pack_for_lanes(costs, settings.micro_tokens_max, lanes)) {
        std::vector<data::SupervisedRow> part;
        for (const std::size_t i : micro)
          part.push_back(chosen[i]);
        RowFacts facts = runner.facts_of(part);
        if (settings.loss.method->reference) {
          const auto reference = runner.score(alone.weights(), part);
          ASSERT_TRUE(reference);
          facts.reference_first = reference->first;
          facts.reference_second = reference->second;
        }
        parts.push_back(alone.gradient([&](model::TrainForward& own) {
          RowRunner learner(settings.loss, {}, alone.team(), own);
          EXPECT_TRUE(learner.learn(alone.weights(), part, facts, totals));
        }));
      }
      EXPECT_EQ(std::ssize(parts) % lanes, 0);
      auto made = SupervisedTrainer::create(weights(), nullptr, settings, team);
      ASSERT_TRUE(made) << made.error().message;
      const auto step = (*made)->step(data.rows(indices));
      ASSERT_TRUE(step);
      EXPECT_EQ(step->micro_batches, std::ssize(parts));
      expect_gradient(**made, alone, parts, lanes);
    }
  }
}

// Updates of a run with lanes on one thread, on three, on a device, and with a stop in the middle.
TEST_F(LanesInTraining, ThreadsDevicesAndResumesChangeNoBit) {
  core::SerialTeam one;
  ThreadTeam three(3);
  std::string why;
  const auto device = model::make_device_team(why);
  TrainerSettings settings = policy(3);
  settings.optim = OptimSettings{};
  settings.optim.adam.lr = 1e-2;
  settings.optim.lanes = 3;
  settings.batch.mini_batches = 2;
  const auto straight = make(settings, one), parallel = make(settings, three);
  const auto there = device ? make(settings, *device) : nullptr;
  const auto resumed = make(settings, one);
  for (std::uint64_t update = 0; update < 4; ++update) {
    const auto all = groups(*straight->packed(), update);
    const auto expected = straight->update(all), other = parallel->update(all);
    ASSERT_TRUE(expected && other);
    EXPECT_EQ(other->metrics, expected->metrics);
    if (there) {
      const auto on_device = there->update(all);
      ASSERT_TRUE(on_device);
      EXPECT_EQ(on_device->metrics, expected->metrics);
    }
    if (update == 1) {
      ASSERT_TRUE(straight->save_state(folder_));
      ASSERT_TRUE(resumed->load_state(folder_));
    }
    if (update < 2) continue;
    const auto again = resumed->update(all);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->metrics, expected->metrics);
  }
  const Numbers end = model::numbers_of(straight->master());
  EXPECT_TRUE(same(model::numbers_of(parallel->master()), end));
  EXPECT_TRUE(same(model::numbers_of(resumed->master()), end));
  if (there) {
    EXPECT_TRUE(same(model::numbers_of(there->master()), end));
  }
  // Other lanes, other bits: that is why they belong to a run.
  settings.optim.lanes = 2;
  const auto others = make(settings, one);
  for (std::uint64_t update = 0; update < 2; ++update)
    ASSERT_TRUE(others->update(groups(*others->packed(), update)));
  ASSERT_TRUE(others->save_state(folder_));
  EXPECT_EQ(read_counts(folder_)->lanes, 2);
  EXPECT_FALSE(same(model::numbers_of(others->master()), end));
}

// The loss of a pair needs both of its samples: lanes stay empty rather than to split it.
TEST_F(LanesInTraining, PairsStayTogether) {
  core::SerialTeam team;
  std::vector<double> losses;
  for (const std::int64_t lanes : {1, 8}) {
    TrainerSettings settings = policy(lanes);
    settings.algo.objective = "online_dpo";
    settings.algo.advantage.estimator = "rloo";
    const auto trainer = make(settings, team);
    const auto report = trainer->update(groups(*trainer->packed()));
    ASSERT_TRUE(report) << report.error().message;
    // A group each; one is only looked at.
    if (lanes == 8) {
      EXPECT_EQ(report->micro_batches, 5);
    }
    for (const auto& [name, value] : report->metrics)
      if (name == "policy/loss") losses.push_back(value);
  }
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_GT(losses[0], 0.1);
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
}

TEST_F(LanesInTraining, TheStateSaysHowManyThereWere) {
  core::SerialTeam team;
  ASSERT_TRUE(make(policy(5), team)->save_state(folder_));
  EXPECT_EQ(read_counts(folder_)->lanes, 5);
  ASSERT_TRUE(make(policy(1), team)->save_state(folder_));
  EXPECT_EQ(read_counts(folder_)->lanes, 1);
  EXPECT_EQ(read_counts(folder_ / "none").error().code, core::ErrorCode::kNotFound);
}

TEST_F(LanesInTraining, NoLanesAndTooManyAreRefusedByTheKey) {
  core::SerialTeam team;
  for (const std::int64_t lanes : {0, -1, 1025}) {
    const auto made = PolicyTrainer::create(weights(), policy(lanes), team);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(made.error().message.find("train.lanes"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::learn
