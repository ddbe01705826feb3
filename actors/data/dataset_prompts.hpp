// The prompts of a dataset as token ids, in the shuffled order of a run (or in file order, for
// evaluation), held in memory or read as they are taken. `load` renders and tokenises every row
// once, so that an unusable prompt stops the run before it begins; the error names its file and
// line.
#pragma once

#include "actors/data/prompt_source.hpp"
#include "actors/protocol/reward_group.hpp"
#include "runtime/data/domains.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::data {

struct DatasetPromptsOptions {
  std::string files;  // separated by commas
  // Share of each file when they are blended (columns.max_samples then counts for each of them);
  // empty: each file counts with all its rows.
  std::vector<double> shares;
  troupe::data::DatasetColumns columns;
  troupe::data::Domains domains;  // which teacher a row has
  std::uint64_t prompt_tokens_max = 0;
  bool drop_too_long = false;  // leave out prompts that are longer; else they are an error
  // Bound on the bytes of prompt, label and the columns that the rewards read; 0 = none. `reads`
  // (what the rewards read) is called only when a row with all its columns exceeds the bound.
  std::uint64_t row_bytes_max = 0;
  std::function<RewardReads()> reads;
  bool shuffle = true;
  std::uint64_t shuffle_buffer = 0;  // rows of the buffer of a stream; 0: all prompts are held
  std::uint64_t seed = 0;
};

// The prompt as a JSON list of messages, for rewards that read them; "" where the dataset has a
// text.
std::string chat_json(const troupe::data::PromptRow& row);

class DatasetPrompts : public PromptSource {
 public:
  // `chat` is needed when columns.apply_chat_template is set or a row holds messages. Errors: kData
  // naming file:line for a prompt without tokens or longer than prompt_tokens_max
  // (--data.prompt_max_len), unless such are left out and others remain, for a row longer than
  // row_bytes_max, and for one whose domain has no teacher; kConfig for shares that do not fit the
  // files (data.probs).
  static core::Result<std::unique_ptr<DatasetPrompts>> load(const DatasetPromptsOptions& options,
                                                            const text::Tokenizer& tokenizer,
                                                            const text::ChatTemplate* chat);

  std::uint64_t longest() const { return longest_; }  // tokens of the longest prompt
  // Notes on how rows were read where the settings do not decide it: a line for each kind.
  const std::vector<std::string>& notes() const { return notes_; }
  // That the chat template shows nothing of the rows' tools, one of the notes; empty: it does.
  const std::string& tools_warning() const { return tools_warning_; }
  // Whether a row has the column, and the columns of the first row, for messages.
  virtual bool has_column(const std::string& name) const = 0;
  virtual std::string columns() const = 0;
  bool has_chats() const { return has_chats_; }  // the template rendered at least one prompt

 protected:
  std::vector<std::string> notes_;
  std::string tools_warning_;
  std::uint64_t longest_ = 0;
  bool has_chats_ = false;
};

}  // namespace troupe::actors::data
