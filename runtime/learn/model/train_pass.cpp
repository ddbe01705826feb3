#include "runtime/learn/model/train_pass.hpp"

#include "runtime/learn/torch/step_failure.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <exception>

namespace troupe::learn {
namespace {

class GraphPass final : public TrainPass {
 public:
  GraphPass(core::TeamRunner& team, const model::ParamStore& master, model::ParamStore& grads)
      : forward_(team, master, &grads) {
    at::set_num_threads(1);
  }

  core::Result<std::span<const float>> logprobs(const model::PackedWeights& weights,
                                                const model::ForwardPlan& plan,
                                                const model::TokenTargets& targets,
                                                float temperature,
                                                bool want_entropy) override {
    try {
      const c10::AutoGradMode with_grad(true);
      out_ = {};  // frees the old graph before the new one allocates
      out_ = forward_.logprobs(weights, plan, targets, temperature, want_entropy);
    } catch (const std::exception& thrown) {
      return step_failure(thrown, "in the training forward");
    }
    if (!out_.logprobs.requires_grad() || out_.logprobs.grad_fn() == nullptr) {
      return core::fail(core::ErrorCode::kInternal, "the training forward built no autograd graph");
    }
    return std::span<const float>(out_.logprobs.const_data_ptr<float>(),
                                  static_cast<std::size_t>(out_.logprobs.numel()));
  }

  core::Result<void> backward(float scale) override {
    try {
      const c10::AutoGradMode with_grad(true);
      out_.logprobs.backward(at::full_like(out_.logprobs, scale));
    } catch (const std::exception& thrown) {
      return step_failure(thrown, "in the training backward");
    }
    return {};
  }

 private:
  model::TrainForward forward_;
  model::TokenLogprobs out_;
};

}  // namespace

std::unique_ptr<TrainPass> TrainPass::create(core::TeamRunner& team,
                                             const model::ParamStore& master,
                                             model::ParamStore& grads) {
  return std::make_unique<GraphPass>(team, master, grads);
}

}  // namespace troupe::learn
