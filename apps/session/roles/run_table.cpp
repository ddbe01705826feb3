// The words and rules of reinforcement learning.
#include "apps/session/roles/run_table.hpp"

#include <optional>
#include <string>
#include <utility>

namespace troupe::app {
namespace {

// Rules of reinforcement learning.
std::optional<core::Refusal> check_algo(const config::TrainConfig& c) {
  const auto refuse = [](const char* key, std::string why) {
    return core::Refusal{key, std::move(why)};
  };
  const std::string& estimator = c.algo.advantage.estimator;
  const bool group = estimator != "gae" && estimator != "vtrace" && estimator != "reinforce";
  if (group && c.rollout.n_samples_per_prompt < 2) {
    return refuse("rollout.n_samples_per_prompt",
                  "algo.advantage.estimator " + estimator +
                      " compares the samples of a prompt: give at least 2");
  }
  if (group && c.algo.advantage.gamma != 1) {
    return refuse("algo.advantage.gamma", estimator + " has one reward a sample: give 1");
  }
  if (c.algo.kl.init_coef != 0 && c.algo.kl.use_loss && c.algo.kl.estimator == "k1") {
    return refuse("algo.kl.estimator",
                  "k1 has no expected gradient in the loss: give k2 or k3, or "
                  "--algo.kl.use_loss false");
  }
  if (c.algo.kl.target > 0 && c.algo.kl.init_coef == 0) {
    return refuse("algo.kl.target", "steers algo.kl.init_coef, which is 0");
  }
  if (c.algo.objective == "online_dpo" && c.rollout.n_samples_per_prompt < 2) {
    return refuse("algo.objective", "online_dpo compares the samples of a prompt");
  }
  if (c.algo.objective == "online_dpo" && !group) {
    return refuse("algo.advantage.estimator",
                  estimator + " compares no samples, which online_dpo does: give rloo or dr_grpo");
  }
  if (c.algo.objective == "gspo" && (!group || c.algo.reducer != "sample_mean")) {
    return refuse("algo.objective",
                  "gspo has one advantage a sample and a mean over samples: give "
                  "--algo.reducer sample_mean and an estimator that compares samples");
  }
  if (c.algo.kl.per_sample && c.algo.kl.use_loss) {
    return refuse("algo.kl.per_sample", "is of the reward: give --algo.kl.use_loss false");
  }
  if (c.algo.objective == "gspo" && c.algo.kl.init_coef != 0 && !c.algo.kl.use_loss &&
      !c.algo.kl.per_sample) {
    return refuse("algo.kl.use_loss",
                  "gspo has one advantage a sample: give --algo.kl.per_sample true too");
  }
  if (c.algo.correction.type != "none" && c.algo.objective == "online_dpo") {
    return refuse("algo.correction.type", "has nothing to weigh in online_dpo");
  }
  const std::string& objective = c.algo.objective;
  const std::string& correction = c.algo.correction.type;
  const bool own_ratio = objective == "decoupled" || objective == "a3po" || objective == "bypass" ||
                         objective == "cispo" || objective == "topr";
  if (own_ratio && (correction == "tis" || correction == "seq_tis" || correction == "mis" ||
                    correction == "icepop")) {
    return refuse(
        "algo.correction.type",
        objective + " weighs tokens of older policies itself; " + correction +
            " would do it twice: give --algo.objective ppo, or one of geo_rs, m2po, opsm");
  }
  if (c.actor.dual_clip != 0 && c.actor.dual_clip <= 1) {
    return refuse("actor.dual_clip", "must be above 1, or 0 for none");
  }
  if (c.algo.correction.low >= c.algo.correction.high &&
      (c.algo.correction.type == "icepop" || c.algo.correction.type == "geo_rs")) {
    return refuse("algo.correction.low", "must be below algo.correction.high");
  }
  return std::nullopt;
}

config::HandedTables handed() {
  const auto words = [](std::initializer_list<std::pair<const char*, const char*>> pairs) {
    std::vector<core::Choice> out;
    for (const auto& [name, alias] : pairs)
      out.push_back({name, alias, ""});
    return out;
  };
  config::HandedTables tables;
  tables.choices = {
      {"algo.advantage.estimator", words({{"group_norm", "grpo"},
                                          {"rloo", ""},
                                          {"reinforce_baseline", ""},
                                          {"dr_grpo", ""},
                                          {"reinforce", "reinforce_pp"},
                                          {"gae", ""},
                                          {"vtrace", ""}})},
      {"algo.objective", words({{"ppo", ""},
                                {"decoupled", ""},
                                {"a3po", ""},
                                {"bypass", ""},
                                {"gspo", ""},
                                {"cispo", ""},
                                {"reinforce", ""},
                                {"topr", ""},
                                {"online_dpo", ""}})},
      {"algo.reducer", words({{"token_mean", ""}, {"sample_mean", ""}, {"constant", ""}})},
      {"algo.kl.estimator", words({{"k1", ""}, {"k2", ""}, {"k3", ""}})},
      {"algo.correction.type", words({{"none", ""},
                                      {"tis", ""},
                                      {"seq_tis", ""},
                                      {"mis", ""},
                                      {"icepop", ""},
                                      {"geo_rs", "seq-mask-tis"},
                                      {"m2po", ""},
                                      {"opsm", ""}})},
      {"reward.clip_order", words({{"troupe", ""}, {"openrlhf", ""}})},
  };
  tables.rules = {check_algo};
  return tables;
}

}  // namespace

const config::Table& run_table() {
  static const config::Table table(handed());
  return table;
}

}  // namespace troupe::app
