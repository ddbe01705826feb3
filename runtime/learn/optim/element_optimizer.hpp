// The optimiser's step on the elements that a process has: all of a model's trained part, or its
// blocks (ranks/block_shards.hpp). Element by element, so neither threads nor ranks change a bit.
// Moments lie where they are stepped; compact ones are expanded, stepped and compressed some blocks
// at a time. Owned by a stepper, used on its thread.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/optim/moment_store.hpp"
#include "runtime/learn/optim/param_groups.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::kernels {
struct Ops;
}

namespace troupe::learn {

enum class Moment { kFirst, kSecond };

// Elements that are neighbours in the moments, in `param` and in `grad`.
struct OptimPiece {
  core::Range moments;  // of the elements that the process has
  float* param = nullptr;
  const float* grad = nullptr;
};

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter 2019), like torch.optim.AdamW:
// decay applies to every trained tensor, norms and biases included, unless a group says otherwise.
// Per element, at step t:
//   p -= lr wd p;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
//   p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)
// SGD is torch.optim.SGD with momentum: g += wd p;  m = momentum m + g;  p -= lr m.
// With Muon the gradients of matrices are directions (muon.hpp): p -= lr (g + wd p), with its rate.
class ElementOptimizer {
 public:
  // For `count` elements of `trained`, with moments in `memory`.
  ElementOptimizer(const OptimSettings& optim,
                   const model::ParamLayout& trained,
                   std::int64_t count,
                   BlockPlace place,
                   core::Memory& memory);

  // Begins the next step, with the gradient times `grad_scale`.
  void begin_step(double lr, double grad_scale);
  // Steps pieces in ascending order; between two calls of a step compact moments need the boundary
  // of a block. `grad` is in the team's memory, `param` in that of the moments. Where that is the
  // host's and the team's is not, the caller's thread does all, with a device's bits.
  void step(core::TeamRunner& team, std::span<const OptimPiece> pieces);

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  MomentStore& moment(Moment which) { return which == Moment::kFirst ? first_ : second_; }

 private:
  // Elements of the moments, some as f32 at `first` and `second`.
  struct Window {
    core::Range elements;
    float* first = nullptr;
    float* second = nullptr;
  };
  // Terms of one kind of tensors: those of a group, or matrices that Muon steps.
  struct Terms {
    bool by_adam = true;
    kernels::AdamW adam;
    kernels::Sgd sgd;
  };
  // f32 numbers in which a member expands its moments, some blocks at a time.
  struct Room {
    float* at = nullptr;
    std::int64_t blocks = 0;
  };

  int kind_of(const model::ParamLayout& trained, const model::ParamView& tensor) const;
  Terms terms_of(double lr, double grad_scale, int kind) const;
  std::uint32_t seed(Moment which) const;
  // The parts of the pieces in `elements`: whole blocks, where moments are compact.
  void step_elements(const kernels::Ops& ops,
                     core::Range elements,
                     std::span<const OptimPiece> pieces,
                     const Room& room);
  void step_window(const kernels::Ops& ops,
                   const Window& window,
                   std::span<const OptimPiece> pieces) const;
  void step_on_host(core::Memory& memory, std::span<const OptimPiece> pieces);
  // Calls `use` for neighbouring parts of `elements`, each of one kind.
  void each_kind(core::Range elements,
                 const std::function<void(core::Range part, const Terms& terms)>& use) const;

  const OptimSettings optim_;
  const KindSpans spans_;
  const bool varied_;  // whether there are several kinds
  const BlockPlace place_;
  MomentStore first_, second_;
  std::int64_t steps_ = 0;    // applied steps; a skipped one does not count
  std::vector<Terms> terms_;  // by kind
  core::Buffer<float> expanded_;
};

}  // namespace troupe::learn
