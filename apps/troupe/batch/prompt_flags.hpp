// The flags that say how the rows of a dataset become prompts, shared by `generate --data`, `eval`
// and `score`; each has the data.* key of training as a second name. A value type.
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
  std::int64_t samples_max = 0;

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<Flag>& flags);

  // In file order, templates resolved. Errors: kConfig for flags that exclude each other.
  core::Result<actors::DatasetPromptsOptions> options() const;

  // A reward model (folder or org/name, with a score head) as a source of scores for rows that
  // these flags describe. `stored`: scores less the model's own mean over its deviation. `team`
  // outlives the source. Errors: those of `options`; no such model; kConfig: no score head.
  core::Result<std::unique_ptr<actors::RewardSource>> model_source(const std::string& name,
                                                                   bool stored,
                                                                   core::TeamRunner& team) const;

  // The settings that the content of a file made from the data depends on.
  std::vector<std::pair<std::string, std::string>> settings() const;
};

}  // namespace troupe::app
