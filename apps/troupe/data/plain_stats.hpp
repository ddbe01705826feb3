// Figures over rows as their file has them: columns, kinds of values, lengths, repeated rows. One
// thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_source.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace troupe::app {

class PlainStats {
 public:
  // With a tokenizer, tokens of texts and of lists of messages are counted, too; null: not. The
  // messages go through `chat`, if it is there. Both must outlive this object.
  PlainStats(const text::Tokenizer* tokenizer, const text::ChatTemplate* chat)
      : tokenizer_(tokenizer), chat_(chat) {}

  Result<void> add(const data::Json& row);

  std::uint64_t rows() const { return rows_; }
  std::vector<std::string> lines() const;
  nlohmann::ordered_json json() const;

 private:
  struct Column {
    std::map<std::string, std::uint64_t> kinds;  // "text": 12
    std::vector<std::uint64_t> bytes, tokens;    // of texts; tokens also of messages
  };
  Result<void> count_tokens(const data::Json& value, Column& column) const;

  const text::Tokenizer* tokenizer_;
  const text::ChatTemplate* chat_;
  std::vector<std::string> order_;  // of the columns
  std::map<std::string, Column> columns_;
  std::unordered_set<std::uint64_t> hashes_;
  std::uint64_t rows_ = 0;
};

}  // namespace troupe::app
