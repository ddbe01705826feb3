#include "runtime/model/score.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/layer_grad.hpp"
#include "runtime/model/weights_gate.hpp"

#include <functional>
#include <iterator>

namespace troupe::model {
namespace {

void make_room(core::TeamRunner& team,
               const PackedWeights& weights,
               const ForwardPlan& plan,
               ScoreScratch& scratch) {
  core::Memory& memory = team.memory();
  // Log-probs of int8 weights are not those of any policy, so nothing may learn from them.
  TROUPE_CHECK(weights.dtype() != kernels::PanelDtype::kInt8,
               "int8 weights are for generation only; score with f32 or bf16 weights");
  TROUPE_CHECK(plan.placed_in(memory) && &weights.memory() == &memory,
               "plan and weights are in the memory of the team");
  const ModelSpec& spec = weights.spec();
  scratch.forward.reserve(memory, spec, plan.rows(), std::ssize(plan.logit_rows));
  scratch.pool.reserve_discard(spec, kv_blocks_of(plan), memory, weights.kv_dtype());
}

// Runs all parts of the model and then `last`, while the weights of the last part are there.
void run_parts(core::TeamRunner& team,
               const PackedWeights& weights,
               const ForwardPlan& plan,
               ScoreScratch& scratch,
               const std::function<void(core::Team)>& last) {
  if (weights.gate() == nullptr) {
    team.run([&](core::Team member) {
      forward_hidden(member, weights, plan, scratch.pool, scratch.forward);
      last(member);
    });
    return;
  }
  const std::int64_t end = parts_of(weights.spec()) - 1;
  for (std::int64_t part = 0; part <= end; ++part) {
    const OpenPart open(weights.gate(), part, false);
    team.run([&](core::Team member) {
      forward_part(member, weights, plan, scratch.pool, scratch.forward, part);
      if (part == end) last(member);
    });
  }
}

void run_head(core::TeamRunner& team,
              const PackedWeights& weights,
              const ForwardPlan& plan,
              ScoreScratch& scratch,
              HeadRequest request) {
  TROUPE_CHECK(weights.spec().head == HeadKind::kLanguage, "log-probs of a score model");
  make_room(team, weights, plan, scratch);
  request.rows = std::ssize(plan.logit_rows);
  scratch.head.prepare(team, weights.spec(), request);
  const HeadCall head{weights, scratch.forward.head_in.data(), request.rows, scratch.head};
  run_parts(team, weights, plan, scratch, [&](core::Team member) { head_logprobs(member, head); });
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
  run_head(team, weights, plan, scratch,
           {.targets = targets, .temperature = temperature, .entropy = !entropies.empty()});
  scratch.head.results(logprobs, entropies);
}

const float* score_head_in(core::TeamRunner& team,
                           const PackedWeights& weights,
                           const ForwardPlan& plan,
                           ScoreScratch& scratch) {
  make_room(team, weights, plan, scratch);
  run_parts(team, weights, plan, scratch, [](core::Team) {});
  return scratch.forward.head_in.data();
}

void score_divergences(core::TeamRunner& team,
                       const PackedWeights& weights,
                       const ForwardPlan& plan,
                       const TokenTargets& targets,
                       const TeacherRows& teacher,
                       ScoreScratch& scratch,
                       std::span<float> logprobs,
                       std::vector<DivergenceRow>& divergences) {
  run_head(team, weights, plan, scratch, {.targets = targets, .teacher = &teacher});
  scratch.head.results(logprobs, {});
  divergences = scratch.head.divergences();
}

void score_values(core::TeamRunner& team,
                  const PackedWeights& weights,
                  const ForwardPlan& plan,
                  ScoreScratch& scratch,
                  std::span<float> values) {
  TROUPE_CHECK(values.size() == plan.logit_rows.size(), "one value for each logit row");
  make_room(team, weights, plan, scratch);
  scratch.values.prepare(team, weights.spec(), std::ssize(values), false);
  run_parts(team, weights, plan, scratch, [&](core::Team member) {
    value_forward(member, weights, scratch.forward.head_in.data(), std::ssize(values),
                  scratch.values.values.data());
  });
  scratch.values.values.download(values);
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
