// A tokenised dataset for supervised training: answers and dialogues (sft), texts (pretrain), pairs
// of a better and a worse answer (rm, dpo, ...), rated answers (kto), or texts with a label for
// each of their steps (prm). All tokens lie in one array: a row takes 56 bytes, and 4 bytes per
// token, or 5 with learn flags, and 4 per label. Built once, then read-only. Bounds: those of
// row_source.hpp, and SupervisedLimits.
#pragma once

#include "runtime/config/key_types.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/dialogue_coder.hpp"
#include "runtime/data/domains.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

enum class RowKind { kAnswer, kText, kPair, kRated, kSteps };

// What kSteps reads of a text: the token after each step, and the tokens that label a step, the
// best first (empty: any token labels).
struct StepMarks {
  std::string placeholder;
  std::int32_t placeholder_id = -1;
  std::vector<std::string> rewards;
  std::vector<std::int32_t> reward_ids;  // one for each of `rewards`
  std::string separator;                 // between two steps of a row that lists them
};

using config::Int, config::Text;

struct SupervisedColumns {
  RowKind kind = RowKind::kAnswer;
  // A missing column may be another of default_columns.hpp.
#define KEYS "runtime/data/data_keys.def"
#define BOTH
#include "runtime/config/fill.def"
  StepMarks steps;             // of kSteps
  Domains domains{};           // which teacher a row has
  std::string category_key{};  // of the column with a row's category; empty: rows have none
};

struct SupervisedLimits {
#define KEYS "runtime/data/data_keys.def"
#define PART limits
#include "runtime/config/fill.def"
  std::int64_t context = 2048;  // the model's context, in tokens
  std::int64_t vocab = 0;       // the model's vocabulary; token ids are below it
  bool each_set = false;        // max_samples applies to each set separately
};

// One row, as views into the dataset. A sequence is a row of kind kAnswer, kText or kSteps.
struct SupervisedRow {
  std::uint64_t id = 0;                  // the row's index in the dataset
  std::span<const std::int32_t> prompt;  // empty for sequences
  std::span<const std::int32_t> answer;  // the whole sequence, the better answer, the rated answer
  std::span<const std::int32_t> rejected;
  std::span<const std::uint8_t>
      learn;  // [answer] for sequences: 1 where the token (of kSteps: a label) is learned
  double margin = 0;
  bool desirable = true;
  std::string_view file;        // that the row is from
  std::uint64_t line = 0;       // line in the file; in .json, the item
  std::uint32_t teacher = 0;    // of the row's domain, in the order of SupervisedColumns::domains
  std::string_view category{};  // of a held-out row; empty: none
  // For kSteps, one per learned token (a placeholder): the token to choose there or, with soft
  // labels, the probability of the first reward token. One of the two is empty.
  std::span<const std::int32_t> labels;
  std::span<const float> shares;

  std::int64_t tokens() const {
    return static_cast<std::int64_t>(prompt.size() + answer.size() + rejected.size());
  }
  std::string where() const;  // "train.jsonl:12"
};

// A row that is tokenised already: a sequence (`answer` alone, all but its first token learned), a
// prompt with one answer or a pair, or a sequence with labels at the tokens with `learn` set.
struct TokenRow {
  Tokens prompt, answer, rejected;
  std::vector<std::uint8_t> learn = {};
  Tokens labels = {};
};

class SupervisedDataset {
 public:
  // Makes a dataset of rows of the same kind, for benchmarks and tests.
  static SupervisedDataset of_tokens(std::span<const TokenRow> rows);

  // Reads `files`, as table_list.hpp has them; `key` is the setting that holds them. Recognises
  // rows of messages, ShareGPT and Alpaca (row_format.hpp), except for kText and kSteps. Null
  // `chat`: the model has no template. Errors name file and line. kData: a missing column, an empty
  // answer, equal answers, labels that do not fit the placeholders, a row that is too long, a token
  // outside the vocabulary, more than kCategories_max categories, no rows. kConfig: no chat
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
  // The first row of each run of neighbours with one prompt; a run has at most `longest` rows.
  std::vector<std::uint64_t> prompt_runs(std::uint64_t longest) const;
  std::string where(std::uint64_t index) const { return row(index).where(); }
  std::uint64_t dropped() const { return dropped_; }  // rows left out because they are too long
  // Notes for users about rows that were read by their format, not by the settings: one per format.
  const std::vector<std::string>& notes() const { return notes_; }
  // That the chat template shows nothing of the rows' tools, one of the notes; empty: it does.
  const std::string& tools_warning() const { return tools_warning_; }
  bool has_chats() const { return has_chats_; }  // the template rendered at least one row
  // The number of rows that each set gave (table_list.hpp).
  const std::vector<std::uint64_t>& set_rows() const { return set_rows_; }
  std::uint64_t tokens() const { return tokens_.size(); }

 private:
  friend class SupervisedLoader;
  struct Place {
    std::uint64_t begin = 0;  // in tokens_
    std::uint32_t prompt = 0, answer = 0, rejected = 0;
    std::uint32_t file = 0;
    std::uint64_t line = 0;
    std::uint64_t labels = 0;  // the row's first, in labels_ or, if `soft`, shares_
    std::uint32_t label_count = 0;
    double margin = 0;
    bool desirable = true;
    bool soft = false;
    std::uint32_t teacher = 0;
    std::uint32_t category = 0;  // place in categories_
  };
  // Appends the tokens to tokens_ and a row to rows_; the caller fills in the rest of the row.
  Place& append(const TokenRow& row);

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> learn_;  // one flag per token; empty if rows are not sequences
  std::vector<std::int32_t> labels_;
  std::vector<float> shares_;
  std::vector<Place> rows_;
  std::vector<std::string> files_;
  std::vector<std::string> categories_ = {""};  // the first: none
  std::vector<std::uint64_t> set_rows_;
  std::uint64_t dropped_ = 0;
  bool has_chats_ = false;
  std::vector<std::string> notes_;
  std::string tools_warning_;
};

}  // namespace troupe::data
