#include "runtime/learn/rl/update_report.hpp"

namespace troupe::learn {
namespace {

double zero_share(const TokenTable<double>& advantages) {
  double flat = 0;
  for (const auto& group : advantages) {
    bool zero = true;
    for (const auto& sample : group) {
      for (const double advantage : sample)
        zero = zero && advantage == 0;
    }
    flat += zero ? 1 : 0;
  }
  return flat / static_cast<double>(advantages.size());
}

// A reward that rises while the policy moves far from sampler or reference is a sign of reward
// hacking, or of off-policy noise.
bool alarming(const UpdateReport& report, const RlState& state, double score) {
  bool far = false;
  for (const auto& [name, value] : report.metrics) {
    far = far || (name == "kl/rollout_train" && value > kRolloutKlAlarm);
    far = far || (name == "kl/ref" && value > kReferenceKlAlarm);
  }
  return far && state.updates > 0 && score > state.score_trend;
}

}  // namespace

UpdateReport update_report(const TrainerSettings& settings,
                           const RlState& state,
                           const UpdateContext& update,
                           const UpdateTotals& totals,
                           core::Version version) {
  UpdateReport report;
  report.version = version;
  report.optimiser_steps = totals.steps;
  report.skipped_steps = totals.skipped;
  report.micro_batches = totals.micro_batches;
  report.policy_tokens = update.plan.tokens;
  report.rows = update.plan.rows;
  const auto applied = static_cast<double>(totals.steps - totals.skipped);
  auto& rows = report.metrics;
  if (applied > 0) {
    rows.emplace_back("policy/loss", totals.stats.loss / applied);
    rows.emplace_back("policy/grad_norm", totals.grad_norm_sum / applied);
    if (settings.ptx) rows.emplace_back("policy/ptx_loss", totals.ptx_nll_sum / applied);
    if (settings.optim.aux_loss_coef > 0) {
      rows.emplace_back("policy/aux_loss", totals.aux_sum / applied);
    }
  }
  if (totals.frozen) {
    rows.emplace_back("policy/frozen", 1.0);
  } else {
    rows.emplace_back("policy/lr", totals.lr);
    rows.emplace_back("policy/skipped_steps", static_cast<double>(totals.skipped));
  }
  if (settings.algo.kl.stop > 0) {
    rows.emplace_back("policy/left_out_steps", static_cast<double>(totals.left_out));
  }
  if (applied > 0) {
    for (auto& row : totals.stats.metrics())
      rows.push_back(std::move(row));
  }
  if (settings.algo.kl.init_coef != 0) {
    rows.emplace_back("kl/coef", settings.algo.kl.init_coef);
    rows.emplace_back("kl/sample", update.kl_of_sample);
  }
  if (settings.algo.needs_teacher()) rows.emplace_back("kl/teacher", update.kl_teacher);
  rows.emplace_back("async/staleness_mean", update.staleness.mean);
  rows.emplace_back("async/staleness_max", static_cast<double>(update.staleness.max));
  rows.emplace_back("policy/zero_advantage_share", zero_share(update.advantages));
  rows.emplace_back("alarm/reward_up_kl_high", alarming(report, state, update.score) ? 1.0 : 0.0);
  return report;
}

}  // namespace troupe::learn
