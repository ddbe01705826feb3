// The rows of the configuration table about algorithms, data, rewards and losses. A key exists only
// when something reads it.
#include "runtime/config/config_bind.hpp"

namespace troupe::config {

void algo_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(
      TROUPE_KEY(algo.advantage.estimator)
          .help("how rewards become advantages; grpo is group_norm, gae and vtrace have a critic")
          .one_of({{"group_norm", "grpo"},
                   {"rloo", ""},
                   {"reinforce_baseline", ""},
                   {"dr_grpo", ""},
                   {"reinforce", "reinforce_pp"},
                   {"gae", ""},
                   {"vtrace", ""}})
          .peer("same name, default gae")
          .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.objective)
                     .help("policy loss: clipped ratio, or the same with an off-policy correction")
                     .one_of({{"ppo", ""},
                              {"decoupled", ""},
                              {"a3po", ""},
                              {"bypass", ""},
                              {"gspo", ""},
                              {"cispo", ""},
                              {"reinforce", ""},
                              {"topr", ""},
                              {"online_dpo", ""}})
                     .peer("--actor.policy_loss_type")
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(algo.reducer)
          .help("mean over all tokens of an update, over samples of their mean, or sum / constant")
          .one_of({{"token_mean", ""}, {"sample_mean", ""}, {"constant", ""}})
          .peer("none")
          .only(kPpo));
  rows.push_back(
      TROUPE_KEY(algo.correction_max)
          .help("upper bound of the decoupled objective's correction weight, and of the KL term's")
          .above(0, 1000)
          .peer("--algo.advantage.is_correction_threshold")
          .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.kl.init_coef)
                     .help("weight of the KL to the reference model; 0 = no reference")
                     .range(0, 100)
                     .peer("same name, default 0.01")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.kl.estimator)
                     .help("k2 follows the gradient of KL(policy||reference), k3 the other way; k1 "
                           "only in the reward")
                     .one_of({{"k1", ""}, {"k2", ""}, {"k3", ""}})
                     .peer("same name, default k1")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.kl.use_loss)
                     .help("the KL is a term of the loss; off: it is taken off the reward")
                     .only(kPpo)
                     .peer("same name, default off"));
  rows.push_back(TROUPE_KEY(algo.kl.per_sample)
                     .help("in the reward: the KL of a whole sample is taken off its score before "
                           "the group step, as in the paper of rloo; off: token by token")
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.kl.target)
                     .help("KL of a sample that the coefficient is steered to; 0 = it stays")
                     .at_least(0)
                     .only(kPpo)
                     .peer("same name, default none"));
  rows.push_back(TROUPE_KEY(algo.kl.horizon)
                     .help("samples over which the coefficient is steered")
                     .unit("samples")
                     .above(0, 1e12)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.kl.stop)
                     .help("an update's remaining steps are left out when the KL to its starting "
                           "policy is above this; 0 = never")
                     .at_least(0)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.advantage.gamma)
                     .help("discount of a token's reward; 1 for group estimators")
                     .range(0, 1)
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(algo.advantage.lambd).help("trace of gae and vtrace").range(0, 1).only(kPpo));
  rows.push_back(
      TROUPE_KEY(algo.advantage.no_std_norm).help("whitening takes off the mean only").only(kPpo));
  rows.push_back(TROUPE_KEY(algo.advantage.rho_max)
                     .help("bound of vtrace's weight of a step")
                     .above(0, 1000)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.advantage.c_max)
                     .help("bound of vtrace's weight of the trace")
                     .above(0, 1000)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.correction.type)
                     .help("weight of tokens from older policies, by exp(l_p - l_mu): truncated, "
                           "masked, or whole samples left out")
                     .one_of({{"none", ""},
                              {"tis", ""},
                              {"seq_tis", ""},
                              {"mis", ""},
                              {"icepop", ""},
                              {"geo_rs", "seq-mask-tis"},
                              {"m2po", ""},
                              {"opsm", ""}})
                     .only(kPpo)
                     .peer("--algo.advantage.is_correction_type"));
  rows.push_back(TROUPE_KEY(algo.correction.low)
                     .help("lower bound of icepop and geo_rs")
                     .range(0, 1000)
                     .only(kPpo)
                     .peer("--algo.advantage.is_correction_threshold"));
  rows.push_back(
      TROUPE_KEY(algo.correction.high)
          .help("upper bound of the correction; m2po's mean square, opsm's mean log-ratio")
          .above(0, 1000)
          .only(kPpo)
          .peer("--algo.advantage.is_correction_threshold"));
  rows.push_back(TROUPE_KEY(algo.cispo_max)
                     .help("upper bound of cispo's weight")
                     .above(0, 1000)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.reducer_constant)
                     .help("divisor of a sample's sum in reducer constant; 0 = "
                           "rollout.max_new_tokens")
                     .unit("tokens")
                     .range(0, 1e9)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.dpo_beta)
                     .help("beta of the objective online_dpo")
                     .above(0, 1000)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.dynamic_filtering_enable)
                     .help("a group whose mean score is not inside the range is replaced by a "
                           "fresh prompt")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(algo.dynamic_filtering_range)
                     .help("mean scores between these, ends excluded, are kept")
                     .items(2)
                     .range(-1e9, 1e9)
                     .only(kPpo));
}

