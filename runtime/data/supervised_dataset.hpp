// The rows of supervised training, tokenised: answers and dialogues (sft), texts (pretrain), pairs
// of a better and a worse answer (rm, dpo, ...), rated answers (kto). All tokens lie in one array,
// so a row costs its tokens and 48 bytes. Built once, then read-only. Bounds: those of
// table_reader.hpp, and the lengths the caller sets.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/dialogue_coder.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::data {

enum class RowKind { kAnswer, kText, kPair, kRated };

struct SupervisedColumns {
  RowKind kind = RowKind::kAnswer;
  std::string input_key = "input";    // prompt, text, or a dialogue; `messages` is found by itself
  std::string output_key = "output";  // answer; empty: the input column holds the dialogue
  std::string prompt_key;  // of pairs; empty: `prompt`, or both answers hold the whole dialogue
  std::string chosen_key = "chosen";
  std::string rejected_key = "rejected";
  std::string margin_key;           // of pairs; empty: none
  std::string label_key = "label";  // of rated answers: true is a good one
  bool as_chat = false;             // texts become messages of the chat template
  bool every_turn = false;          // all assistant turns of a dialogue are learned
  std::string input_template;       // {} is replaced by the prompt; empty: none
};

struct SupervisedLimits {
  std::uint64_t max_samples = 0;  // of the first rows; 0: all
  std::int64_t tokens_max = 2048;
  std::int64_t context = 2048;  // of the model
  std::int64_t vocab = 0;       // of the model
  bool drop_too_long = false;   // else a row that is too long is an error
  bool each_file = false;       // max_samples counts for every file by itself
};

// Views into the dataset.
struct SupervisedRow {
  std::uint64_t id = 0;                  // its place in the dataset
  std::span<const std::int32_t> prompt;  // empty for sequences
  std::span<const std::int32_t> answer;  // the whole sequence, the better answer, the rated answer
  std::span<const std::int32_t> rejected;
  std::span<const std::uint8_t> learn;  // [answer] of sequences
  double margin = 0;
  bool desirable = true;

  std::int64_t tokens() const {
    return static_cast<std::int64_t>(prompt.size() + answer.size() + rejected.size());
  }
};

// Rows that are tokens already: a sequence (`answer` alone, all but its first token learned) or a
// pair.
struct TokenRow {
  Tokens prompt, answer, rejected;
};

class SupervisedDataset {
 public:
  // Of one kind each: benchmarks and tests.
  static SupervisedDataset of_tokens(std::span<const TokenRow> rows);

  // `files`: paths separated by commas; `key` the setting that holds them. Rows of messages, of
  // ShareGPT and of Alpaca are known by their columns (row_format.hpp). Null `chat`: the model
  // has no template. Errors are kData with file:line: a missing column (names those there are), an
  // empty answer, equal answers, a row that is too long, a token outside the vocabulary, no rows.
  static core::Result<SupervisedDataset> load(const std::string& files,
                                              std::string_view key,
                                              const SupervisedColumns& columns,
                                              const SupervisedLimits& limits,
                                              const text::Tokenizer& tokenizer,
                                              const text::ChatTemplate* chat);

  std::uint64_t size() const { return rows_.size(); }
  SupervisedRow row(std::uint64_t index) const;
  std::string where(std::uint64_t index) const;  // "train.jsonl:12"
  std::uint64_t dropped() const { return dropped_; }
  // Notes for users on how rows were read where the settings do not say it: one per format.
  const std::vector<std::string>& notes() const { return notes_; }
  // Rows of each file, in order.
  const std::vector<std::uint64_t>& file_rows() const { return file_rows_; }
  std::uint64_t tokens() const { return tokens_.size(); }

 private:
  friend class SupervisedLoader;
  struct Place {
    std::uint64_t begin = 0;  // in tokens_
    std::uint32_t prompt = 0, answer = 0, rejected = 0;
    std::uint32_t file = 0;
    std::uint64_t line = 0;
    double margin = 0;
    bool desirable = true;
  };
  // Adds a row of these tokens.
  Place& append(const Tokens& prompt, const Tokens& answer, const Tokens& rejected);

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> learn_;  // as tokens_; empty where rows are no sequences
  std::vector<Place> rows_;
  std::vector<std::string> files_;
  std::vector<std::uint64_t> file_rows_;
  std::uint64_t dropped_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace troupe::data
