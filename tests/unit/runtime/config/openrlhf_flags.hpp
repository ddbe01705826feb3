// Flags of OpenRLHF 0.11 and of the releases that had KTO, PRM, distillation and batch inference,
// typed from notes on its features; the list may lack some.
#pragma once

#include <string>
#include <vector>

namespace troupe::test {

inline const std::vector<std::string>& openrlhf_flags() {
  static const std::vector<std::string> flags = {
      // reinforcement learning, dotted
      "actor.model_name_or_path", "actor.num_nodes", "actor.num_gpus_per_node", "actor.adam.lr",
      "actor.adam.betas", "actor.adam.eps", "actor.adam.weight_decay", "actor.optim",
      "actor.muon.lr", "actor.muon.momentum", "actor.lr_scheduler", "actor.lr_warmup_ratio",
      "actor.min_lr_ratio", "actor.max_norm", "actor.eps_clip", "actor.eps_clip_low_high",
      "actor.dual_clip", "actor.policy_loss_type", "actor.entropy_coef", "actor.aux_loss_coef",
      "actor.gradient_checkpointing_enable", "actor.gradient_checkpointing_reentrant",
      "actor.freeze_visual_encoder", "critic.model_name_or_path", "critic.num_nodes",
      "critic.num_gpus_per_node", "critic.adam.lr", "critic.optim", "critic.value_clip",
      "critic.freezing_steps", "critic.save_value_network", "ref.num_nodes",
      "ref.num_gpus_per_node", "ref.offload", "reward.num_nodes", "reward.num_gpus_per_node",
      "reward.model_name_or_path", "reward.remote_url", "reward.clip_range",
      "reward.normalize_enable", "reward.overlong_buffer_len", "reward.overlong_penalty_factor",
      "reward.stop_properly_penalty_coef", "reward.offload", "algo.advantage.estimator",
      "algo.advantage.gamma", "algo.advantage.lambd", "algo.advantage.no_std_norm",
      "algo.advantage.is_correction_enable", "algo.advantage.is_correction_type",
      "algo.advantage.is_correction_threshold", "algo.kl.init_coef", "algo.kl.target",
      "algo.kl.horizon", "algo.kl.estimator", "algo.kl.use_loss", "algo.dynamic_filtering_enable",
      "algo.dynamic_filtering_range", "train.agent_func_path", "train.async_enable",
      "train.async_queue_size", "train.partial_rollout_enable", "train.batch_size",
      "train.micro_batch_size", "train.max_epochs", "train.num_episodes",
      "train.dynamic_batch_enable", "train.max_tokens_per_gpu", "train.enable_ema",
      "train.ema_beta", "train.seed", "train.full_determinism_enable", "train.colocate_actor_ref",
      "train.colocate_critic_reward", "train.colocate_all", "rollout.batch_size",
      "rollout.n_samples_per_prompt", "rollout.micro_batch_size", "rollout.max_new_tokens",
      "rollout.max_tokens_per_gpu", "rollout.temperature", "rollout.top_p",
      "rollout.vllm_generate_batch_size", "vllm.num_engines", "vllm.tensor_parallel_size",
      "vllm.gpu_memory_utilization", "vllm.enforce_eager", "vllm.enable_prefix_caching",
      "vllm.enable_sleep", "vllm.sync_backend", "vllm.sync_with_ray", "eval.dataset", "eval.steps",
      "eval.temperature", "eval.n_samples_per_prompt",
      // DeepSpeed
      "ds.zero_stage", "ds.zpg", "ds.adam_offload", "ds.grad_accum_dtype", "ds.overlap_comm",
      "ds.deepcompile", "ds.tensor_parallel_size", "ds.ring_attn_size", "ds.ring_attn_head_stride",
      "ds.packing_samples", "ds.lora.rank", "ds.lora.alpha", "ds.lora.dropout",
      "ds.lora.target_modules", "ds.load_in_4bit", "ds.attn_implementation", "ds.use_liger_kernel",
      "ds.experts_implementation", "ds.param_dtype", "ds.use_universal_ckpt", "ds.enable_sleep",
      // supervised and preference
      "model.model_name_or_path", "model.beta", "model.ipo_enable", "model.label_smoothing",
      "model.nll_loss_coef", "model.loss_type", "model.margin_loss_enable",
      "model.compute_fp32_loss_enable", "model.pretrain_mode_enable", "adam.lr",
      // data, checkpoints, logging
      "data.prompt_dataset", "data.dataset", "data.prompt_probs", "data.max_samples",
      "data.max_len", "data.input_key", "data.output_key", "data.label_key", "data.chosen_key",
      "data.rejected_key", "data.multiturn", "data.apply_chat_template", "data.input_template",
      "data.tokenizer_chat_template", "data.image_key", "data.max_images_per_prompt",
      "ckpt.save_steps", "ckpt.load_enable", "ckpt.max_num", "ckpt.max_mem", "ckpt.save_hf",
      "ckpt.disable_ds", "ckpt.best_metric_key", "ckpt.path", "ckpt.output_dir", "logger.wandb.key",
      "logger.wandb.org", "logger.wandb.group", "logger.wandb.project", "logger.wandb.run_name",
      "logger.tensorboard_dir", "logger.logging_steps",
      // flat, and what later releases dropped
      "pretrain", "reward_pretrain", "critic_pretrain", "remote_rm_url", "actor_learning_rate",
      "critic_learning_rate", "learning_rate", "adam_betas", "l2", "eps_clip", "value_clip",
      "lambd", "gamma", "init_kl_coef", "kl_target", "kl_horizon", "kl_estimator", "use_kl_loss",
      "advantage_estimator", "rollout_batch_size", "micro_rollout_batch_size", "train_batch_size",
      "micro_train_batch_size", "n_samples_per_prompt", "generate_max_len", "prompt_max_len",
      "max_epochs", "num_episodes", "max_samples", "max_len", "prompt_data", "input_key",
      "apply_chat_template", "input_template", "packing_samples", "normalize_reward", "zero_stage",
      "bf16", "flash_attn", "adam_offload", "load_in_4bit", "lora_rank", "lora_alpha",
      "target_modules", "gradient_checkpointing", "save_path", "ckpt_path", "save_steps",
      "load_checkpoint", "max_ckpt_num", "use_wandb", "wandb_org", "wandb_group", "wandb_project",
      "wandb_run_name", "use_tensorboard", "colocate_all_models", "vllm_num_engines",
      "vllm_sync_backend", "async_train", "beta", "desirable_loss_weight",
      "undesirable_loss_weight", "ptx_coef", "pretrain_data", "placeholder_token", "reward_tokens",
      "kd_coef", "post_processor", "best_of_n", "csft_prompt", "is_rm", "batch_size",
      "actor_num_nodes", "ref_num_nodes", "critic_num_nodes", "reward_num_nodes", "ref_offload",
      "deepspeed_enable_sleep", "deepcompile", "overlap_comm", "grad_accum_dtype",
      "ring_head_stride", "attn_implementation", "use_liger_kernel", "disable_fast_tokenizer",
      "enforce_eager", "gradient_checkpointing_use_reentrant", "prompt_split", "eval_split",
      "use_kl_estimator_k3", "local_rank", "vllm_enable_sleep", "vllm_gpu_memory_utilization"};
  return flags;
}

}  // namespace troupe::test
