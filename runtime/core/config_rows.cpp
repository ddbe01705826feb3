// The rows of the configuration table. A key exists only when something reads it.
#include "runtime/core/config_table.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace troupe::core {
namespace {

template <class Access>
ConfigRow bind(std::string_view name, Access access) {
  ConfigRow row;
  row.name = name;
  using Member = decltype(access(std::declval<TrainConfig&>()));
  Member (*function)(TrainConfig&) = access;
  row.field = function;
  return row;
}

// The key is the member's path.
#define TROUPE_KEY(path) bind(#path, [](TrainConfig& c) -> decltype((c.path)) { return c.path; })

void actor_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(actor.model_name_or_path)
                     .help("policy to train: a Hugging Face folder, or org/name in the local cache")
                     .needed());
  rows.push_back(TROUPE_KEY(actor.adam.lr).help("learning rate of the policy").above(0, 1));
  rows.push_back(TROUPE_KEY(actor.adam.betas).help("AdamW betas").items(2).range(0, 0.999999999));
  rows.push_back(TROUPE_KEY(actor.adam.eps).help("AdamW epsilon").above(0, 1));
  rows.push_back(TROUPE_KEY(actor.adam.weight_decay).help("AdamW weight decay").range(0, 1));
  rows.push_back(
      TROUPE_KEY(actor.eps_clip).help("clip of the probability ratio, both sides").above(0, 10));
  rows.push_back(TROUPE_KEY(actor.eps_clip_low_high)
                     .help("clip below and above; replaces actor.eps_clip")
                     .items(2)
                     .above(0, 10));
  rows.push_back(TROUPE_KEY(actor.entropy_coef).help("weight of the entropy bonus").range(0, 10));
  rows.push_back(TROUPE_KEY(actor.max_norm).help("gradient norm clip; 0 = none").at_least(0));
  rows.push_back(TROUPE_KEY(actor.lr_warmup_ratio)
                     .help("share of the run's optimiser steps with rising learning rate")
                     .range(0, 1));
  rows.push_back(TROUPE_KEY(actor.min_lr_ratio)
                     .help("the cosine schedule ends at this share of actor.adam.lr")
                     .range(0, 1));
}

void rollout_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(rollout.batch_size)
                     .help("prompts of one update; each gives n_samples_per_prompt samples")
                     .unit("prompts")
                     .range(1, 1 << 20)
                     .peer("same name, default 1024"));
  rows.push_back(TROUPE_KEY(rollout.n_samples_per_prompt)
                     .help("samples of one prompt: the group that the advantage compares")
                     .unit("samples")
                     .range(2, 4096)
                     .peer("same name, default 1"));
  rows.push_back(
      TROUPE_KEY(rollout.max_new_tokens).help("longest response").unit("tokens").range(1, 1 << 20));
  rows.push_back(TROUPE_KEY(rollout.temperature).help("sampling temperature").above(0, 100));
  rows.push_back(TROUPE_KEY(rollout.top_p)
                     .help("nucleus sampling; 1 = off. Truncation biases the policy ratio")
                     .above(0, 1));
  rows.push_back(TROUPE_KEY(rollout.top_k)
                     .help("sample among the k likeliest tokens; 0 = off")
                     .unit("tokens")
                     .range(0, 1 << 24)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(rollout.min_p)
                     .help("drop tokens below this share of the likeliest; 0 = off")
                     .range(0, 1)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(rollout.stop)
                     .help("a response ends once its text holds one of these")
                     .with_escapes()
                     .peer("none"));
  rows.push_back(TROUPE_KEY(rollout.generators)
                     .help("generation engines that the run starts; 0 = only those that join")
                     .unit("engines")
                     .range(0, 256)
                     .peer("--vllm_num_engines"));
  rows.push_back(TROUPE_KEY(rollout.straggler_timeout_s)
                     .help("when training has waited this long, groups go on with the samples that "
                           "have ended (2 or more), or are sampled anew; 0 = wait for all")
                     .unit("seconds")
                     .range(0, 1e6)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(rollout.kv_on_update)
                     .help("keys and values of running samples when new weights come: keep them, or "
                           "recompute them with the new weights")
                     .one_of({{"keep", ""}, {"recompute", ""}})
                     .peer("none"));
}

