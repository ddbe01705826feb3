// The autograd nodes of the training forward. Each node holds the tape and its layer; its backward
// calls the tape's. Hidden states are tensors over the tape's memory, so nothing is copied unless
// LibTorch passes a gradient in its own memory. On a device these tensors only carry the graph;
// LibTorch never reads their numbers.
#include "runtime/model/train_graph.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "runtime/model/train_tape.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace troupe::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor view_of(float* data, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(data, {rows, columns}, at::TensorOptions().dtype(at::kFloat));
}

void keep(AutogradContext* ctx, TrainTape* tape, std::int64_t layer = 0) {
  ctx->saved_data["tape"] = reinterpret_cast<std::int64_t>(tape);
  ctx->saved_data["layer"] = layer;
}
TrainTape& tape_of(AutogradContext* ctx) {
  return *reinterpret_cast<TrainTape*>(ctx->saved_data["tape"].toInt());
}

// The gradient's values, contiguous; null when there is none.
const float* values_of(at::Tensor& gradient) {
  if (!gradient.defined()) return nullptr;
  gradient = gradient.contiguous();
  return gradient.data_ptr<float>();
}

// Copies the gradient of a hidden state into the tape's dx, unless it is there already.
void bring_home(at::Tensor gradient, TrainTape& tape) {
  const float* values = values_of(gradient);
  TROUPE_CHECK(values != nullptr, "a hidden state without gradient");
  if (values != tape.dx()) tape.memory().upload(tape.dx(), values, gradient.nbytes());
}

at::Tensor hidden_view(TrainTape& tape, float* data) {
  return view_of(data, tape.plan().rows(), tape.spec().hidden);
}

at::Tensor head_view(TrainTape& tape, float* data) {
  return view_of(data, tape.logit_rows(), tape.spec().hidden);
}

struct EmbeddingNode : Function<EmbeddingNode> {
  // `anchor` is a scalar that requires grad. The graph needs it because parameters are not its
  // leaves.
  static Variable forward(AutogradContext* ctx, const Variable& /*anchor*/, TrainTape* tape) {
    keep(ctx, tape);
    tape->forward_embedding();
    return hidden_view(*tape, tape->hidden(0));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    TrainTape& tape = tape_of(ctx);
    bring_home(gradients[0], tape);
    tape.backward_embedding();
    return {Variable(), Variable()};
  }
};

struct LayerNode : Function<LayerNode> {
  static Variable forward(AutogradContext* ctx,
                          const Variable& /*x*/,
                          TrainTape* tape,
                          std::int64_t layer) {
    keep(ctx, tape, layer);
    tape->forward_layer(layer);
    return hidden_view(*tape, tape->hidden(layer + 1));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    TrainTape& tape = tape_of(ctx);
    bring_home(gradients[0], tape);
    tape.backward_layer(ctx->saved_data["layer"].toInt());
    return {hidden_view(tape, tape.dx()), Variable(), Variable()};
  }
};

struct FinalNormNode : Function<FinalNormNode> {
  static Variable forward(AutogradContext* ctx, const Variable& /*x*/, TrainTape* tape) {
    keep(ctx, tape);
    tape->forward_final_norm();
    return head_view(*tape, tape->head().in());
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    TrainTape& tape = tape_of(ctx);
    const float* values = values_of(gradients[0]);
    TROUPE_CHECK(values != nullptr, "the head's input has no gradient");
    if (values != tape.head().din())
      tape.memory().upload(tape.head().din(), values, gradients[0].nbytes());
    tape.backward_final_norm();
    return {hidden_view(tape, tape.dx()), Variable()};
  }
};

