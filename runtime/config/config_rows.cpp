// The rows of the configuration table. A key exists only when something reads it.
#include "runtime/config/config_bind.hpp"

namespace troupe::config {
namespace {

void method_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(method)
                     .help("what is trained, and from what; the word after `troupe train`")
                     .one_of({{"ppo", ""},
                              {"sft", ""},
                              {"pretrain", ""},
                              {"rm", ""},
                              {"dpo", ""},
                              {"ipo", ""},
                              {"cdpo", ""},
                              {"kto", ""}})
                     .peer("one program for each"));
}

void actor_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(actor.model_name_or_path)
                     .help("model to train: a Hugging Face folder, or org/name in the local cache")
                     .needed());
  rows.push_back(TROUPE_KEY(actor.adam.lr).help("learning rate of the trained model").above(0, 1));
  rows.push_back(TROUPE_KEY(actor.adam.betas).help("AdamW betas").items(2).range(0, 0.999999999));
  rows.push_back(TROUPE_KEY(actor.adam.eps).help("AdamW epsilon").above(0, 1));
  rows.push_back(TROUPE_KEY(actor.adam.weight_decay).help("AdamW weight decay").range(0, 1));
  rows.push_back(TROUPE_KEY(actor.eps_clip)
                     .help("clip of the probability ratio, both sides")
                     .above(0, 10)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(actor.eps_clip_low_high)
                     .help("clip below and above; replaces actor.eps_clip")
                     .items(2)
                     .above(0, 10)
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(actor.entropy_coef).help("weight of the entropy bonus").range(0, 10).only(kPpo));
  rows.push_back(TROUPE_KEY(actor.max_norm).help("gradient norm clip; 0 = none").at_least(0));
  rows.push_back(TROUPE_KEY(actor.lr_warmup_ratio)
                     .help("share of the run's optimiser steps with rising learning rate")
                     .range(0, 1));
  rows.push_back(TROUPE_KEY(actor.min_lr_ratio)
                     .help("the cosine schedule ends at this share of actor.adam.lr")
                     .range(0, 1));
  rows.push_back(TROUPE_KEY(actor.dual_clip)
                     .help("lower bound of the objective where the advantage is negative, in "
                           "multiples of it; 0 = none")
                     .range(0, 1000)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(actor.gradient_checkpointing_enable)
                     .help("keep only each layer's input and compute the rest again going back"));
  rows.push_back(TROUPE_KEY(actor.param_dtype)
                     .help("how policy, reference and engines hold weights in forward passes; "
                           "what is trained stays 32 bits wide. bf16-compute multiplies on tensor "
                           "cores, where all of them are on GPUs")
                     .one_of({{"f32", ""}, {"bf16", ""}, {"bf16-compute", ""}})
                     .peer("--ds.param_dtype, default bf16"));
  rows.push_back(TROUPE_KEY(actor.device)
                     .help("where the policy trains: cpu, cuda or cuda:N (GPU N)")
                     .peer("--actor.num_gpus_per_node, a count"));
  rows.push_back(TROUPE_KEY(actor.freeze)
                     .help("tensors whose name holds one of these words are not trained")
                     .peer("--actor.freeze_visual_encoder"));
  rows.push_back(TROUPE_KEY(actor.lora.rank)
                     .help("rank of low-rank adapters, the only weights trained; 0 = train all")
                     .range(0, 4096)
                     .peer("--ds.lora.rank"));
  rows.push_back(TROUPE_KEY(actor.lora.alpha)
                     .help("scale of the adapters is alpha / rank")
                     .above(0, 65536)
                     .peer("--ds.lora.alpha"));
  rows.push_back(TROUPE_KEY(actor.lora.target)
                     .help("modules with an adapter: all-linear, or names like q_proj")
                     .peer("--ds.lora.target_modules"));
  rows.push_back(TROUPE_KEY(actor.ptx_coef)
                     .help("weight of the next-token loss on data.pretrain_dataset")
                     .range(0, 1000)
                     .only(kPpo)
                     .peer("--ptx_coef"));
  rows.push_back(TROUPE_KEY(actor.aux_loss_coef)
                     .help("weight of the loss that balances the experts of a mixture of experts")
                     .range(0, 10));
}

