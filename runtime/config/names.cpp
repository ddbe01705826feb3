// Error texts for names that are not keys: misspelt ones, and those of OpenRLHF, dotted (since
// 0.10) or flat (before). An OpenRLHF name with the same meaning and values is in its key's row
// (`aka`). For its other names this file says what to write instead, or why there is no such key.
#include "runtime/config/refuse.hpp"
#include "runtime/config/table.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

struct Answer {
  std::string_view names;  // separated by spaces; a final '*' matches any rest
  std::string_view text;   // follows "'NAME' "
};

constexpr Answer kForeignNames[] = {
    {"train.async_enable",
     "is called 'train.staleness_max' here: 0 is synchronous, 1 and more not"},
    {"train.async_queue_size async_train async_queue_size", "is called 'train.staleness_max' here"},
    {"train.partial_rollout_enable partial_rollout",
     "is called 'rollout.kv_on_update' here; samples always go on over new weights when "
     "train.staleness_max is above 0"},
    {"train.micro_batch_size micro_train_batch_size micro_rollout_batch_size "
     "rollout.micro_batch_size",
     "counts samples; 'train.micro_tokens_max' counts tokens here"},
    {"rollout.max_tokens_per_gpu", "is 'train.micro_tokens_max' for all models here"},
    {"train.dynamic_batch_enable use_dynamic_batch",
     "is always on: 'train.micro_tokens_max' bounds a micro-batch"},
    {"rollout.vllm_generate_batch_size",
     "is not needed: 'train.staleness_max' says how far generators run ahead"},
    {"train.full_determinism_enable full_determinism",
     "is always on: the same seed gives the same bits"},
    {"train.agent_func_path agent_func_path",
     "has no counterpart: rewards are 'reward.python' or 'reward.http'"},
    {"train.colocate* colocate_*",
     "is not needed: cores are shared out by the run ('train.threads')"},
    {"actor.freeze_visual_encoder", "is 'actor.freeze' here, with parts of tensor names"},
    {"actor.gradient_checkpointing_reentrant gradient_checkpointing_use_reentrant",
     "has no counterpart: there is one way to do it ('actor.gradient_checkpointing_enable')"},
    {"ref.num_nodes reward.num_nodes ref_num_nodes reward_num_nodes",
     "is not configured: hosts join by `troupe node --join`"},
    {"ref.num_gpus_per_node ref_num_gpus_per_node",
     "is not configured: 'ref.device' names the one GPU of the role; hosts join by `troupe node "
     "--join`"},
    {"reward.num_gpus_per_node reward_num_gpus_per_node",
     "is not configured: 'reward.device' names the one GPU of the role; hosts join by `troupe "
     "node --join`"},
    {"ref.offload reward.offload ref_offload reward_offload ref_reward_offload offload",
     "is not needed: roles live in processes of their own"},
    {"algo.advantage.is_correction_enable enable_vllm_is_correction",
     "is not needed: 'algo.correction.type' other than none turns it on"},
    {"algo.advantage.is_correction_threshold vllm_is_truncated_threshold",
     "is two keys here: 'algo.correction.low' and 'algo.correction.high'"},
    {"reward.remote_url remote_rm_url",
     "is 'reward.http' for a server and 'reward.python' for a file here"},
    {"reward.normalize_enable normalize_reward",
     "is called 'reward.normalize' here: none, stored or running"},
    {"model.ipo_enable ipo", "is a method here: `troupe train ipo`"},
    {"model.pretrain_mode_enable pretrain_mode", "is a method here: `troupe train pretrain`"},
    {"model.loss_type loss", "has no counterpart: sigmoid and logexp are the same function"},
    {"model.margin_loss_enable margin_loss",
     "is called 'data.margin_key' here: the column of the margin"},
    {"model.compute_fp32_loss_enable compute_fp32_loss",
     "is always on: losses are computed in 32 bits or more"},
    {"beta",
     "is called after the method here: 'dpo.beta' for dpo, ipo and cdpo, 'kto.beta', 'bco.beta', "
     "'orpo.beta', 'simpo.beta', 'cpo.beta' or 'distill.beta'"},
    {"loss_type",
     "is called 'dpo.loss' here, with TRL's names; simpo, cpo, orpo and bco are methods: `troupe "
     "train simpo`"},
    {"loss_weights", "has no counterpart: a run has one loss, and 'dpo.nll_loss_coef' beside it"},
    {"rpo_alpha", "is called 'dpo.nll_loss_coef' here"},
    {"cpo_alpha", "is 'cpo.nll_loss_coef' for cpo and 'simpo.nll_loss_coef' for simpo here"},
    {"simpo_gamma", "is called 'simpo.gamma' here"},
    {"discopop_tau", "is called 'dpo.discopop_tau' here"},
    {"reference_free", "is a method here: `troupe train simpo`, cpo or orpo"},
    {"data.image_key", "has no counterpart: Troupe trains on text ('data.input_key')"},
    {"data.max_images_per_prompt", "has no counterpart: Troupe trains on text"},
    {"data.tokenizer_chat_template tokenizer_chat_template",
     "is read from the model folder: put chat_template.jinja there ('data.apply_chat_template')"},
    {"ckpt.path ckpt.output_dir ckpt_path save_path",
     "is called 'run.path' here; checkpoints and model stand below it"},
    {"ckpt.load_enable load_checkpoint",
     "is called 'resume' here; auto, which is the default, goes on"},
    {"ckpt.max_mem max_ckpt_mem", "has no counterpart: 'ckpt.max_num' bounds what is kept"},
    {"ckpt.save_hf save_hf_ckpt", "is always on: the model is saved as a Hugging Face folder"},
    {"ckpt.disable_ds disable_ds_ckpt",
     "has no counterpart: a checkpoint is what a run needs to go on"},
    {"logger.tensorboard_dir use_tensorboard",
     "is called 'logger.tensorboard' here; events go to run.path/tensorboard"},
    {"logger.wandb.key use_wandb",
     "is called 'logger.wandb' here: true; the key comes from WANDB_API_KEY or `wandb login`, so "
     "that no file of a run holds it"},
    {"logger.wandb.* wandb_*", "has no counterpart: 'logger.wandb' and the keys after it say all"},
    {"report_to", "is 'logger.wandb', 'logger.mlflow' or 'logger.trackio' here: true"},
    {"logger.logging_steps logging_steps", "is always 1"},
    {"ds.packing_samples packing_samples", "is always on: sequences are packed without padding"},
    {"ds.lora.dropout lora_dropout",
     "has no counterpart: adapters ('actor.lora.rank') have no dropout"},
    {"bf16", "is called 'actor.param_dtype' here: f32 or bf16"},
    {"ds.*",
     "belongs to DeepSpeed, which Troupe does not use; 'train.micro_tokens_max' bounds memory"},
    {"deepspeed_enable_sleep",
     "belongs to DeepSpeed, which Troupe does not use; 'rollout.enable_sleep' lets engines sleep "
     "while the policy trains"},
    {"zero_stage", "is called 'train.zero_stage' here"},
    {"deepspeed* zpg deepcompile overlap_comm use_ds_universal_ckpt",
     "belongs to DeepSpeed, which Troupe does not use"},
    {"grad_accum_dtype",
     "is always 32 bits wide here; 'actor.param_dtype' is that of forward passes"},
    {"local_rank", "is set by launchers, which Troupe does not need: it starts its own processes"},
    {"ring_attn_size ring_head_stride", "splits sequences over GPUs, which Troupe does not do"},
    {"flash_attn attn_implementation", "has no counterpart: there is one attention kernel"},
    {"use_liger_kernel", "has no counterpart: there is one kernel of each kind"},
    {"disable_fast_tokenizer",
     "has no counterpart: there is one tokenizer, read from tokenizer.json"},
    {"enforce_eager", "belongs to vLLM, which Troupe does not use"},
    {"prompt_split", "is not needed: 'data.prompt_dataset' names files, which have no splits"},
    {"dataset_split", "is not needed: 'data.dataset' names files, which have no splits"},
    {"eval_split", "is not needed: 'eval.dataset' names files, which have no splits"},
    {"use_kl_estimator_k3", "is called 'algo.kl.estimator' here: k3"},
    {"load_in_4bit", "has no counterpart: weights are trained in 32 bits"},
    {"vllm.gpu_memory_utilization vllm_gpu_memory_utilization",
     "is a share of a GPU there; 'rollout.kv_cache_gb' gives keys and values their memory"},
    {"vllm.* vllm_*",
     "belongs to vLLM, which Troupe does not use; 'rollout.generators' engines sample"},
    {"post_processor", "is a flag of `troupe score`: --best-of-n, --pairs or --csft"},
    {"best_of_n", "is a flag of `troupe score`: --best-of-n, after generate --n"},
    {"csft_prompt", "is --input-template of `troupe generate`, and --csft of `troupe score`"},
    {"lmbda",
     "has no counterpart: `troupe train distill` learns from given text, and a teacher of `troupe "
     "train ppo` "
     "('teacher.coef') from the policy's own"},
    {"seq_kd", "has no counterpart: `troupe generate` with the teacher makes the text"},
    {"teacher_model_name_or_path", "is called 'teacher.model_name_or_path' here"},
    {"is_rm", "is not needed: `troupe merge-lora` sees which model it is"},
    {"batch_size", "is 'train.batch_size' in training; serve-reward takes what a request holds"},
};

