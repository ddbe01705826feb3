// The flags that say how the rows of a dataset become prompts, shared by `generate --data`, `eval`
// and `score`. All but --data have the data.* key of training as a second name. A value type.
#pragma once

#include "actors/data/dataset_prompts.hpp"
#include "actors/reward/reward_source.hpp"
#include "apps/cli/flags.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

struct PromptFlags {
  std::string data;
  std::string input_key = "prompt";
  std::string label_key;
  std::string input_template;
  bool chat = false;
  bool special = true;           // plain text begins with what the tokenizer puts in front
  std::int64_t samples_max = 0;  // 0: all rows

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<cli::Flag>& flags);

  // Options that load the rows in file order. Errors: kConfig for flags that exclude each other, or
  // a template without {}.
  Result<actors::data::DatasetPromptsOptions> options() const;

  // A reward model `name` (folder or org/name, with a score head) as a source of scores for the
  // rows that these flags describe. `stored`: gives (score - mean) / deviation, with the mean and
  // deviation of the model's config.json. `team` outlives the source. Errors: those of `options`;
  // no such model; kConfig: no score head.
  Result<std::unique_ptr<actors::reward::RewardSource>> model_source(const std::string& name,
                                                                     bool stored,
                                                                     core::TeamRunner& team) const;

  // These flags as settings of a PartFile (apps/cli/part_file.hpp), by name.
  std::vector<std::pair<std::string, std::string>> settings() const;
};

}  // namespace troupe::app
