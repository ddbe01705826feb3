#include "apps/session/roles/step_marks.hpp"

#include <algorithm>

namespace troupe::session {
namespace {

core::Result<std::int32_t> id_of(const text::Tokenizer& tokenizer,
                                 const std::string& text,
                                 const char* key) {
  auto id = tokenizer.single(text);
  if (id) return *id;
  return core::fail(core::ErrorCode::kConfig, std::string(key) + ": " + id.error().message,
                    "name one of its tokens");
}

}  // namespace

model::ProcessReward process_reward(const config::TrainConfig& config) {
  const std::string& separator = config.prm.step_separator;
  return {config.prm.placeholder_token, config.prm.reward_tokens,
          separator.empty() ? "\n\n" : separator};
}

core::Result<data::StepMarks> step_marks(const config::TrainConfig& config,
                                         const text::Tokenizer& tokenizer) {
  data::StepMarks marks;
  if (config.method != config::kPrm) return marks;
  const model::ProcessReward facts = process_reward(config);
  marks.placeholder = facts.placeholder;
  marks.rewards = facts.rewards;
  marks.separator = facts.separator;
  TROUPE_TRY_SET(marks.placeholder_id,
                 id_of(tokenizer, marks.placeholder, "prm.placeholder_token"));
  for (const std::string& reward : marks.rewards) {
    TROUPE_TRY_ASSIGN(id, id_of(tokenizer, reward, "prm.reward_tokens"));
    if (std::find(marks.reward_ids.begin(), marks.reward_ids.end(), id) != marks.reward_ids.end()) {
      return core::fail(core::ErrorCode::kConfig,
                        "prm.reward_tokens: '" + reward + "' is the same token as one before it");
    }
    marks.reward_ids.push_back(id);
  }
  return marks;
}

}  // namespace troupe::session
