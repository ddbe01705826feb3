// Every flag of OpenRLHF 0.11 and of the releases that had KTO, PRM, distillation and batch
// inference that is known here is a key, an alias of one, or answered. The list was typed from
// notes on its features, not from our table; it may lack some.
#include "runtime/config/read.hpp"
#include "runtime/config/table.hpp"
#include "tests/unit/runtime/core/listing1.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace troupe::config;
using namespace troupe::core;

const std::vector<std::string> kFlags = {
    // reinforcement learning, dotted
    "actor.model_name_or_path", "actor.num_nodes", "actor.num_gpus_per_node", "actor.adam.lr",
    "actor.adam.betas", "actor.adam.eps", "actor.adam.weight_decay", "actor.optim", "actor.muon.lr",
    "actor.muon.momentum", "actor.lr_scheduler", "actor.lr_warmup_ratio", "actor.min_lr_ratio",
    "actor.max_norm", "actor.eps_clip", "actor.eps_clip_low_high", "actor.dual_clip",
    "actor.policy_loss_type", "actor.entropy_coef", "actor.aux_loss_coef",
    "actor.gradient_checkpointing_enable", "actor.gradient_checkpointing_reentrant",
    "actor.freeze_visual_encoder", "critic.model_name_or_path", "critic.num_nodes",
    "critic.num_gpus_per_node", "critic.adam.lr", "critic.optim", "critic.value_clip",
    "critic.freezing_steps", "critic.save_value_network", "ref.num_nodes", "ref.num_gpus_per_node",
    "ref.offload", "reward.num_nodes", "reward.num_gpus_per_node", "reward.model_name_or_path",
    "reward.remote_url", "reward.clip_range", "reward.normalize_enable",
    "reward.overlong_buffer_len", "reward.overlong_penalty_factor",
    "reward.stop_properly_penalty_coef", "reward.offload", "algo.advantage.estimator",
    "algo.advantage.gamma", "algo.advantage.lambd", "algo.advantage.no_std_norm",
    "algo.advantage.is_correction_enable", "algo.advantage.is_correction_type",
    "algo.advantage.is_correction_threshold", "algo.kl.init_coef", "algo.kl.target",
    "algo.kl.horizon", "algo.kl.estimator", "algo.kl.use_loss", "algo.dynamic_filtering_enable",
    "algo.dynamic_filtering_range", "train.agent_func_path", "train.async_enable",
    "train.async_queue_size", "train.partial_rollout_enable", "train.batch_size",
    "train.micro_batch_size", "train.max_epochs", "train.num_episodes",
    "train.dynamic_batch_enable", "train.max_tokens_per_gpu", "train.enable_ema", "train.ema_beta",
    "train.seed", "train.full_determinism_enable", "train.colocate_actor_ref",
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
    "data.prompt_dataset", "data.dataset", "data.prompt_probs", "data.max_samples", "data.max_len",
    "data.input_key", "data.output_key", "data.label_key", "data.chosen_key", "data.rejected_key",
    "data.multiturn", "data.apply_chat_template", "data.input_template",
    "data.tokenizer_chat_template", "data.image_key", "data.max_images_per_prompt",
    "ckpt.save_steps", "ckpt.load_enable", "ckpt.max_num", "ckpt.max_mem", "ckpt.save_hf",
    "ckpt.disable_ds", "ckpt.best_metric_key", "ckpt.path", "ckpt.output_dir", "logger.wandb.key",
    "logger.wandb.org", "logger.wandb.group", "logger.wandb.project", "logger.wandb.run_name",
    "logger.tensorboard_dir", "logger.logging_steps",
    // flat, and what later releases dropped
    "pretrain", "reward_pretrain", "critic_pretrain", "remote_rm_url", "actor_learning_rate",
    "critic_learning_rate", "learning_rate", "adam_betas", "l2", "eps_clip", "value_clip", "lambd",
    "gamma", "init_kl_coef", "kl_target", "kl_horizon", "kl_estimator", "use_kl_loss",
    "advantage_estimator", "rollout_batch_size", "micro_rollout_batch_size", "train_batch_size",
    "micro_train_batch_size", "n_samples_per_prompt", "generate_max_len", "prompt_max_len",
    "max_epochs", "num_episodes", "max_samples", "max_len", "prompt_data", "input_key",
    "apply_chat_template", "input_template", "packing_samples", "normalize_reward", "zero_stage",
    "bf16", "flash_attn", "adam_offload", "load_in_4bit", "lora_rank", "lora_alpha",
    "target_modules", "gradient_checkpointing", "save_path", "ckpt_path", "save_steps",
    "load_checkpoint", "max_ckpt_num", "use_wandb", "wandb_org", "wandb_group", "wandb_project",
    "wandb_run_name", "use_tensorboard", "colocate_all_models", "vllm_num_engines",
    "vllm_sync_backend", "async_train", "beta", "desirable_loss_weight", "undesirable_loss_weight",
    "ptx_coef", "pretrain_data", "placeholder_token", "reward_tokens", "kd_coef", "post_processor",
    "best_of_n", "csft_prompt", "is_rm", "batch_size", "actor_num_nodes", "ref_num_nodes",
    "critic_num_nodes", "reward_num_nodes", "ref_offload", "deepspeed_enable_sleep", "deepcompile",
    "overlap_comm", "grad_accum_dtype", "ring_head_stride", "attn_implementation",
    "use_liger_kernel", "disable_fast_tokenizer", "enforce_eager",
    "gradient_checkpointing_use_reentrant", "prompt_split", "eval_split", "use_kl_estimator_k3",
    "local_rank", "vllm_enable_sleep", "vllm_gpu_memory_utilization"};

