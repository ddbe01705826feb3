#include "runtime/learn/model/rank_stepper.hpp"

#include "kernels/ops.hpp"
#include "runtime/learn/model/rank_gradient.hpp"
#include "runtime/learn/model/trained_window.hpp"
#include "runtime/learn/optim/muon.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/ranks/shard_mover.hpp"

#include <optional>

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
              RankPasses* passes)
      : group_(group), team_(team), gradient_(group, spec, trained, lanes, team, passes) {}

  model::ParamStore& working() override { return gradient_.working(); }
  void begin_step() override { gradient_.begin_step(); }
  core::Result<std::size_t> run(const StepParts& parts) override { return gradient_.run(parts); }
  core::Result<double> end_step() override { return gradient_.norm(); }
  core::Result<std::string> first_nonfinite() override { return gradient_.first_nonfinite(); }

 protected:
  RankGroup& group_;
  core::TeamRunner& team_;
  RankGradient gradient_;
};

// Stage 0.
class WholeStepper final : public RankStepper {
 public:
  WholeStepper(RankGroup& group,
               const model::ParamStore& values,
               const std::shared_ptr<const model::ParamLayout>& trained,
               const OptimSettings& optim,
               core::TeamRunner& team)
      : RankStepper(group, values.spec(), trained, optim.lanes, team, nullptr),
        mover_(group, gradient_.shards(), team, kStaging_floats),
        sum_(values.spec(), trained, team.memory()),
        optimiser_(values, *trained, optim) {
    if (optim.optim->muon) muon_.emplace(optim.muon, *trained, team, &group, nullptr);
  }

  core::Result<void> apply(model::ParamStore& values, double lr, double scale) override {
    TROUPE_TRY(mover_.gather(gradient_.shard(), sum_.data()));
    if (muon_)
      TROUPE_TRY(muon_->replace(sum_.data(), optimiser_.moment(Moment::kFirst).floats(), scale));
    optimiser_.step(team_, values, sum_, lr, scale);
    return {};
  }

  HeldNumbers held(Moment moment) override { return held_in(optimiser_.moment(moment)); }
  std::int64_t adam_steps() const override { return optimiser_.steps(); }
  void set_adam_steps(std::int64_t steps) override { optimiser_.set_steps(steps); }

 private:
  ShardMover mover_;
  model::ParamStore sum_;  // the whole gradient
  StoreOptimizer optimiser_;
  std::optional<MuonDirections> muon_;
};

// Stages 1 to 3: moments of this rank's blocks, in the memory where they are stepped.
class ShardStepper : public RankStepper {
 public:
  ShardStepper(RankGroup& group,
               const model::ModelSpec& spec,
               const std::shared_ptr<const model::ParamLayout>& trained,
               const OptimSettings& optim,
               core::TeamRunner& team,
               core::Memory& memory,
               RankPasses* passes)
      : RankStepper(group, spec, trained, optim.lanes, team, passes),
        optimiser_(optim,
                   *trained,
                   gradient_.shards().elements(group.rank()),
                   {group.size(), group.rank()},
                   memory),
        gradients_(group, gradient_.shards(), team, kStaging_floats) {
    if (optim.optim->muon) muon_.emplace(optim.muon, *trained, team, &group, &gradients_);
  }

  HeldNumbers held(Moment moment) override { return held_in(optimiser_.moment(moment)); }
  std::int64_t adam_steps() const override { return optimiser_.steps(); }
  void set_adam_steps(std::int64_t steps) override { optimiser_.set_steps(steps); }

 protected:
  core::Result<void> begin_apply(double lr, double scale) {
    if (muon_)
      TROUPE_TRY(
          muon_->replace(gradient_.shard(), optimiser_.moment(Moment::kFirst).floats(), scale));
    optimiser_.begin_step(lr, scale);
    return {};
  }
  // Steps a piece of this rank's blocks, whose values are `blocks`, in the memory of the moments.
  void step(float* blocks, core::Range piece) {
    const OptimPiece one{piece, blocks, gradient_.shard() + piece.begin};
    optimiser_.step(team_, {&one, 1});
  }

 private:
  ElementOptimizer optimiser_;
  ShardMover gradients_;
  std::optional<MuonDirections> muon_;
};

// Stages 1 and 2: the new weights are gathered, where they are.
class GatheringStepper final : public ShardStepper {
 public:
  GatheringStepper(RankGroup& group,
                   const model::ParamStore& values,
                   const std::shared_ptr<const model::ParamLayout>& trained,
                   const OptimSettings& optim,
                   core::TeamRunner& team)
      : ShardStepper(group, values.spec(), trained, optim, team, values.memory(), nullptr),
        there_(&values.memory() == &team.memory() ? team : alone_),
        mover_(group, gradient_.shards(), there_, kStaging_floats),
        window_(values.layout(), *trained) {}

  core::Result<void> apply(model::ParamStore& values, double lr, double scale) override {
    TROUPE_TRY(begin_apply(lr, scale));
    const BlockShards& shards = mover_.shards();
    return mover_.each([&](core::Range turns) -> core::Result<void> {
      const core::Range place = shards.in_buffer(turns);
      const core::Range own = shards.in_shard(group_.rank(), turns);
      float* const window = window_.read(there_, values, place);
      mine_.reserve_discard(own.size(), there_.memory());
      there_.run([&](core::Team member) {
        shards.pack(member, window, group_.rank(), turns, mine_.data());
      });
      step(mine_.data(), own);
      TROUPE_TRY(mover_.gather(turns, mine_.data(), window));
      window_.write(there_, values, place);
      return {};
    });
  }

 private:
  core::SerialTeam alone_;
  core::TeamRunner& there_;  // where the weights are: the team, or this thread on the host
  ShardMover mover_;
  TrainedWindow window_;
  core::Buffer<float> mine_;  // this rank's blocks of some turns of the weights
};

// Stage 3: the weights stay where they are.
class DividedStepper final : public ShardStepper {
 public:
  DividedStepper(RankGroup& group,
                 const model::ParamStore& values,
                 const std::shared_ptr<const model::ParamLayout>& trained,
                 const OptimSettings& optim,
                 core::TeamRunner& team,
                 RankPasses& passes)
      : ShardStepper(group, values.spec(), trained, optim, team, passes.own().memory(), &passes),
        passes_(passes) {}

  core::Result<void> apply(model::ParamStore& /*values*/, double lr, double scale) override {
    TROUPE_TRY(begin_apply(lr, scale));
    step(passes_.own().data(), {0, passes_.own().size()});
    return {};
  }

 private:
  RankPasses& passes_;
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
  if (passes == nullptr)
    return std::make_unique<GatheringStepper>(group, values, trained, optim, team);
  return std::make_unique<DividedStepper>(group, values, trained, optim, team, *passes);
}

}  // namespace troupe::learn
