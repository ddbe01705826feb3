// Listing 1 of the paper that introduces OpenRLHF (arXiv 2405.11143), as its readers type it: 21
// flags.
#pragma once

#include <string>
#include <vector>

namespace troupe::test {

inline std::vector<std::string> listing1() {
  // clang-format off
  return {"--ref_num_gpus_per_node", "4",
          "--reward_num_gpus_per_node", "4",
          "--critic_num_gpus_per_node", "4",
          "--actor_num_gpus_per_node", "4",
          "--vllm_num_engines", "4",
          "--vllm_tensor_parallel_size", "2",
          "--colocate_actor_ref",
          "--colocate_critic_reward",
          "--ref_reward_offload",
          "--pretrain", "meta-llama/Llama-3-8b",
          "--reward_pretrain", "my/reward-model",
          "--zero_stage", "3",
          "--bf16",
          "--init_kl_coef", "0.01",
          "--prompt_data", "prompts.jsonl",
          "--input_key", "context_messages",
          "--apply_chat_template",
          "--normalize_reward",
          "--adam_offload",
          "--flash_attn",
          "--save_path", "checkpoint/llama3"};
  // clang-format on
}

}  // namespace troupe::test
