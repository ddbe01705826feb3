// A reward source that is a learned model: a score head on a language model, read at the last token
// of prompt and response. The text is tokenised by the model's own tokenizer, under its own chat
// template where prompts are chats, and ends with its end-of-sequence token, as in its training.
// The tokens that the samples of a prompt share are computed once. Used on the reward role's device
// thread, numeric work on `team`; bound: rows_max rows at a time, or one sample that is longer.
//
// A score depends on its text alone: the same bits for any batch, thread count or process.
#pragma once

#include "actors/reward/reward_source.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/prompt_dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace troupe::actors {

struct ModelRewardOptions {
  std::filesystem::path folder;
  std::int64_t rows_max = 2048;
  bool normalise = false;  // (score - mean) / std of the model's config.json
  // How prompts were read from their rows. This model's template renders chat prompts; as_chat:
  // all.
  data::DatasetColumns columns;
};

// kConfig when the folder has no score head or names no end-of-sequence token, or when chats are
// wanted and it has no template.
core::Result<void> check_reward_folder(const std::filesystem::path& folder, bool as_chat);

// Errors of check_reward_folder.
core::Result<std::unique_ptr<RewardSource>> make_model_reward(ModelRewardOptions options,
                                                              core::TeamRunner& team);

}  // namespace troupe::actors