void critic_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(critic.model_name_or_path)
                     .help("start of the critic; empty = the first reward model, else the policy")
                     .only(kPpo)
                     .peer("same name, default the reward model"));
  rows.push_back(
      TROUPE_KEY(critic.adam.lr).help("learning rate of the critic").above(0, 1).only(kPpo));
  rows.push_back(
      TROUPE_KEY(critic.adam.betas).help("AdamW betas").items(2).range(0, 0.999999999).only(kPpo));
  rows.push_back(TROUPE_KEY(critic.adam.eps).help("AdamW epsilon").above(0, 1).only(kPpo));
  rows.push_back(
      TROUPE_KEY(critic.adam.weight_decay).help("AdamW weight decay").range(0, 1).only(kPpo));
  rows.push_back(
      TROUPE_KEY(critic.max_norm).help("gradient norm clip; 0 = none").at_least(0).only(kPpo));
  rows.push_back(TROUPE_KEY(critic.lr_warmup_ratio)
                     .help("share of the run's optimiser steps with rising learning rate")
                     .range(0, 1)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(critic.min_lr_ratio)
                     .help("the cosine schedule ends at this share of critic.adam.lr")
                     .range(0, 1)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(critic.value_clip)
                     .help("clip of the value's move in one update; 0 = none")
                     .range(0, 1e6)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(critic.freezing_steps)
                     .help("first updates in which the critic learns and the policy does not")
                     .unit("updates")
                     .range(0, 1e9)
                     .only(kPpo)
                     .peer("same name, default -1"));
  rows.push_back(TROUPE_KEY(critic.save_value_network)
                     .help("write the critic as a model folder at the end of the run")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(critic.device)
                     .help("where the critic trains: cpu, cuda or cuda:N")
                     .peer("--critic.num_gpus_per_node, a count")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(ref.model_name_or_path)
                     .help("frozen reference model; empty = the model as it was before training")
                     .only(kPpo | kPreference));
  rows.push_back(TROUPE_KEY(ref.device)
                     .help("where the reference model computes: cpu, cuda or cuda:N")
                     .peer("--ref.num_gpus_per_node, a count")
                     .only(kPpo));
}

void rollout_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(rollout.batch_size)
                     .help("prompts of one update; each gives n_samples_per_prompt samples")
                     .unit("prompts")
                     .range(1, 1 << 20)
                     .peer("same name, default 1024")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.n_samples_per_prompt)
                     .help("samples of one prompt: the group that the advantage compares")
                     .unit("samples")
                     .range(1, 4096)
                     .peer("same name, default 1")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.max_new_tokens)
                     .help("longest response")
                     .unit("tokens")
                     .range(1, 1 << 20)
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(rollout.temperature).help("sampling temperature").above(0, 100).only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.top_p)
                     .help("nucleus sampling; 1 = off. Truncation biases the policy ratio")
                     .above(0, 1)
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.top_k)
                     .help("sample among the k likeliest tokens; 0 = off")
                     .unit("tokens")
                     .range(0, 1 << 24)
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.min_p)
                     .help("drop tokens below this share of the likeliest; 0 = off")
                     .range(0, 1)
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.stop)
                     .help("a response ends once its text holds one of these")
                     .with_escapes()
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.generators)
                     .help("generation engines that the run starts; 0 = only those that join")
                     .unit("engines")
                     .range(0, 256)
                     .peer("--vllm_num_engines")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.straggler_timeout_s)
                     .help("when training has waited this long, groups go on with the samples that "
                           "have ended (2 or more), or are sampled anew; 0 = wait for all")
                     .unit("seconds")
                     .range(0, 1e6)
                     .peer("none")
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(rollout.kv_on_update)
          .help("keys and values of running samples when new weights come: keep them, or "
                "recompute them with the new weights")
          .one_of({{"keep", ""}, {"recompute", ""}})
          .peer("none")
          .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.max_num_seqs)
                     .help("samples that one generation engine runs at once")
                     .unit("samples")
                     .range(1, 1 << 16)
                     .peer("none (vLLM: same name)")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.max_num_batched_tokens)
                     .help("rows of one step of an engine: running samples first, then prompts in "
                           "chunks")
                     .unit("tokens")
                     .range(1, 1 << 20)
                     .peer("none (vLLM: same name)")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.kv_cache_gb)
                     .help("memory of one engine for keys and values; it takes no more than "
                           "max_num_seqs sequences can use")
                     .unit("GiB")
                     .above(0, 1e6)
                     .peer("--vllm_gpu_memory_utilization, a share")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.enable_prefix_caching)
                     .help("reuse the keys and values of prompts that begin alike")
                     .peer("--enable_prefix_caching, default false")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.enable_sleep)
                     .help("an engine without work gives the memory of its keys and values back")
                     .peer("--vllm_enable_sleep")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(rollout.device)
                     .help("where engines generate: cpu, cuda or cuda:N")
                     .peer("none (vLLM: --device)")
                     .only(kPpo));
}

