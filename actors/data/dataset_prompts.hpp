// The prompts of a dataset as token ids, in the shuffled order of a run (or in file order, for
// evaluation). Every row is rendered and tokenised once, when the run starts, so that a prompt that
// cannot be used stops the run before it begins, by file and line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/data/prompt_source.hpp"
#include "runtime/data/blend_order.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

namespace troupe::actors {

struct DatasetPromptsOptions {
  std::string files;  // separated by commas
  // Share of each file when they are blended (columns.max_samples then counts for each of them);
  // empty: as long as they are.
  std::vector<double> shares;
  data::DatasetColumns columns;
  std::uint64_t prompt_tokens_max = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
};

class DatasetPrompts final : public PromptSource {
 public:
  // `chat` is needed when columns.as_chat is set or a row holds messages. Errors: kData naming
  // file:line for a prompt without tokens or longer than prompt_tokens_max (--data.prompt_max_len);
  // kConfig for shares that do not fit the files (data.probs).
  static core::Result<std::unique_ptr<DatasetPrompts>> load(const DatasetPromptsOptions& options,
                                                            const text::Tokenizer& tokenizer,
                                                            const text::ChatTemplate* chat);

  std::uint64_t size() const override { return prompts_.size(); }
  core::Result<Prompt> at(std::uint64_t position) override;

 private:
  DatasetPrompts(std::vector<Prompt> prompts, std::optional<data::BlendOrder> order)
      : prompts_(std::move(prompts)), order_(std::move(order)) {}

  std::vector<Prompt> prompts_;
  std::optional<data::BlendOrder> order_;  // none: file order
};

}  // namespace troupe::actors
