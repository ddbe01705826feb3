// A tokenised dataset for supervised training: answers and dialogues (sft), texts (pretrain), pairs
// of a better and a worse answer (rm, dpo, ...), or rated answers (kto). All tokens lie in one
// array: a row takes 48 bytes, and 4 bytes per token, or 5 with learn flags. Built once, then
// read-only. Bounds: those of table_reader.hpp, and SupervisedLimits.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/dialogue_coder.hpp"
#include "runtime/data/domains.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

enum class RowKind { kAnswer, kText, kPair, kRated };

struct SupervisedColumns {
  RowKind kind = RowKind::kAnswer;
  std::string input_key = "input";    // prompt, text or dialogue; kAnswer falls back to `messages`
  std::string output_key = "output";  // answer; empty: the input column holds the whole dialogue
  std::string prompt_key;  // for pairs; empty: `prompt`, or both answers hold the whole dialogue
  std::string chosen_key = "chosen";
  std::string rejected_key = "rejected";
  std::string margin_key;           // for pairs; empty: no margin
  std::string label_key = "label";  // for rated answers: true for a good one
  bool as_chat = false;             // render text prompts with the chat template
  bool every_turn = false;          // learn all assistant turns of a dialogue, not only the last
  std::string input_template;       // {} is replaced by the prompt; empty: no template
  Domains domains{};                // which teacher a row has
};

struct SupervisedLimits {
  std::uint64_t max_samples = 0;   // use only so many rows, from the first; 0: all
  std::int64_t tokens_max = 2048;  // prompt and longest answer of a row
  std::int64_t context = 2048;     // the model's context, in tokens
  std::int64_t vocab = 0;          // the model's vocabulary; token ids are below it
  bool drop_too_long = false;      // drop rows that are too long; else they are an error
  bool each_file = false;          // max_samples applies to each file separately
};

// One row, as views into the dataset. A sequence is a row of kind kAnswer or kText.
struct SupervisedRow {
  std::uint64_t id = 0;                  // the row's index in the dataset
  std::span<const std::int32_t> prompt;  // empty for sequences
  std::span<const std::int32_t> answer;  // the whole sequence, the better answer, the rated answer
  std::span<const std::int32_t> rejected;
  std::span<const std::uint8_t> learn;  // [answer] for sequences: 1 where the token is learned
  double margin = 0;
  bool desirable = true;
  std::string_view file;      // that the row is from
  std::uint64_t line = 0;     // in it; for .json its item
  std::uint32_t teacher = 0;  // of the row's domain, in the order of SupervisedColumns::domains
  // Of kSteps, one per learned token (a placeholder): the token to choose there or, with soft
  // labels, the probability of the first reward token. One of the two is empty.
  std::span<const std::int32_t> labels;
  std::span<const float> shares;

  std::int64_t tokens() const {
    return static_cast<std::int64_t>(prompt.size() + answer.size() + rejected.size());
  }
  std::string where() const;  // "train.jsonl:12"
};

// A row that is tokenised already: a sequence (`answer` alone, all but its first token learned), or
// a prompt with one answer or a pair.
struct TokenRow {
  Tokens prompt, answer, rejected;
};

class SupervisedDataset {
 public:
  // Makes a dataset of rows of the same kind, for benchmarks and tests.
  static SupervisedDataset of_tokens(std::span<const TokenRow> rows);

  // Reads `files`, paths separated by commas; `key` is the setting that holds them. Recognises rows
  // of messages, ShareGPT and Alpaca (row_format.hpp), except for kText. Null `chat`: the model has
  // no template. Errors name file and line. kData: a missing column, an empty answer, equal
  // answers, a row that is too long, a token outside the vocabulary, no rows. kConfig: no chat
  // template or no end token where a row needs one. kNotFound: no such file.
  static core::Result<SupervisedDataset> load(const std::string& files,
                                              std::string_view key,
                                              const SupervisedColumns& columns,
                                              const SupervisedLimits& limits,
                                              const text::Tokenizer& tokenizer,
                                              const text::ChatTemplate* chat);

  std::uint64_t size() const { return rows_.size(); }
  SupervisedRow row(std::uint64_t index) const;
  std::vector<SupervisedRow> rows(std::span<const std::uint64_t> indices) const;
  std::vector<SupervisedRow> all() const;
  std::string where(std::uint64_t index) const { return row(index).where(); }
  std::uint64_t dropped() const { return dropped_; }  // rows left out because they are too long
  // Notes for users about rows that were read by their format, not by the settings: one per format.
  const std::vector<std::string>& notes() const { return notes_; }
  // The number of rows that each file gave.
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
    std::uint32_t teacher = 0;
  };
  // Appends the tokens to tokens_ and a row to rows_; the caller fills in the rest of the row.
  Place& append(const Tokens& prompt, const Tokens& answer, const Tokens& rejected);

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> learn_;  // one flag per token; empty if rows are not sequences
  std::vector<Place> rows_;
  std::vector<std::string> files_;
  std::vector<std::uint64_t> file_rows_;
  std::uint64_t dropped_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace troupe::data
