// Steps of a model that one process trains: its gradient, and the optimiser over all trained
// weights.
#include "runtime/learn/lanes/lane_sum.hpp"
#include "runtime/learn/model/stepper.hpp"
#include "runtime/learn/optim/muon.hpp"
#include "runtime/learn/optim/optimizer.hpp"

#include <optional>

namespace troupe::learn {
namespace {

class AloneStepper final : public Stepper {
 public:
  AloneStepper(const model::ParamStore& values,
               const std::shared_ptr<const model::ParamLayout>& trained,
               const OptimSettings& optim,
               core::TeamRunner& team)
      : team_(team),
        gradient_(values.spec(), trained, optim.lanes, team),
        optimiser_(values, *trained, optim) {
    if (optim.optim->muon) muon_.emplace(optim.muon, *trained, team, nullptr, nullptr);
  }

  model::ParamStore& working() override { return gradient_.working(); }
  void begin_step() override { gradient_.begin_step(); }

  core::Result<std::size_t> run(const StepParts& parts) override {
    for (std::size_t part = 0; part < parts.parts.size(); ++part) {
      gradient_.begin_micro_batch(parts.parts[part].learns);
      TROUPE_TRY(parts.run(part));
      if (!parts.finite(part)) return part + 1;
    }
    return parts.parts.size();
  }

  core::Result<double> end_step() override {
    gradient_.end_step();
    return global_norm(team_, gradient_.sum().data(), gradient_.sum().size());
  }
  core::Result<std::string> first_nonfinite() override {
    return learn::first_nonfinite(team_, gradient_.sum());
  }
  core::Result<void> apply(model::ParamStore& values, double lr, double scale) override {
    if (muon_)
      TROUPE_TRY(muon_->replace(gradient_.sum().data(), optimiser_.moment(Moment::kFirst).floats(),
                                scale));
    optimiser_.step(team_, values, gradient_.sum(), lr, scale);
    return {};
  }

  HeldNumbers held(Moment moment) override { return held_in(optimiser_.moment(moment)); }
  std::int64_t adam_steps() const override { return optimiser_.steps(); }
  void set_adam_steps(std::int64_t steps) override { optimiser_.set_steps(steps); }

 private:
  core::TeamRunner& team_;
  LaneSum gradient_;
  StoreOptimizer optimiser_;
  std::optional<MuonDirections> muon_;
};

}  // namespace

std::unique_ptr<Stepper> alone_stepper(const model::ParamStore& values,
                                       const std::shared_ptr<const model::ParamLayout>& trained,
                                       const OptimSettings& optim,
                                       core::TeamRunner& team) {
  return std::make_unique<AloneStepper>(values, trained, optim, team);
}

}  // namespace troupe::learn
