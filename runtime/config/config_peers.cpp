// OpenRLHF's names: its dotted flags (0.10 on) and the flat ones before them. A name whose meaning
// and values are the same is an alias; every other one is answered with what to write here, or why
// there is no such thing. Names that are the same in both are not listed. A constant table.
#include "runtime/config/config_table.hpp"

namespace troupe::config {
namespace {

struct Alias {
  std::string_view old_name;
  std::string_view key;
};

constexpr Alias kAliases[] = {
    // dotted
    {"model.model_name_or_path", "actor.model_name_or_path"},
    {"model.beta", "dpo.beta"},
    {"model.label_smoothing", "dpo.label_smoothing"},
    {"model.nll_loss_coef", "dpo.nll_loss_coef"},
    {"model.gradient_checkpointing_enable", "actor.gradient_checkpointing_enable"},
    {"model.aux_loss_coef", "actor.aux_loss_coef"},
    {"adam.lr", "actor.adam.lr"},
    {"adam.betas", "actor.adam.betas"},
    {"adam.eps", "actor.adam.eps"},
    {"adam.weight_decay", "actor.adam.weight_decay"},
    {"max_norm", "actor.max_norm"},
    {"lr_warmup_ratio", "actor.lr_warmup_ratio"},
    {"min_lr_ratio", "actor.min_lr_ratio"},
    {"actor.policy_loss_type", "algo.objective"},
    {"algo.advantage.is_correction_type", "algo.correction.type"},
    {"algo.dynamic_filtering_reward_range", "algo.dynamic_filtering_range"},
    {"data.prompt_probs", "data.probs"},
    {"data.dataset_probs", "data.probs"},
    {"train.max_tokens_per_gpu", "train.micro_tokens_max"},
    {"vllm.num_engines", "rollout.generators"},
    {"vllm.enable_prefix_caching", "rollout.enable_prefix_caching"},
    {"vllm.enable_sleep", "rollout.enable_sleep"},
    {"ds.lora.rank", "actor.lora.rank"},
    {"ds.param_dtype", "actor.param_dtype"},
    {"ds.lora.alpha", "actor.lora.alpha"},
    {"ds.lora.target_modules", "actor.lora.target"},
    // flat, up to 0.9
    {"pretrain", "actor.model_name_or_path"},
    {"reward_pretrain", "reward.model_name_or_path"},
    {"critic_pretrain", "critic.model_name_or_path"},
    {"ref_pretrain", "ref.model_name_or_path"},
    {"actor_learning_rate", "actor.adam.lr"},
    {"critic_learning_rate", "critic.adam.lr"},
    {"learning_rate", "actor.adam.lr"},
    {"adam_betas", "actor.adam.betas"},
    {"l2", "actor.adam.weight_decay"},
    {"eps_clip", "actor.eps_clip"},
    {"eps_clip_low_high", "actor.eps_clip_low_high"},
    {"dual_clip", "actor.dual_clip"},
    {"value_clip", "critic.value_clip"},
    {"freezing_actor_steps", "critic.freezing_steps"},
    {"save_value_network", "critic.save_value_network"},
    {"entropy_loss_coef", "actor.entropy_coef"},
    {"gradient_checkpointing", "actor.gradient_checkpointing_enable"},
    {"ptx_coef", "actor.ptx_coef"},
    {"aux_loss_coef", "actor.aux_loss_coef"},
    {"lora_rank", "actor.lora.rank"},
    {"lora_alpha", "actor.lora.alpha"},
    {"target_modules", "actor.lora.target"},
    {"rollout_batch_size", "rollout.batch_size"},
    {"n_samples_per_prompt", "rollout.n_samples_per_prompt"},
    {"generate_max_len", "rollout.max_new_tokens"},
    {"temperature", "rollout.temperature"},
    {"top_p", "rollout.top_p"},
    {"vllm_num_engines", "rollout.generators"},
    {"enable_prefix_caching", "rollout.enable_prefix_caching"},
    {"vllm_enable_sleep", "rollout.enable_sleep"},
    {"train_batch_size", "train.batch_size"},
    {"max_epochs", "train.max_epochs"},
    {"num_episodes", "train.num_episodes"},
    {"seed", "train.seed"},
    {"train_max_tokens_per_gpu", "train.micro_tokens_max"},
    {"enable_ema", "train.enable_ema"},
    {"ema_beta", "train.ema_beta"},
    {"advantage_estimator", "algo.advantage.estimator"},
    {"gamma", "algo.advantage.gamma"},
    {"lambd", "algo.advantage.lambd"},
    {"no_advantage_std_norm", "algo.advantage.no_std_norm"},
    {"policy_loss_type", "algo.objective"},
    {"init_kl_coef", "algo.kl.init_coef"},
    {"kl_target", "algo.kl.target"},
    {"kl_horizon", "algo.kl.horizon"},
    {"kl_estimator", "algo.kl.estimator"},
    {"use_kl_loss", "algo.kl.use_loss"},
    {"dynamic_filtering", "algo.dynamic_filtering_enable"},
    {"dynamic_filtering_reward_range", "algo.dynamic_filtering_range"},
    {"prompt_data", "data.prompt_dataset"},
    {"prompt_data_probs", "data.probs"},
    {"dataset", "data.dataset"},
    {"dataset_probs", "data.probs"},
    {"pretrain_data", "data.pretrain_dataset"},
    {"input_key", "data.input_key"},
    {"output_key", "data.output_key"},
    {"label_key", "data.label_key"},
    {"prompt_key", "data.prompt_key"},
    {"chosen_key", "data.chosen_key"},
    {"rejected_key", "data.rejected_key"},
    {"multiturn", "data.multiturn"},
    {"max_len", "data.max_len"},
    {"apply_chat_template", "data.apply_chat_template"},
    {"input_template", "data.input_template"},
    {"max_samples", "data.max_samples"},
    {"prompt_max_len", "data.prompt_max_len"},
    {"reward_clip_range", "reward.clip_range"},
    {"overlong_buffer_len", "reward.overlong_buffer_len"},
    {"overlong_penalty_factor", "reward.overlong_penalty_factor"},
    {"stop_properly_penalty_coef", "reward.stop_properly_penalty_coef"},
    {"desirable_loss_weight", "kto.desirable_weight"},
    {"undesirable_loss_weight", "kto.undesirable_weight"},
    {"label_smoothing", "dpo.label_smoothing"},
    {"nll_loss_coef", "dpo.nll_loss_coef"},
    {"eval_dataset", "eval.dataset"},
    {"eval_steps", "eval.steps"},
    {"eval_n_samples_per_prompt", "eval.n_samples_per_prompt"},
    {"eval_temperature", "eval.temperature"},
    {"save_steps", "ckpt.save_steps"},
    {"max_ckpt_num", "ckpt.max_num"},
    {"best_metric_key", "ckpt.best_metric_key"},
};

struct Answer {
  std::string_view old_name;  // a '*' at the end stands for any rest
  std::string_view text;      // follows "'NAME' "
};

// Answers to a name in several spellings.
constexpr std::string_view kHostsJoin = "is not configured: hosts join by `troupe node --join`";
constexpr std::string_view kActorGpu =
    "is not configured: 'actor.device' names the one GPU of the role; hosts join by `troupe node "
    "--join`";
constexpr std::string_view kRefGpu =
    "is not configured: 'ref.device' names the one GPU of the role; hosts join by `troupe node "
    "--join`";
constexpr std::string_view kCriticGpu =
    "is not configured: 'critic.device' names the one GPU of the role; hosts join by `troupe node "
    "--join`";
constexpr std::string_view kRewardGpu =
    "is not configured: 'reward.device' names the one GPU of the role; hosts join by `troupe node "
    "--join`";
constexpr std::string_view kOwnProcesses = "is not needed: roles live in processes of their own";

constexpr Answer kAnswers[] = {
    {"train.async_enable",
     "is called 'train.staleness_max' here: 0 is synchronous, 1 and more not"},
    {"train.async_queue_size", "is called 'train.staleness_max' here"},
    {"async_train", "is called 'train.staleness_max' here"},
    {"async_queue_size", "is called 'train.staleness_max' here"},
    {"train.partial_rollout_enable",
     "is called 'rollout.kv_on_update' here; samples always go on "
     "over new weights when train.staleness_max is above 0"},
    {"partial_rollout",
     "is called 'rollout.kv_on_update' here; samples always go on over new "
     "weights when train.staleness_max is above 0"},
    {"train.micro_batch_size", "counts samples; 'train.micro_tokens_max' counts tokens here"},
    {"micro_train_batch_size", "counts samples; 'train.micro_tokens_max' counts tokens here"},
    {"micro_rollout_batch_size", "counts samples; 'train.micro_tokens_max' counts tokens here"},
    {"rollout.micro_batch_size", "counts samples; 'train.micro_tokens_max' counts tokens here"},
    {"rollout.max_tokens_per_gpu", "is 'train.micro_tokens_max' for all models here"},
    {"train.dynamic_batch_enable", "is always on: 'train.micro_tokens_max' bounds a micro-batch"},
    {"use_dynamic_batch", "is always on: 'train.micro_tokens_max' bounds a micro-batch"},
    {"rollout.vllm_generate_batch_size",
     "is not needed: 'train.staleness_max' says how far "
     "generators run ahead"},
    {"train.full_determinism_enable", "is always on: the same seed gives the same bits"},
    {"full_determinism", "is always on: the same seed gives the same bits"},
    {"train.agent_func_path", "has no counterpart: rewards are 'reward.python' or 'reward.http'"},
    {"agent_func_path", "has no counterpart: rewards are 'reward.python' or 'reward.http'"},
    {"train.colocate*", "is not needed: cores are shared out by the run ('train.threads')"},
    {"colocate_*", "is not needed: cores are shared out by the run ('train.threads')"},
    {"actor.optim", "is always AdamW here ('actor.adam.lr')"},
    {"critic.optim", "is always AdamW here ('critic.adam.lr')"},
    {"actor.muon.*", "is always AdamW here ('actor.adam.lr')"},
    {"critic.muon.*", "is always AdamW here ('critic.adam.lr')"},
    {"optim", "is always AdamW here ('actor.adam.lr')"},
    {"actor.lr_scheduler",
     "is always a cosine here ('actor.lr_warmup_ratio', "
     "'actor.min_lr_ratio')"},
    {"critic.lr_scheduler",
     "is always a cosine here ('critic.lr_warmup_ratio', "
     "'critic.min_lr_ratio')"},
    {"lr_scheduler", "is always a cosine here ('actor.lr_warmup_ratio', 'actor.min_lr_ratio')"},
    {"actor.freeze_visual_encoder", "is 'actor.freeze' here, with parts of tensor names"},
    {"actor.gradient_checkpointing_reentrant",
     "has no counterpart: there is one way to do it "
     "('actor.gradient_checkpointing_enable')"},
    {"actor.num_nodes", kHostsJoin},
    {"ref.num_nodes", kHostsJoin},
    {"critic.num_nodes", kHostsJoin},
    {"reward.num_nodes", kHostsJoin},
    {"actor_num_nodes", kHostsJoin},
    {"ref_num_nodes", kHostsJoin},
    {"critic_num_nodes", kHostsJoin},
    {"reward_num_nodes", kHostsJoin},
    {"actor.num_gpus_per_node", kActorGpu},
    {"ref.num_gpus_per_node", kRefGpu},
    {"critic.num_gpus_per_node", kCriticGpu},
    {"reward.num_gpus_per_node", kRewardGpu},
    {"actor_num_gpus_per_node", kActorGpu},
    {"ref_num_gpus_per_node", kRefGpu},
    {"critic_num_gpus_per_node", kCriticGpu},
    {"reward_num_gpus_per_node", kRewardGpu},
    {"ref.offload", kOwnProcesses},
    {"reward.offload", kOwnProcesses},
    {"ref_offload", kOwnProcesses},
    {"reward_offload", kOwnProcesses},
    {"ref_reward_offload", kOwnProcesses},
    {"offload", kOwnProcesses},
    {"algo.advantage.is_correction_enable",
     "is not needed: 'algo.correction.type' other than none "
     "turns it on"},
    {"algo.advantage.is_correction_threshold",
     "is two keys here: 'algo.correction.low' and "
     "'algo.correction.high'"},
    {"enable_vllm_is_correction",
     "is not needed: 'algo.correction.type' other than none turns it "
     "on"},
    {"vllm_is_truncated_threshold",
     "is two keys here: 'algo.correction.low' and "
     "'algo.correction.high'"},
    {"reward.remote_url", "is 'reward.http' for a server and 'reward.python' for a file here"},
    {"remote_rm_url", "is 'reward.http' for a server and 'reward.python' for a file here"},
    {"reward.normalize_enable", "is called 'reward.normalize' here: none, stored or running"},
    {"normalize_reward", "is called 'reward.normalize' here: none, stored or running"},
    {"model.ipo_enable", "is a method here: `troupe train ipo`"},
    {"ipo", "is a method here: `troupe train ipo`"},
    {"model.pretrain_mode_enable", "is a method here: `troupe train pretrain`"},
    {"pretrain_mode", "is a method here: `troupe train pretrain`"},
    {"model.loss_type", "has no counterpart: sigmoid and logexp are the same function"},
    {"loss", "has no counterpart: sigmoid and logexp are the same function"},
    {"model.margin_loss_enable", "is called 'data.margin_key' here: the column of the margin"},
    {"margin_loss", "is called 'data.margin_key' here: the column of the margin"},
    {"model.compute_fp32_loss_enable", "is always on: losses are computed in 32 bits or more"},
    {"compute_fp32_loss", "is always on: losses are computed in 32 bits or more"},
    {"beta", "is 'dpo.beta' for dpo, ipo and cdpo and 'kto.beta' for kto here"},
    {"data.image_key", "has no counterpart: Troupe trains on text ('data.input_key')"},
    {"data.max_images_per_prompt", "has no counterpart: Troupe trains on text"},
    {"data.tokenizer_chat_template",
     "is read from the model folder: put chat_template.jinja there "
     "('data.apply_chat_template')"},
    {"tokenizer_chat_template",
     "is read from the model folder: put chat_template.jinja there "
     "('data.apply_chat_template')"},
    {"ckpt.path", "is called 'run.path' here; checkpoints and model stand below it"},
    {"ckpt.output_dir", "is called 'run.path' here; checkpoints and model stand below it"},
    {"ckpt_path", "is called 'run.path' here; checkpoints and model stand below it"},
    {"save_path", "is called 'run.path' here; checkpoints and model stand below it"},
    {"ckpt.load_enable", "is called 'resume' here; auto, which is the default, goes on"},
    {"load_checkpoint", "is called 'resume' here; auto, which is the default, goes on"},
    {"ckpt.max_mem", "has no counterpart: 'ckpt.max_num' bounds what is kept"},
    {"max_ckpt_mem", "has no counterpart: 'ckpt.max_num' bounds what is kept"},
    {"ckpt.save_hf", "is always on: the model is saved as a Hugging Face folder"},
    {"save_hf_ckpt", "is always on: the model is saved as a Hugging Face folder"},
    {"ckpt.disable_ds", "has no counterpart: a checkpoint is what a run needs to go on"},
    {"disable_ds_ckpt", "has no counterpart: a checkpoint is what a run needs to go on"},
    {"logger.tensorboard_dir",
     "is called 'logger.tensorboard' here; events go to "
     "run.path/tensorboard"},
    {"use_tensorboard", "is called 'logger.tensorboard' here; events go to run.path/tensorboard"},
    {"logger.wandb.*",
     "has no counterpart: metrics.jsonl and TensorBoard hold the figures "
     "('logger.tensorboard')"},
    {"use_wandb",
     "has no counterpart: metrics.jsonl and TensorBoard hold the figures "
     "('logger.tensorboard')"},
    {"wandb_*",
     "has no counterpart: metrics.jsonl and TensorBoard hold the figures "
     "('logger.tensorboard')"},
    {"logger.logging_steps", "is always 1"},
    {"logging_steps", "is always 1"},
    {"ds.packing_samples", "is always on: sequences are packed without padding"},
    {"packing_samples", "is always on: sequences are packed without padding"},
    {"ds.lora.dropout", "has no counterpart: adapters ('actor.lora.rank') have no dropout"},
    {"lora_dropout", "has no counterpart: adapters ('actor.lora.rank') have no dropout"},
    {"bf16", "is called 'actor.param_dtype' here: f32 or bf16"},
    {"ds.*",
     "belongs to DeepSpeed, which Troupe does not use; 'train.micro_tokens_max' bounds "
     "memory"},
    {"deepspeed_enable_sleep",
     "belongs to DeepSpeed, which Troupe does not use; 'rollout.enable_sleep' lets engines sleep "
     "while the policy trains"},
    {"deepspeed*", "belongs to DeepSpeed, which Troupe does not use"},
    {"zero_stage", "belongs to DeepSpeed, which Troupe does not use"},
    {"adam_offload", "belongs to DeepSpeed, which Troupe does not use"},
    {"zpg", "belongs to DeepSpeed, which Troupe does not use"},
    {"deepcompile", "belongs to DeepSpeed, which Troupe does not use"},
    {"overlap_comm", "belongs to DeepSpeed, which Troupe does not use"},
    {"grad_accum_dtype",
     "is always 32 bits wide here; 'actor.param_dtype' is that of forward passes"},
    {"use_ds_universal_ckpt", "belongs to DeepSpeed, which Troupe does not use"},
    {"local_rank", "is set by launchers, which Troupe does not need: it starts its own processes"},
    {"ring_attn_size", "splits sequences over GPUs, which Troupe does not do"},
    {"ring_head_stride", "splits sequences over GPUs, which Troupe does not do"},
    {"flash_attn", "has no counterpart: there is one attention kernel"},
    {"attn_implementation", "has no counterpart: there is one attention kernel"},
    {"use_liger_kernel", "has no counterpart: there is one kernel of each kind"},
    {"disable_fast_tokenizer",
     "has no counterpart: there is one tokenizer, read from tokenizer.json"},
    {"gradient_checkpointing_use_reentrant",
     "has no counterpart: there is one way to do it ('actor.gradient_checkpointing_enable')"},
    {"enforce_eager", "belongs to vLLM, which Troupe does not use"},
    {"prompt_split", "is not needed: 'data.prompt_dataset' names files, which have no splits"},
    {"dataset_split", "is not needed: 'data.dataset' names files, which have no splits"},
    {"eval_split", "is not needed: 'eval.dataset' names files, which have no splits"},
    {"use_kl_estimator_k3", "is called 'algo.kl.estimator' here: k3"},
    {"load_in_4bit", "has no counterpart: weights are trained in 32 bits"},
    {"vllm.gpu_memory_utilization",
     "is a share of a GPU there; 'rollout.kv_cache_gb' gives keys and values their memory"},
    {"vllm_gpu_memory_utilization",
     "is a share of a GPU there; 'rollout.kv_cache_gb' gives keys and values their memory"},
    {"vllm.*", "belongs to vLLM, which Troupe does not use; 'rollout.generators' engines sample"},
    {"vllm_*", "belongs to vLLM, which Troupe does not use; 'rollout.generators' engines sample"},
    {"post_processor", "is a flag of `troupe score`: --best-of-n, --pairs or --csft"},
    {"best_of_n", "is a flag of `troupe score`: --best-of-n, after generate --n"},
    {"csft_prompt", "is --input-template of `troupe generate`, and --csft of `troupe score`"},
    {"placeholder_token", "belongs to process reward models, which Troupe does not train"},
    {"reward_tokens", "belongs to process reward models, which Troupe does not train"},
    {"kd_coef", "belongs to distillation, which Troupe does not do"},
    {"is_rm", "is not needed: `troupe merge-lora` sees which model it is"},
    {"batch_size", "is 'train.batch_size' in training; serve-reward takes what a request holds"},
};

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

const ConfigRow* config_row_of(std::string_view name) {
  if (const ConfigRow* row = find_config_row(name)) return row;
  for (const Alias& alias : kAliases) {
    if (alias.old_name == name) return find_config_row(alias.key);
  }
  return nullptr;
}

std::string renamed_config_key(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.old_name != name) continue;
    return "'" + std::string(name) + "' is called '" + std::string(alias.key) + "' here";
  }
  for (const Answer& answer : kAnswers) {
    if (matches(answer.old_name, name))
      return "'" + std::string(name) + "' " + std::string(answer.text);
  }
  return {};
}

}  // namespace troupe::config