void data_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(data.dataset)
                     .help("training rows: .jsonl, .json or .csv files, separated by commas")
                     .needed()
                     .only(kSupervised));
  rows.push_back(TROUPE_KEY(data.probs)
                     .help("share of each file of the dataset when they are blended; empty = as "
                           "long as they are")
                     .range(0, 1)
                     .peer("--data.prompt_probs, --data.dataset_probs"));
  rows.push_back(TROUPE_KEY(data.output_key)
                     .help("column of the answer; empty: the input column holds the dialogue")
                     .only(kSft | kKto)
                     .peer("same name, default none"));
  rows.push_back(TROUPE_KEY(data.prompt_key)
                     .help("column of the prompt of both answers; empty: chosen and rejected hold "
                           "whole dialogues")
                     .only(kPairs));
  rows.push_back(TROUPE_KEY(data.chosen_key).help("column of the better answer").only(kPairs));
  rows.push_back(TROUPE_KEY(data.rejected_key).help("column of the worse answer").only(kPairs));
  rows.push_back(TROUPE_KEY(data.margin_key)
                     .help("column of the margin between the answers; empty = none")
                     .only(kRm)
                     .peer("--model.margin_loss_enable"));
  rows.push_back(TROUPE_KEY(data.multiturn)
                     .help("learn from every assistant turn of a dialogue, not only the last")
                     .only(kSft));
  rows.push_back(TROUPE_KEY(data.max_len)
                     .help("longest sequence, prompt and answer; a longer row is an error")
                     .unit("tokens")
                     .range(1, 1 << 20)
                     .only(kSupervised));
  rows.push_back(TROUPE_KEY(data.drop_too_long)
                     .help("leave out rows that are too long, and say how many")
                     .peer("always"));
  rows.push_back(TROUPE_KEY(data.pretrain_dataset)
                     .help("texts of the ptx term: .jsonl files with the column data.input_key; "
                           "empty = no such term")
                     .only(kPpo)
                     .peer("--pretrain_data"));
  rows.push_back(TROUPE_KEY(data.prompt_dataset)
                     .help("training prompts: a .jsonl or .json file; several separated by commas")
                     .needed()
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(data.input_key).help("column of the prompt: text, or a list of chat messages"));
  rows.push_back(
      TROUPE_KEY(data.label_key).help("column of the expected answer, for rewards; empty = none"));
  rows.push_back(
      TROUPE_KEY(data.apply_chat_template).help("render prompts with the model's chat template"));
  rows.push_back(TROUPE_KEY(data.input_template)
                     .help("text around a prompt, which replaces {}; not with a chat template")
                     .with_escapes());
  rows.push_back(TROUPE_KEY(data.max_samples)
                     .help("use only the first rows of the dataset; 0 = all")
                     .unit("prompts")
                     .range(0, 1e12));
  rows.push_back(TROUPE_KEY(data.prompt_max_len)
                     .help("a longer prompt is an error that names its row")
                     .unit("tokens")
                     .range(1, 1 << 20)
                     .peer("--data.max_len counts prompt and response")
                     .only(kPpo));
}