// Names without a star take precedence over those with one.
const Answer* find_answer(std::string_view name) {
  for (const bool stars : {false, true}) {
    for (const Answer& answer : kForeignNames) {
      for (std::string_view one : core::split(answer.names, " ")) {
        const bool star = one.ends_with('*');
        if (star) one.remove_suffix(1);
        if (star == stars && (star ? name.starts_with(one) : name == one)) return &answer;
      }
    }
  }
  return nullptr;
}

std::string_view leaf(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

// Empty when nothing is known of the name.
Saying answer_of(std::string_view name) {
  const Row* row = keys().find_any(name);
  if (row != nullptr && row->name != name) {
    return said("'", name, "' is called '", row->name, "' here");
  }
  const Answer* answer = row == nullptr ? find_answer(name) : nullptr;
  return answer == nullptr ? Saying() : said("'", name, "' ", written(answer->text));
}

}  // namespace

std::string answer_to_name(std::string_view name) {
  const Saying answer = answer_of(name);
  return core::advised(core::ErrorCode::kConfig, answer.what, answer.advice).message;
}

std::string nearest_name(std::string_view name) {
  std::string best;
  std::size_t best_cost = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const Row& row : keys().rows()) {
    std::size_t cost = core::edit_distance(name, row.name);
    // `lr` or `actor.lr` for `actor.adam.lr`: the last word is right, the path is not.
    if (leaf(name) == leaf(row.name)) {
      const bool same_section = name.substr(0, name.find('.')) == row.section();
      cost = std::min<std::size_t>(cost, same_section ? 1 : 2);
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = row.name;
    }
  }
  return best;
}

core::Error unknown_key(std::string_view name, std::string_view where) {
  if (const Saying answer = answer_of(name); !answer.empty()) {
    return refuse(where, ": ", answer).error;
  }
  const std::string near = nearest_name(name);
  return refuse(where, ": unknown key '", name, "'", kThen,
                near.empty() ? "`troupe config show` lists all keys"
                             : joined("did you mean '", near, "'?"))
      .error;
}

}  // namespace troupe::config