void train_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(train.batch_size)
                     .help("samples of one optimiser step; 0 = all of an update in one step")
                     .unit("samples")
                     .range(0, 1 << 24)
                     .peer("same name, default 128"));
  rows.push_back(
      TROUPE_KEY(train.max_epochs).help("passes over the samples of an update").range(1, 1000));
  rows.push_back(
      TROUPE_KEY(train.num_episodes).help("passes over the prompt dataset").range(1, 1e9));
  rows.push_back(TROUPE_KEY(train.max_steps)
                     .help("stop after this many updates; 0 = when num_episodes are done")
                     .unit("updates")
                     .range(0, 1e12)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(train.seed).help("seed of shuffling and sampling").range(0, 1e18));
  rows.push_back(TROUPE_KEY(train.micro_tokens_max)
                     .help("rows of one micro-batch; lower it to need less memory")
                     .unit("tokens")
                     .range(16, 1 << 24)
                     .peer("--train.max_tokens_per_gpu"));
  rows.push_back(TROUPE_KEY(train.threads)
                     .help("worker threads; 0 = all cores this process may use")
                     .unit("threads")
                     .range(0, 1024)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(train.staleness_max)
                     .help("updates that a token may be older than the weights it trains; 0 = "
                           "synchronous, above 0 generators go on while the policy trains")
                     .unit("updates")
                     .range(0, 64)
                     .peer("--train.async_enable, --train.async_queue_size"));
  rows.push_back(TROUPE_KEY(train.nonfinite_steps_max)
                     .help("stop when more optimiser steps in a row than this give NaN or infinity")
                     .unit("steps")
                     .range(0, 1000)
                     .peer("none"));
}

void algo_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(
      TROUPE_KEY(algo.advantage.estimator)
          .help("how rewards of a group become advantages; grpo is group_norm")
          .one_of(
              {{"group_norm", "grpo"}, {"rloo", ""}, {"reinforce_baseline", ""}, {"dr_grpo", ""}})
          .peer("same name, default gae"));
  rows.push_back(TROUPE_KEY(algo.objective)
                     .help("policy loss: clipped ratio, or the same with an off-policy correction")
                     .one_of({{"ppo", ""}, {"decoupled", ""}})
                     .peer("--actor.policy_loss_type"));
  rows.push_back(TROUPE_KEY(algo.reducer)
                     .help("mean over all tokens of an update, or over samples of their mean")
                     .one_of({{"token_mean", ""}, {"sample_mean", ""}})
                     .peer("none"));
  rows.push_back(TROUPE_KEY(algo.correction_max)
                     .help("upper bound of the decoupled objective's correction weight")
                     .above(0, 1000)
                     .peer("--algo.advantage.is_correction_threshold"));
  rows.push_back(TROUPE_KEY(algo.kl.init_coef)
                     .help("weight of the KL to the starting model in the loss; 0 = no reference")
                     .range(0, 100)
                     .peer("same name, default 0.01"));
  rows.push_back(TROUPE_KEY(algo.kl.estimator)
                     .help("k2 follows the gradient of KL(policy||reference), k3 the other way")
                     .one_of({{"k2", ""}, {"k3", ""}})
                     .peer("same name, default k1"));
}

void data_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(data.prompt_dataset)
                     .help("training prompts: a .jsonl or .json file; several separated by commas")
                     .needed());
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
                     .peer("--data.max_len counts prompt and response"));
}

