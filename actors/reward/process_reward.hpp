// A reward source that is a process reward model: a language model that chooses among reward tokens
// at a placeholder after each step of a response (`troupe train prm`). A step's score is the
// probability of the first reward token among them. A response is cut into steps at a separator;
// blank pieces are no steps, and one without any text is a single step. A response of more steps
// than kRewardSteps_max has the rest in its last. The model's own tokenizer and, where prompts are
// chats, chat template make the tokens. Used on the reward role's device thread, numeric work on
// `team`; bound: rows_max rows at a time, or one sample that is longer.
//
// A score depends on its text alone: the same bits for any batch, thread count or process.
#pragma once

#include "actors/reward/reward_source.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/prompt_dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::reward {

// How the scores of a response's steps become its score. Where each is a reward of its own, they
// count as their sum.
enum class StepReduce { kLast, kMin, kMean, kProduct, kSum };

// kLast for "last" and so on; none for any other name, "sum" among them.
std::optional<StepReduce> step_reduce(std::string_view name);

struct ProcessRewardOptions {
  std::filesystem::path folder;
  std::int64_t rows_max = 2048;
  StepReduce reduce = StepReduce::kSum;
  bool gives_steps = true;  // scores of steps go with the score of the response
  // A separator that is neither here nor in the model's config.json is two newlines.
#define KEYS "actors/reward/process_keys.def"
#include "runtime/config/fill.def"
  troupe::data::DatasetColumns
      columns;  // how prompts were read from dataset rows (scored_text.hpp)
};

// A response with a placeholder after each of its steps, and where these end in the response.
struct MarkedSteps {
  std::string text;
  std::vector<std::uint32_t> ends;  // bytes
};

// Cuts a response at `separator`; white space at the end of a step is left out, and so is the
// placeholder where the response itself holds it.
MarkedSteps mark_steps(std::string_view response,
                       const std::string& separator,
                       const std::string& placeholder);

// The last, the least, the mean, the product or the sum, in the order of the steps, of which there
// is one at least.
double reduced(StepReduce reduce, const std::vector<StepScore>& steps);

// kConfig, naming the key to set: the folder has a score head, names no placeholder or no reward
// tokens, a text is not one token; or chats are wanted and it has no template.
core::Result<void> check_process_folder(const ProcessRewardOptions& options);

// Loads the model. Errors: those of check_process_folder, of reading the weights and of
// model::check_memory. `team` outlives the source. A sample reports its number of steps as `steps`.
core::Result<std::unique_ptr<RewardSource>> make_process_reward(ProcessRewardOptions options,
                                                                core::TeamRunner& team);

}  // namespace troupe::actors::reward