void train_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(train.batch_size)
                     .help("samples (or pairs) of one optimiser step; 0 = all of an update (ppo)")
                     .unit("samples")
                     .range(0, 1 << 24)
                     .peer("same name, default 128"));
  rows.push_back(
      TROUPE_KEY(train.max_epochs)
          .help("passes over the samples of an update (ppo) or over the dataset (others)")
          .range(1, 1000));
  rows.push_back(TROUPE_KEY(train.num_episodes)
                     .help("passes over the prompt dataset")
                     .range(1, 1e9)
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(train.max_steps)
          .help("stop after this many updates (ppo) or optimiser steps; 0 = at the end of the data")
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
                     .peer("--train.async_enable, --train.async_queue_size")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(train.nonfinite_steps_max)
                     .help("stop when more optimiser steps in a row than this give NaN or infinity")
                     .unit("steps")
                     .range(0, 1000)
                     .peer("none"));
  rows.push_back(TROUPE_KEY(train.enable_ema)
                     .help("keep a moving average of the weights and save it beside the model")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(train.ema_beta)
                     .help("share of the moving average that stays at each optimiser step")
                     .range(0, 0.999999)
                     .only(kPpo));
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
  rows.push_back(TROUPE_KEY(ckpt.best_metric_key)
                     .help("evaluation figure by which the best checkpoint is kept beside the "
                           "newest; - in front: lower is better; empty = none")
                     .peer("same name, default auto"));
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
  rows.push_back(TROUPE_KEY(log.names)
                     .help("names of the figures in TensorBoard: ours, or a peer's for its charts")
                     .one_of({{"ours", ""}, {"openrlhf", ""}, {"trl", ""}, {"verl", ""}})
                     .peer("none"));
  rows.push_back(TROUPE_KEY(log.trace)
                     .help("write RUN/trace.json, what each role did when, for chrome://tracing")
                     .peer("none"));
}

void cluster_rows(std::vector<ConfigRow>& rows) {
  rows.push_back(TROUPE_KEY(cluster.transport)
                     .help("caf = every heavy role in a process of its own; loopback = all in one")
                     .one_of({{"caf", ""}, {"loopback", ""}})
                     .peer("none")
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(cluster.local_roles)
          .help("kinds of roles that the run starts here; the others wait for a node that "
                "offers them (troupe node --join)")
          .peer("none")
          .only(kPpo));
  rows.push_back(TROUPE_KEY(cluster.listen)
                     .help("HOST:PORT where nodes join and rewards attach; port 0 = any free one")
                     .peer("none")
                     .only(kPpo));
  rows.push_back(TROUPE_KEY(cluster.token_file)
                     .help("join token, mode 0600; empty = RUN/join_token, made by the run")
                     .peer("none")
                     .only(kPpo));
  rows.push_back(
      TROUPE_KEY(cluster.ca)
          .help("certificate of the run's CA (troupe ca init); joins need one of it then")
          .peer("none")
          .only(kPpo));
  rows.push_back(
      TROUPE_KEY(cluster.certificate).help("certificate of this host").peer("none").only(kPpo));
  rows.push_back(
      TROUPE_KEY(cluster.key).help("private key of this host, mode 0600").peer("none").only(kPpo));
  rows.push_back(TROUPE_KEY(cluster.status_listen)
                     .help("HOST:PORT of /metrics and /healthz, loopback; empty = none")
                     .peer("none")
                     .only(kPpo));
}

std::vector<ConfigRow> make_table() {
  std::vector<ConfigRow> rows;
  method_rows(rows);
  actor_rows(rows);
  critic_rows(rows);
  rollout_rows(rows);
  train_rows(rows);
  algo_rows(rows);
  data_rows(rows);
  reward_and_eval_rows(rows);
  preference_rows(rows);
  cluster_rows(rows);
  run_rows(rows);
  return rows;
}

}  // namespace

std::span<const ConfigRow> config_table() {
  static const std::vector<ConfigRow> table = make_table();
  return table;
}

}  // namespace troupe::config