void reward_and_eval_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(reward.rule)
                     .help("score against the label: whole text, last number, or regex group 1")
                     .one_of({{"", ""}, {"exact", ""}, {"last_number", ""}, {"regex", ""}})
                     .peer("none"));
  rows.push_back(TROUPE_KEY(reward.rule_pattern)
                     .help("regular expression of reward.rule=regex (ECMAScript)")
                     .peer("none"));
  rows.push_back(TROUPE_KEY(reward.python)
                     .help("file with reward_func, run in a worker process")
                     .peer("--reward.remote_url FILE.py"));
  rows.push_back(TROUPE_KEY(reward.http)
                     .help("URL of a reward server that speaks OpenRLHF's JSON")
                     .peer("--reward.remote_url http://..."));
  rows.push_back(TROUPE_KEY(reward.deadline_s)
                     .help("longest wait for the scores of one group; then it is tried once more")
                     .unit("seconds")
                     .above(0, 86400)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(reward.clip_range)
                     .help("scores are clipped to this range")
                     .items(2)
                     .range(-1e9, 1e9));
  rows.push_back(TROUPE_KEY(eval.dataset).help("held-out prompts, columns as for training"));
  rows.push_back(TROUPE_KEY(eval.steps)
                     .help("evaluate every so many updates; 0 = only before and after training")
                     .unit("updates")
                     .range(0, 1e12)
                     .peer("same name, default -1 = never"));
  rows.push_back(TROUPE_KEY(eval.n_samples_per_prompt)
                     .help("samples of one held-out prompt")
                     .unit("samples")
                     .range(1, 4096));
  rows.push_back(TROUPE_KEY(eval.temperature)
                     .help("sampling temperature of evaluation; 0 = greedy")
                     .range(0, 100));
}

void run_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(run.path)
                     .help("run folder: config, metrics, rollouts, checkpoints")
                     .peer("--ckpt.path, --ckpt.output_dir"));
  rows.push_back(TROUPE_KEY(ckpt.save_steps)
                     .help("save a checkpoint every so many updates; 0 = only at the end")
                     .unit("updates")
                     .range(0, 1e12)
                     .peer("same name, default -1"));
  rows.push_back(TROUPE_KEY(ckpt.max_num)
                     .help("checkpoints kept; an old one goes only after a new one is safe")
                     .range(1, 1e6));
  rows.push_back(TROUPE_KEY(resume)
                     .help("auto = newest valid checkpoint of run.path; off = start anew, the old "
                           "folder is set aside; or a checkpoint folder")
                     .peer("--ckpt.load_enable"));
  rows.push_back(TROUPE_KEY(logger.tensorboard)
                     .help("write TensorBoard events to run.path/tensorboard")
                     .peer("--logger.tensorboard_dir"));
  rows.push_back(TROUPE_KEY(log.format)
                     .help("progress: auto = live block on a terminal, else one line an update")
                     .one_of({{"auto", ""}, {"plain", ""}, {"json", ""}})
                     .peer("none"));
  rows.push_back(TROUPE_KEY(log.trace)
                     .help("write RUN/trace.json, what each role did when, for chrome://tracing")
                     .peer("none"));
}

void cluster_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(cluster.transport)
                     .help("caf = every heavy role in a process of its own; loopback = all in one")
                     .one_of({{"caf", ""}, {"loopback", ""}})
                     .peer("none"));
  rows.push_back(TROUPE_KEY(cluster.local_roles)
                     .help("kinds of roles that the run starts here; the others wait for a node that "
                           "offers them (troupe node --join)")
                     .peer("none"));
  rows.push_back(TROUPE_KEY(cluster.listen)
                     .help("HOST:PORT where nodes join and rewards attach; port 0 = any free one")
                     .peer("none"));
  rows.push_back(TROUPE_KEY(cluster.token_file)
                     .help("join token, mode 0600; empty = RUN/join_token, made by the run")
                     .peer("none"));
  rows.push_back(TROUPE_KEY(cluster.ca)
                     .help("certificate of the run's CA (troupe ca init); joins need one of it then")
                     .peer("none"));
  rows.push_back(TROUPE_KEY(cluster.certificate).help("certificate of this host").peer("none"));
  rows.push_back(TROUPE_KEY(cluster.key).help("private key of this host, mode 0600").peer("none"));
  rows.push_back(TROUPE_KEY(cluster.status_listen)
                     .help("HOST:PORT of /metrics and /healthz, loopback; empty = none")
                     .peer("none"));
}

#undef TROUPE_KEY

std::vector<ConfigRow> make_table() {
  std::vector<ConfigRow> rows;
  actor_rows(rows);
  rollout_rows(rows);
  train_rows(rows);
  algo_rows(rows);
  data_rows(rows);
  reward_and_eval_rows(rows);
  cluster_rows(rows);
  run_rows(rows);
  return rows;
}

}  // namespace

std::span<const ConfigRow> config_table() {
  static const std::vector<ConfigRow> table = make_table();
  return table;
}

}  // namespace troupe::core
