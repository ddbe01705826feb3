// Log-probs and values without gradients.
#include "runtime/model/score.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/layer_grad.hpp"
#include "runtime/model/value_head.hpp"

namespace troupe::model {
namespace {

// Log-probs of int8 weights are not those of any policy: nobody may learn from them.
void require_exact(const PackedWeights& weights) {
  TROUPE_CHECK(weights.dtype() != kernels::PanelDtype::kInt8,
               "int8 weights are for generation only; score with f32 or bf16 weights");
}

void make_room(const ModelSpec& spec, const ForwardPlan& plan, ScoreScratch& scratch) {
  const std::int64_t blocks = kv_blocks_of(plan);
  scratch.forward.reserve(spec, plan.rows(), static_cast<std::int64_t>(plan.logit_rows.size()));
  if (scratch.pool.blocks() < blocks) scratch.pool = KvPool(spec, 1, blocks + blocks / 4);
}

}  // namespace

void score_logprobs(core::TeamRunner& team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    const TokenTargets& targets,
                    float temperature,
                    ScoreScratch& scratch,
                    std::span<float> logprobs,
                    std::span<float> entropies) {
  require_exact(weights);
  const ModelSpec& spec = weights.spec();
  TROUPE_CHECK(spec.head == HeadKind::kLanguage, "log-probs of a score model");
  const auto rows = static_cast<std::int64_t>(plan.logit_rows.size());
  make_room(spec, plan, scratch);
  scratch.head.prepare(spec, targets, rows, temperature, team.size(), false);
  scratch.lse.resize(static_cast<std::size_t>(rows));
  scratch.entropy.resize(entropies.empty() ? 0 : static_cast<std::size_t>(rows));
  const HeadCall head{weights,
                      scratch.forward.head_in.data(),
                      rows,
                      targets,
                      scratch.head,
                      scratch.lse.data(),
                      entropies.empty() ? nullptr : scratch.entropy.data()};
  team.run([&](core::Team member) {
    forward_hidden(member, weights, plan, scratch.pool, scratch.forward);
    head_logprobs(member, head, logprobs.data());
  });
  for (std::size_t i = 0; i < entropies.size(); ++i) {
    entropies[i] = scratch.entropy[static_cast<std::size_t>(targets.row[i])];
  }
}

void score_values(core::TeamRunner& team,
                  const PackedWeights& weights,
                  const ForwardPlan& plan,
                  ScoreScratch& scratch,
                  std::span<float> values) {
  require_exact(weights);
  TROUPE_CHECK(values.size() == plan.logit_rows.size(), "one value for each logit row");
  make_room(weights.spec(), plan, scratch);
  team.run([&](core::Team member) {
    forward_hidden(member, weights, plan, scratch.pool, scratch.forward);
    value_forward(member, weights, scratch.forward.head_in.data(),
                  static_cast<std::int64_t>(values.size()), values.data());
  });
}

std::vector<float> score_logprobs(core::TeamRunner& team,
                                  const PackedWeights& weights,
                                  const ForwardPlan& plan,
                                  const TokenTargets& targets,
                                  float temperature) {
  ScoreScratch scratch;
  std::vector<float> logprobs(targets.token.size());
  score_logprobs(team, weights, plan, targets, temperature, scratch, logprobs);
  return logprobs;
}

}  // namespace troupe::model
