// A reward source that is a learned model: a score head on a language model, read at the last token
// of prompt and response. The model's own tokenizer and, where prompts are chats, its own chat
// template make the tokens; an end-of-sequence token ends them, as in the model's training. Tokens
// that the samples of a prompt share are computed once. Used on the reward role's device thread,
// numeric work on `team`; bound: rows_max rows at a time, or one sample that is longer.
//
// A score depends on its text alone: the same bits for any batch, thread count or process.
#pragma once

#include "actors/reward/reward_source.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/prompt_dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace troupe::actors::reward {

struct ModelRewardOptions {
  std::filesystem::path folder;
  std::int64_t rows_max = 2048;
  bool normalise = false;  // (score - mean) / std of the model's config.json
  // How the run read prompts from dataset rows. This model's template renders prompts that are
  // chats; with columns.apply_chat_template, all prompts.
  troupe::data::DatasetColumns columns;
};

// kConfig when the folder has no score head or names no end-of-sequence token, or when chats are
// wanted and it has no template.
core::Result<void> check_reward_folder(const std::filesystem::path& folder, bool as_chat);

// Loads the model. Errors: those of check_reward_folder, of reading the weights and of
// model::check_memory. `team` outlives the source.
core::Result<std::unique_ptr<RewardSource>> make_model_reward(ModelRewardOptions options,
                                                              core::TeamRunner& team);

}  // namespace troupe::actors::reward
