// Log-probs without gradients.
#include "runtime/model/score.hpp"

#include "runtime/model/layer_grad.hpp"

namespace troupe::model {

void score_logprobs(core::TeamRunner& team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    const TokenTargets& targets,
                    float temperature,
                    ScoreScratch& scratch,
                    std::span<float> logprobs,
                    std::span<float> entropies) {
  const ModelSpec& spec = weights.spec();
  const auto rows = static_cast<std::int64_t>(plan.logit_rows.size());
  const std::int64_t blocks = kv_blocks_of(plan);
  scratch.forward.reserve(spec, plan.rows(), rows);
  if (scratch.pool.blocks() < blocks) scratch.pool = KvPool(spec, 1, blocks + blocks / 4);
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
