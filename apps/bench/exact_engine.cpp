#include "apps/bench/exact_engine.hpp"

#include "apps/bench/figures.hpp"
#include "apps/bench/workload.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"

namespace troupe::app {
namespace {

constexpr std::int64_t kScorerRows = 384;
constexpr std::int64_t kContext_min = 4;
constexpr float kOtherScale = 0.97f;
constexpr std::uint64_t kRoundStream = 0x65786163;  // keeps these seeds apart from a run's

}  // namespace

core::Result<TwoWeights> load_two_weights(const std::filesystem::path& folder,
                                          core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(params, model::load_model(folder));
  if (params->spec().context < kContext_min) {
    return core::fail(core::ErrorCode::kData, folder.string() + ": a context of " +
                                                  std::to_string(params->spec().context) +
                                                  " positions is too short for this benchmark");
  }
  TwoWeights two;
  two.weights = packed_weights(*params, 0, team);
  for (std::int64_t i = 0; i < params->size(); ++i)
    params->data()[i] *= kOtherScale;
  two.other = packed_weights(*params, 1, team);
  return two;
}

namespace {

core::Result<Difference> check_with_scorer(const EngineSide& side,
                                           const model::PackedWeights& weights,
                                           core::TeamRunner& team) {
  Difference difference;
  model::ScoreScratch scratch;
  model::GroupPlan plan;
  const std::int64_t limits[] = {kScorerRows};
  for (const float temperature : side.coverage.temperatures) {
    std::vector<const TranscriptGroup*> groups;
    for (const TranscriptGroup& group : side.transcript.groups) {
      if (group.temperature == temperature) groups.push_back(&group);
    }
    for (const PartBatch& batch : pack_parts(whole_groups(groups), limits)) {
      TROUPE_TRY(model::build_group_plan(model_groups(batch), weights.spec(), team.size(), plan));
      std::vector<float> logprobs(static_cast<std::size_t>(plan.targets.size()));
      model::score_logprobs(team, weights, plan.plan, plan.targets, temperature, scratch, logprobs);
      difference.add(compare(batch, logprobs));
    }
  }
  return difference;
}

}  // namespace

core::Result<EngineSide> run_engine_side(const std::filesystem::path& model,
                                         std::int64_t tokens,
                                         std::uint64_t seed) {
  kernels::flush_denormals();
  async::CpuPool pool(2, kernels::flush_denormals);
  core::SerialTeam serial;
  TROUPE_TRY_ASSIGN(two, load_two_weights(model, pool));
  EngineSide side;
  const auto rounds = exact_rounds();
  const auto shares = share_tokens(rounds, tokens);
  Stopwatch watch;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    core::TeamRunner& team = rounds[i].threads > 1 ? static_cast<core::TeamRunner&>(pool) : serial;
    const RoundInputs inputs{two.weights, two.other, team, core::derive_seed(seed, kRoundStream, i),
                             shares[i]};
    TROUPE_TRY(run_round(rounds[i], inputs, side.transcript, side.coverage));
    side.rounds += shares[i] > 0 ? 1 : 0;
  }
  side.engine_s = watch.lap();
  TROUPE_TRY_SET(side.scorer, check_with_scorer(side, *two.weights, pool));
  side.scorer_s = watch.lap();
  return side;
}

}  // namespace troupe::app
