// The held-out prompts of a run: those of its sets, one set after the other. Used on the data
// role's strand.
#pragma once

#include "actors/data/prompt_source.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::data {

struct PromptsOfSet {
  std::string name;  // "" for that of eval.dataset
  std::unique_ptr<PromptSource> prompts;
};

class HeldOutPrompts final : public PromptSource {
 public:
  explicit HeldOutPrompts(std::vector<PromptsOfSet> sets) : sets_(std::move(sets)) {}

  std::uint64_t size() const override {
    std::uint64_t all = 0;
    for (const PromptsOfSet& set : sets_)
      all += set.prompts->size();
    return all;
  }
  core::Result<Prompt> at(std::uint64_t position) override {
    std::uint64_t place = position % size();
    for (const PromptsOfSet& set : sets_) {
      const std::uint64_t own = set.prompts->size();
      if (place < own) {
        TROUPE_TRY_ASSIGN(prompt, set.prompts->at(place));
        prompt.set = set.name;
        return prompt;
      }
      place -= own;
    }
    return core::fail(core::ErrorCode::kInternal, "this run has no held-out prompts");
  }

 private:
  const std::vector<PromptsOfSet> sets_;
};

}  // namespace troupe::actors::data
