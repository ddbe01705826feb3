// Makes prompts of the rows of a dataset: renders and tokenises each, and checks its length, the
// bytes that rewards read of it, and its domain. One owner, one thread.
#pragma once

#include "actors/data/dataset_prompts.hpp"
#include "runtime/data/tools_watch.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::data {

// The row as token ids, without its teacher. Null `chat`: the model has no template. Errors (kData,
// kConfig) name the row.
core::Result<Prompt> prompt_of(troupe::data::PromptRow&& row,
                               std::uint64_t place,
                               const text::Tokenizer& tokenizer,
                               const text::ChatTemplate* chat,
                               bool add_special_tokens);

// Gives the prompt the teacher of its row's domain.
core::Result<void> find_teacher(const troupe::data::Domains& domains,
                                const std::string& where,
                                Prompt& prompt);

class PromptReader {
 public:
  // All must outlive this object.
  PromptReader(const DatasetPromptsOptions& options,
               const text::Tokenizer& tokenizer,
               const text::ChatTemplate* chat)
      : options_(options), tokenizer_(tokenizer), chat_(chat), tools_(chat) {}

  // The next row; nothing if it is too long and such prompts are left out. Errors name the row.
  core::Result<std::optional<Prompt>> take(troupe::data::PromptRow&& row);

  std::uint64_t longest() const { return longest_; }  // tokens of the longest prompt
  bool has_chats() const { return has_chats_; }       // the template rendered at least one
  // That the chat template shows nothing of the rows' tools; empty: it does.
  const std::string& tools_warning() const { return tools_.warning(); }
  // Notes that warning, and how many prompts were left out. Error kData: all of them.
  core::Result<void> tell(std::vector<std::string>& notes) const;

 private:
  std::string most() const;
  core::Result<bool> drops(const std::string& where, const Prompt& prompt);
  core::Result<void> check_bytes(const std::string& where, const Prompt& prompt);

  const DatasetPromptsOptions& options_;
  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* const chat_;
  troupe::data::ToolsWatch tools_;
  std::optional<RewardReads> reads_;
  std::uint64_t seen_ = 0, dropped_ = 0, longest_ = 0;
  bool has_chats_ = false;
};

}  // namespace troupe::actors::data
