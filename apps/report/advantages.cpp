#include "apps/report/advantages.hpp"

#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/read.hpp"
#include "runtime/learn/advantage/update_advantages.hpp"

#include <utility>

namespace troupe::report {
namespace {

std::string reason_for_none(const learn::AlgoSettings& algo, bool synchronous) {
  if (algo.advantage.estimator->has_critic) {
    return "the estimator " + std::string(algo.advantage.estimator->name) +
           " uses the critic's values, which a run does not keep";
  }
  if (algo.shaping.normalise_running)
    return "reward.normalize running depends on all scores since the start of the run";
  if (algo.objective->pairs) {
    return "the objective " + std::string(algo.objective->name) +
           " compares the best and the worst sample of a group instead";
  }
  if (algo.kl_in_reward() && algo.kl.target != 0)
    return "the coefficient of the KL in the reward was steered";
  if (algo.kl_in_reward() && !synchronous)
    return "the KL in the reward is between log-probs that an asynchronous run does not keep";
  return "";
}

}  // namespace

Advantages::Advantages(learn::AlgoSettings algo, bool synchronous)
    : algo_(std::move(algo)), why_not_(reason_for_none(algo_, synchronous)) {
  // A KL in the loss changes no advantage, and needs no reference here.
  if (algo_.kl.use_loss) algo_.kl.init_coef = 0;
}

Advantages Advantages::of_run(const std::filesystem::path& config_file) {
  const std::vector<std::string> words = {config_file.string()};
  const auto builder = config::read(session::run_table(), words);
  Advantages none;
  if (!builder) {
    none.why_not_ = "this version of the program cannot read the run's configuration";
    return none;
  }
  const config::TrainConfig& config = builder->current();
  if (config.method != config::kPpo) {
    none.why_not_ = "only reinforcement learning has advantages";
    return none;
  }
  if (!config.algo.advantage_file.empty()) {
    none.why_not_ = "algo.advantage_file computes them by a file of the user's own";
    return none;
  }
  return Advantages(session::trainer_settings(config, 1).algo, config.train.staleness_max == 0);
}

std::optional<AdvantageTable> Advantages::of(const std::vector<experience::Group>& groups) const {
  if (!why_not_.empty() || groups.empty()) return std::nullopt;
  learn::RunningMoments moments;
  auto found = learn::update_advantages(algo_, groups, {}, moments);
  if (!found) return std::nullopt;
  return std::move(found->tokens);
}

}  // namespace troupe::report
