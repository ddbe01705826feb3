// How the gradient of an optimiser step is added over its micro-batches and applied to the weights:
// by one process (alone_stepper), or by the ranks of a gang (rank_stepper.hpp). Owned by the
// model under training, used on its thread; numeric work on the team. Calls come in the order
// begin_step, run, end_step, apply; a step may end after each of them.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/optim/held_numbers.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/params.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace troupe::learn {

// What the model must know of a micro-batch before it runs.
struct StepPart {
  double share = 0;  // of the step's rows, for the load-balancing loss of experts; 0: no balancing
  bool learns = true;  // false: no backward pass; its lane stays absent
};

// The micro-batches of a step in the plan's order, and the figures that each of them makes.
struct StepParts {
  std::span<const StepPart> parts;
  // Runs a micro-batch and writes its figures.
  std::function<core::Result<void>(std::size_t part)> run;
  std::function<bool(std::size_t part)> finite;  // whether its loss was finite, by the figures
  std::byte* figures = nullptr;                  // of all parts, `figure_bytes` each
  std::size_t figure_bytes = 0;
};

class Stepper {
 public:
  virtual ~Stepper() = default;

  // What a backward pass adds to; always the same object. At stage 3 its layout may have room for
  // one part alone; moments have the layout that the stepper was made with.
  virtual model::ParamStore& working() = 0;

  virtual void begin_step() = 0;
  // Runs the micro-batches, or this rank's share of them, until one is not finite. Returns the
  // number of those that count, all of whose figures are there: all, or those up to and with the
  // first that is not finite.
  virtual core::Result<std::size_t> run(const StepParts& parts) = 0;
  // Completes the gradient and returns its global norm.
  virtual core::Result<double> end_step() = 0;
  // The name of the first tensor whose gradient is not finite; empty when none. After end_step().
  virtual core::Result<std::string> first_nonfinite() = 0;
  // The optimiser's step, with the gradient times `scale`.
  virtual core::Result<void> apply(model::ParamStore& values, double lr, double scale) = 0;

  // The optimiser's state, to be saved or changed.
  virtual HeldNumbers held(Moment moment) = 0;
  virtual std::int64_t adam_steps() const = 0;
  virtual void set_adam_steps(std::int64_t steps) = 0;
};

// `values`: the store whose trained part `trained` is stepped. `team` outlives the stepper.
std::unique_ptr<Stepper> alone_stepper(const model::ParamStore& values,
                                       const std::shared_ptr<const model::ParamLayout>& trained,
                                       const OptimSettings& optim,
                                       core::TeamRunner& team);

}  // namespace troupe::learn