TEST(PeerNames, EveryFlagIsTakenOrAnswered) {
  for (const std::string& flag : kFlags) {
    if (keys().find_any(flag) != nullptr) continue;
    const std::string answer = answer_to_name(flag);
    EXPECT_FALSE(answer.empty()) << flag << " is neither taken nor answered";
    EXPECT_GT(answer.size(), flag.size() + 12) << answer;
  }
}

TEST(PeerNames, EachFlagOfListing1IsTakenOrAnsweredAllAtOnce) {
  const Arguments read = read_flags(keys(), troupe::test::listing1());
  EXPECT_TRUE(read.files.empty()) << "values of answered flags are not taken for files";
  Builder builder(keys());
  ASSERT_TRUE(builder.set_all(read.settings));
  const TrainConfig& config = builder.current();
  EXPECT_EQ(config.rollout.generators, 4);
  EXPECT_EQ(config.actor.ranks, 4);
  EXPECT_EQ(config.critic.ranks, 4);
  EXPECT_EQ(config.actor.model_name_or_path, "meta-llama/Llama-3-8b");
  EXPECT_EQ(config.reward.model_name_or_path, std::vector<std::string>{"my/reward-model"});
  EXPECT_EQ(config.algo.kl.init_coef, 0.01);
  EXPECT_EQ(config.data.prompt_dataset, "prompts.jsonl");
  EXPECT_EQ(config.data.input_key, "context_messages");
  EXPECT_TRUE(config.data.apply_chat_template);
  ASSERT_FALSE(read.wrong.empty());
  const Error wrong = read.wrong.error();
  const auto answers = single_errors(wrong);
  EXPECT_EQ(builder.origins().size() + answers.size(), 21u) << wrong.message;
  for (const Error& answer : answers) {
    EXPECT_EQ(answer.message.find("unknown key"), std::string::npos) << answer.message;
    EXPECT_TRUE(answer.message.starts_with("the command line: '")) << answer.message;
  }
}

TEST(PeerNames, RanksAreTheProductOfNodesAndGpus) {
  const auto ranks = [](std::vector<std::string> words) {
    Builder builder(keys());
    const auto set = builder.set_all(read_flags(keys(), words).settings);
    return set ? std::to_string(builder.current().actor.ranks) : set.error().message;
  };
  EXPECT_EQ(ranks({"--actor_num_nodes", "2", "--actor_num_gpus_per_node", "8"}), "16");
  EXPECT_EQ(ranks({"--actor.num_gpus_per_node=4", "--actor.num_nodes=3"}), "12");
  EXPECT_EQ(ranks({"--actor_num_gpus_per_node", "4"}), "4");
  EXPECT_EQ(ranks({"--actor_num_nodes", "2", "--critic_num_gpus_per_node", "8"}), "2");
  EXPECT_NE(ranks({"--actor_num_nodes", "2", "--actor_num_gpus_per_node", "x"}).find("actor.ranks"),
            std::string::npos);
  EXPECT_NE(ranks({"--actor_num_nodes", "99", "--actor_num_gpus_per_node", "99"}).find("9801"),
            std::string::npos);
}

