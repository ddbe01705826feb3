#include "runtime/learn/choices.hpp"

#include "runtime/learn/chosen.hpp"
#include "runtime/learn/loss/loss_rows.hpp"
#include "runtime/learn/supervised/method_rows.hpp"
#include "runtime/learn/supervised/pair_loss_rows.hpp"

namespace troupe::learn {
namespace {

double token_mean(const UpdateCounts& counts, double, double) {
  return counts.mini_batches / counts.tokens;
}
double sample_mean(const UpdateCounts& counts, double sample_tokens, double) {
  return counts.mini_batches / (counts.samples * sample_tokens);
}
double constant_mean(const UpdateCounts& counts, double, double constant) {
  return counts.mini_batches / (counts.samples * constant);
}

constexpr std::array kReducers = {
    Reducer{
        .name = "token_mean", .help = "mean over all tokens of the update", .weight = token_mean},
    Reducer{.name = "sample_mean",
            .help = "mean over the samples of their tokens' mean",
            .weight = sample_mean},
    Reducer{.name = "constant",
            .help = "mean over the samples of their sum / algo.reducer_constant",
            .weight = constant_mean},
};

constexpr std::array kCredits = {
    Credit{.name = "token", .help = "rewards count at their tokens"},
    Credit{.name = "turn",
           .help = "a turn is one action: discount between turns, one advantage for its tokens",
           .by_turn = true},
    Credit{.name = "episode",
           .help = "all rewards of an episode are part of its score",
           .by_episode = true},
};

constexpr std::array kClipOrders = {
    ClipOrder{.name = "troupe", .help = "scores are clipped before the group step"},
    ClipOrder{.name = "openrlhf",
              .help = "the result of the group step is clipped",
              .after_group_step = true},
};

constexpr auto kObjectives = facts_of(objective_rows());
constexpr auto kKlEstimators = facts_of(kl_rows());
constexpr auto kMethods = facts_of(method_rows());
constexpr auto kPairLosses = facts_of(pair_loss_rows());

}  // namespace

std::span<const Objective> Objective::all() {
  return kObjectives;
}

double Objective::bound_of(const AlgoSettings& algo) const {
  return bound == nullptr ? algo.correction_max : algo.*bound;
}

std::span<const KlEstimator> KlEstimator::all() {
  return kKlEstimators;
}

std::span<const Method> Method::all() {
  return kMethods;
}

std::span<const PairLoss> PairLoss::all() {
  return kPairLosses;
}

std::span<const Reducer> Reducer::all() {
  return kReducers;
}

std::span<const Credit> Credit::all() {
  return kCredits;
}

std::span<const ClipOrder> ClipOrder::all() {
  return kClipOrders;
}

std::vector<core::ChoiceTable> choice_tables() {
  return {words_of<Estimator>("algo.advantage.estimator"),
          words_of<Objective>("algo.objective"),
          words_of<Reducer>("algo.reducer"),
          words_of<KlEstimator>("algo.kl.estimator"),
          words_of<Correction>("algo.correction.type"),
          words_of<ClipOrder>("reward.clip_order"),
          words_of<Credit>("algo.credit"),
          words_of<OptimKind>("actor.optim"),
          words_of<OptimKind>("critic.optim"),
          words_of<Schedule>("actor.lr_scheduler"),
          words_of<Schedule>("critic.lr_scheduler"),
          words_of<PairLoss>("dpo.loss")};
}

}  // namespace troupe::learn
