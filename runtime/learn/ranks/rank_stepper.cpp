#include "runtime/learn/ranks/rank_stepper.hpp"

#include "kernels/ops.hpp"
#include "runtime/learn/optimizer.hpp"
#include "runtime/learn/ranks/rank_gradient.hpp"
#include "runtime/learn/ranks/shard_mover.hpp"
#include "runtime/learn/ranks/trained_window.hpp"

namespace troupe::learn {
namespace {

// What all stages share: the gradient, of which this rank has a shard at the end.
class RankStepper : public Stepper {
 public:
  RankStepper(RankGroup& group,
              const model::ModelSpec& spec,
              const std::shared_ptr<const model::ParamLayout>& trained,
              std::int64_t lanes,
              core::TeamRunner& team,
              RankPasses* passes = nullptr)
      : group_(group),
        team_(team),
        gradient_(group, spec, trained, lanes, team, passes),
        mover_(group, gradient_.shards(), team, kStaging_floats) {}

  model::ParamStore& working() override { return gradient_.working(); }
  void begin_step() override { gradient_.begin_step(); }
  core::Result<std::size_t> run(const StepParts& parts) override { return gradient_.run(parts); }
  core::Result<double> end_step() override { return gradient_.norm(); }
  core::Result<std::string> first_nonfinite() override { return gradient_.first_nonfinite(); }

 protected:
  RankGroup& group_;
  core::TeamRunner& team_;
  RankGradient gradient_;
  ShardMover mover_;
};

// Stage 0.
class WholeStepper final : public RankStepper {
 public:
  WholeStepper(RankGroup& group,
               const model::ParamStore& values,
               const std::shared_ptr<const model::ParamLayout>& trained,
               const OptimSettings& optim,
               core::TeamRunner& team)
      : RankStepper(group, values.spec(), trained, optim.lanes, team),
        sum_(values.spec(), trained, team.memory()),
        optimiser_(values, trained, optim) {}

  core::Result<void> apply(model::ParamStore& values, double lr, double scale) override {
    TROUPE_TRY(mover_.gather(gradient_.shard(), sum_.data()));
    optimiser_.step(team_, values, sum_, lr, scale);
    return {};
  }

  HeldMoment held(Moment moment) override {
    model::ParamStore& whole = optimiser_.moment(moment);
    return {whole.data(), whole.size(), &whole.memory()};
  }
  std::int64_t adam_steps() const override { return optimiser_.steps(); }
  void set_adam_steps(std::int64_t steps) override { optimiser_.set_steps(steps); }

 private:
  model::ParamStore sum_;  // the whole gradient
  AdamW optimiser_;
};

// Stages 1 to 3.
class ShardStepper final : public RankStepper {
 public:
  ShardStepper(RankGroup& group,
               const model::ParamStore& values,
               const std::shared_ptr<const model::ParamLayout>& trained,
               const OptimSettings& optim,
               core::TeamRunner& team,
               RankPasses* passes)
      : RankStepper(group, values.spec(), trained, optim.lanes, team, passes),
        optim_(optim),
        divided_(passes != nullptr),
        window_(values.layout(), *trained),
        m_(gradient_.shards().elements(group.rank()),
           optim.offload ? core::host_memory() : team.memory()),
        v_(m_.size(), m_.memory()) {}

  core::Result<void> apply(model::ParamStore& values, double lr, double scale) override {
    ++steps_;
    const kernels::AdamW terms = adamw_terms(optim_, steps_, lr, scale);
    const BlockShards& shards = mover_.shards();
    return mover_.each([&](core::Range turns) -> core::Result<void> {
      const core::Range place = shards.in_buffer(turns);
      const core::Range own = shards.in_shard(group_.rank(), turns);
      float* const window = window_.read(team_, values, place);
      mine_.reserve_discard(own.size(), team_.memory());
      step(terms, window, turns, own);
      if (divided_) return core::Result<void>();
      TROUPE_TRY(mover_.gather(turns, mine_.data(), window));
      window_.write(team_, values, place);
      return {};
    });
  }

  HeldMoment held(Moment moment) override {
    core::Buffer<float>& shard = moment == Moment::kFirst ? m_ : v_;
    return {shard.data(), shard.size(), &shard.memory()};
  }
  std::int64_t adam_steps() const override { return steps_; }
  void set_adam_steps(std::int64_t steps) override { steps_ = steps; }

 private:
  bool offloaded() const { return &m_.memory() != &team_.memory(); }

  // Takes this rank's blocks out of the window and steps them; divided weights are put back.
  void step(kernels::AdamW terms, float* window, core::Range turns, core::Range own) {
    const BlockShards& shards = mover_.shards();
    terms.param = mine_.data();
    terms.grad = gradient_.shard() + own.begin;
    terms.m = m_.data() + own.begin;
    terms.v = v_.data() + own.begin;
    team_.run([&](core::Team member) {
      kernels::flush_denormals();
      shards.pack(member, window, group_.rank(), turns, mine_.data());
      member.barrier();
      if (!offloaded()) kernels::ops().adamw(terms, member.share(own.size(), 64));
    });
    if (offloaded()) adamw_on_host(team_.memory(), terms, own.size());
    if (!divided_) return;
    team_.run([&](core::Team member) {
      shards.unpack(member, mine_.data(), group_.rank(), turns, window);
    });
  }

  const OptimSettings optim_;
  const bool divided_;  // the weights of other ranks' blocks are not here
  TrainedWindow window_;
  core::Buffer<float> m_, v_;  // of this rank's shard
  core::Buffer<float> mine_;   // its blocks of some turns of the weights
  std::int64_t steps_ = 0;     // applied steps
};

}  // namespace

std::unique_ptr<Stepper> rank_stepper(RankGroup& group,
                                      const model::ParamStore& values,
                                      const std::shared_ptr<const model::ParamLayout>& trained,
                                      const OptimSettings& optim,
                                      core::TeamRunner& team,
                                      RankPasses* passes) {
  if (optim.ranks.zero_stage == 0)
    return std::make_unique<WholeStepper>(group, values, trained, optim, team);
  return std::make_unique<ShardStepper>(group, values, trained, optim, team, passes);
}

}  // namespace troupe::learn