// What an answer puts in quotes beside the name itself is a key that exists.
TEST(PeerNames, AnswersNameKeysThatExist) {
  for (const std::string& flag : kFlags) {
    const std::string answer = answer_to_name(flag);
    std::size_t at = answer.find('\'', answer.find('\'') + 1);
    while (!answer.empty() && (at = answer.find('\'', at + 1)) != answer.npos) {
      const auto end = answer.find('\'', at + 1);
      const std::string key = answer.substr(at + 1, end - at - 1);
      EXPECT_NE(keys().find(key), nullptr) << answer;
      at = end;
    }
  }
}

// Names of TRL's preference trainers: each says the key or the method to use instead.
TEST(PeerNames, TrlsNamesOfPreferenceLossesAreAnswered) {
  for (const auto& [flag, part] : {std::pair{"loss_type", "is called 'dpo.loss' here"},
                                   {"loss_weights", "'dpo.nll_loss_coef'"},
                                   {"rpo_alpha", "'dpo.nll_loss_coef'"},
                                   {"cpo_alpha", "'cpo.nll_loss_coef'"},
                                   {"simpo_gamma", "'simpo.gamma'"},
                                   {"discopop_tau", "'dpo.discopop_tau'"},
                                   {"reference_free", "`troupe train simpo`"},
                                   {"beta", "'bco.beta'"}})
    EXPECT_NE(answer_to_name(flag).find(part), std::string::npos) << answer_to_name(flag);
  EXPECT_EQ(answer_to_name("label_smoothing"),
            "'label_smoothing' is called 'dpo.label_smoothing' here");
}

TEST(PeerNames, AnAliasTakesTheSameValues) {
  const std::vector<std::string> words = {"--pretrain",
                                          "m",
                                          "--actor.policy_loss_type",
                                          "gspo",
                                          "--ds.lora.rank=8",
                                          "rollout_batch_size=4",
                                          "--adam_betas",
                                          "0.8",
                                          "0.9",
                                          "--use_kl_loss"};
  const auto read = read_flags(keys(), words);
  ASSERT_TRUE(read.wrong.empty());
  Builder builder(keys());
  ASSERT_TRUE(builder.set_all(read.settings));
  const TrainConfig& config = builder.current();
  EXPECT_EQ(config.actor.model_name_or_path, "m");
  EXPECT_EQ(config.algo.objective, "gspo");
  EXPECT_EQ(config.actor.lora.rank, 8);
  EXPECT_EQ(config.rollout.batch_size, 4);
  EXPECT_EQ(config.actor.adam.betas, (std::vector<double>{0.8, 0.9}));
  EXPECT_TRUE(config.algo.kl.use_loss);
  EXPECT_TRUE(read.files.empty());
}

TEST(PeerNames, AnAliasOfAnotherMethodIsRefusedByItsKey) {
  const std::vector<std::string> words = {"--model.beta", "0.2"};
  const auto read = read_flags(keys(), words);
  ASSERT_TRUE(read.wrong.empty());
  Builder dpo(keys(), kDpo), ppo(keys(), kPpo);
  EXPECT_TRUE(dpo.set_all(read.settings));
  EXPECT_EQ(dpo.current().dpo.beta, 0.2);
  EXPECT_NE(ppo.set_all(read.settings).error().message.find("dpo.beta is not read by"),
            std::string::npos);
}

TEST(PeerNames, AnAliasMeansOneKey) {
  std::set<std::string> names;
  for (const Row& row : keys().rows()) {
    std::istringstream words{std::string(row.aka)};
    for (std::string word; words >> word;) {
      EXPECT_TRUE(names.insert(word).second) << word;
      EXPECT_EQ(keys().find_any(word), &row) << word;
    }
  }
}

TEST(PeerNames, AnOwnNameIsNeverAnAlias) {
  for (const Row& row : keys().rows())
    EXPECT_EQ(answer_to_name(row.name), "") << row.name;
}

}  // namespace