struct HeadNode : Function<HeadNode> {
  static variable_list forward(AutogradContext* ctx,
                               const Variable& /*head_in*/,
                               TrainTape* tape,
                               const TokenTargets* targets,
                               double temperature,
                               bool want_entropy,
                               const TeacherRows* teacher) {
    keep(ctx, tape);
    ctx->saved_data["entropy"] = want_entropy;
    ctx->set_materialize_grads(false);
    tape->head().forward(*targets, static_cast<float>(temperature), want_entropy, teacher);
    variable_list outputs = {at::tensor(tape->head().logprobs(), at::kFloat)};
    if (want_entropy) outputs.push_back(at::tensor(tape->head().entropies(), at::kFloat));
    if (teacher != nullptr) outputs.push_back(at::tensor(tape->head().divergences(), at::kFloat));
    return outputs;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    TrainTape& tape = tape_of(ctx);
    const float* dlogprobs = values_of(gradients[0]);
    std::size_t next = 1;
    const auto take = [&](bool there) {
      return there && next < gradients.size() ? values_of(gradients[next++]) : nullptr;
    };
    const float* dentropies = take(ctx->saved_data["entropy"].toBool());
    const float* ddivergences = take(true);
    tape.head().backward(dlogprobs, dentropies, ddivergences);
    return {head_view(tape, tape.head().din()),
            Variable(),
            Variable(),
            Variable(),
            Variable(),
            Variable()};
  }
};

struct ValueNode : Function<ValueNode> {
  static Variable forward(AutogradContext* ctx, const Variable& /*head_in*/, TrainTape* tape) {
    keep(ctx, tape);
    tape->head().forward_values();
    return at::tensor(tape->head().values(), at::kFloat);
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    TrainTape& tape = tape_of(ctx);
    const float* dvalues = values_of(gradients[0]);
    TROUPE_CHECK(dvalues != nullptr, "values without gradient");
    tape.head().backward_values(dvalues);
    return {head_view(tape, tape.head().din()), Variable()};
  }
};

}  // namespace

struct TrainForward::State {
  State(core::TeamRunner& team, const ParamStore& master, ParamStore* grads, TapeOptions options)
      : tape(team, master, grads, options), anchor(at::zeros({}, at::kFloat)) {
    anchor.set_requires_grad(grads != nullptr);
  }
  // Builds the graph up to the head's input.
  Variable head_in(const PackedWeights& weights, const ForwardPlan& plan) {
    tape.begin(weights, plan);
    Variable x = EmbeddingNode::apply(anchor, &tape);
    for (std::int64_t layer = 0; layer < tape.spec().layers; ++layer) {
      x = LayerNode::apply(x, &tape, layer);
    }
    return FinalNormNode::apply(x, &tape);
  }
  TrainTape tape;
  at::Tensor anchor;
};

TrainForward::TrainForward(core::TeamRunner& team,
                           const ParamStore& master,
                           ParamStore* grads,
                           bool checkpointing,
                           const Lora* lora,
                           WeightsGate* values)
    : state_(
          std::make_unique<State>(team, master, grads, TapeOptions{checkpointing, lora, values})) {}
TrainForward::~TrainForward() = default;

TokenLogprobs TrainForward::logprobs(const PackedWeights& weights,
                                     const ForwardPlan& plan,
                                     const TokenTargets& targets,
                                     float temperature,
                                     bool want_entropy,
                                     const TeacherRows* teacher) {
  TrainTape& tape = state_->tape;
  const Variable head_in = state_->head_in(weights, plan);
  const variable_list outputs = HeadNode::apply(
      head_in, &tape, &targets, static_cast<double>(temperature), want_entropy, teacher);
  return {outputs[0], want_entropy ? outputs[1] : at::Tensor(),
          teacher != nullptr ? outputs.back() : at::Tensor()};
}

at::Tensor TrainForward::values(const PackedWeights& weights, const ForwardPlan& plan) {
  const Variable head_in = state_->head_in(weights, plan);
  return ValueNode::apply(head_in, &state_->tape);
}

void TrainForward::set_balance(double weight) {
  state_->tape.set_balance(weight);
}

void TrainForward::fix_embedding_of(std::int32_t token) {
  state_->tape.fix_embedding_of(token);
}

double TrainForward::balance_loss() const {
  return state_->tape.balance_loss();
}

std::uint64_t TrainForward::bytes() const {
  return state_->tape.bytes();
}

}  // namespace troupe::model