void reward_and_eval_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(reward.rule)
                     .help("score against the label: whole text, last number, or regex group 1")
                     .one_of({{"", ""}, {"exact", ""}, {"last_number", ""}, {"regex", ""}})
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.rule_pattern)
                     .help("regular expression of reward.rule=regex (ECMAScript)")
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.python)
                     .help("file with reward_func, run in a worker process")
                     .peer("--reward.remote_url FILE.py")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.http)
                     .help("URL of a reward server that speaks OpenRLHF's JSON")
                     .peer("--reward.remote_url http://...")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.deadline_s)
                     .help("longest wait for the scores of one group; then it is tried once more")
                     .unit("seconds")
                     .above(0, 86400)
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.away_s)
                     .help("longest wait for a reward that is away (refused, 5xx, 429, no answer, its "
                           "node lost); then the run ends with code 5")
                     .unit("seconds")
                     .above(0, 86400)
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.clip_range)
                     .help("scores are clipped to this range")
                     .items(2)
                     .range(-1e9, 1e9)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.model_name_or_path)
                     .help("learned reward models: folders with a score head; may be given several "
                           "times")
                     .only(kPpo)
                     .peer("same name, one model"));
  rows.push_back(TROUPE_KEY(reward.device)
                     .help("where learned reward models compute: cpu, cuda or cuda:N")
                     .peer("--reward.num_gpus_per_node, a count")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.weights)
                     .help("weight of each reward: the rule, Python file or server first, then the "
                           "models in order; empty = 1 each")
                     .range(-1e6, 1e6)
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(reward.normalize)
                     .help("scores minus mean over deviation: of the reward model's own evaluation "
                           "set, or of all scores so far")
                     .one_of({{"none", ""}, {"stored", ""}, {"running", ""}})
                     .only(kPpo)
                     .peer("--reward.normalize_enable"));
  rows.push_back(TROUPE_KEY(reward.clip_order)
                     .help("clip scores before the group step (troupe) or the result after it "
                           "(openrlhf)")
                     .one_of({{"troupe", ""}, {"openrlhf", ""}})
                     .only(kPpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(reward.overlong_buffer_len)
                     .help("tokens before max_new_tokens over which a penalty grows; 0 = none")
                     .unit("tokens")
                     .range(0, 1 << 20)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.overlong_penalty_factor)
                     .help("largest overlong penalty")
                     .range(0, 1e6)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(reward.stop_properly_penalty_coef)
                     .help("of samples cut by length: c in 0..1 takes (1 - c)|score| off, below 0 "
                           "it is the score; 1 = none")
                     .range(-1e6, 1)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(eval.dataset).help("held-out prompts, columns as for training"));
  rows.push_back(TROUPE_KEY(eval.steps)
                     .help("evaluate every so many updates (optimiser steps of supervised "
                           "training); 0 = only before and after")
                     .range(0, 1e12)
                     .peer("same name, default -1 = never"));
  rows.push_back(TROUPE_KEY(eval.n_samples_per_prompt)
                     .help("samples of one held-out prompt")
                     .unit("samples")
                     .range(1, 4096)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(eval.temperature)
                     .help("sampling temperature of evaluation; 0 = greedy")
                     .range(0, 100)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(eval.pass_score)
                     .help("a sample passes (eval/pass@k, eval/maj@k) at this score")
                     .range(-1e9, 1e9)
                     .only(kPpo)
                     .peer("none"));
}

void preference_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(dpo.beta)
                     .help("how strongly the model is held to the reference")
                     .above(0, 1000)
                     .only(kDpo | kIpo | kCdpo)
                     .peer("--model.beta"));
  rows.push_back(TROUPE_KEY(dpo.label_smoothing)
                     .help("share of pairs taken to be labelled the wrong way round")
                     .range(0, 0.499999)
                     .only(kCdpo)
                     .peer("--model.label_smoothing"));
  rows.push_back(TROUPE_KEY(dpo.nll_loss_coef)
                     .help("weight of the next-token loss on the chosen answers")
                     .range(0, 1000)
                     .only(kDpo | kIpo | kCdpo)
                     .peer("--model.nll_loss_coef"));
  rows.push_back(TROUPE_KEY(dpo.length_mean)
                     .help("means over tokens in place of sums, as TRL's ipo")
                     .only(kIpo)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(kto.beta)
                     .help("how strongly the model is held to the reference")
                     .above(0, 1000)
                     .only(kKto)
                     .peer("--beta, default 0.01"));
  rows.push_back(TROUPE_KEY(kto.desirable_weight)
                     .help("weight of good answers")
                     .range(0, 1000)
                     .only(kKto)
                     .peer("--desirable_loss_weight"));
  rows.push_back(TROUPE_KEY(kto.undesirable_weight)
                     .help("weight of bad answers")
                     .range(0, 1000)
                     .only(kKto)
                     .peer("--undesirable_loss_weight"));
}

}  // namespace troupe::config
