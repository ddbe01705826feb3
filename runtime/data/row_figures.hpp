// Figures over the rows of a data set as a method reads them, and what they warn of: lengths,
// repeated rows, labels, and whether length alone tells good answers from bad ones. Holds 8 bytes
// for each length and 16 for each row. One thread.
#pragma once

#include "runtime/data/supervised_dataset.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace troupe::data {

// Nearest-rank percentiles of a list of lengths; all 0 for none.
struct Spread {
  std::uint64_t least = 0, p50 = 0, p90 = 0, p99 = 0, most = 0, sum = 0;
};
Spread spread_of(std::vector<std::uint64_t> lengths);

class RowFigures {
 public:
  // The parts of a row whose tokens are counted. kWhole is the longest sequence of the row.
  enum Part { kWhole, kPrompt, kAnswer, kRejected, kParts };

  // `kind`: of the rows; nullopt: prompts. `longest`: tokens of kWhole that fit, or 0.
  RowFigures(std::optional<RowKind> kind, std::uint64_t longest);

  void add(const SupervisedRow& row);

  std::uint64_t rows() const { return rows_; }
  const std::vector<std::uint64_t>& lengths(Part part) const { return lengths_[part]; }
  std::uint64_t repeated_rows() const { return rows_ - all_.size(); }
  std::uint64_t repeated_prompts() const { return rows_ - prompts_.size(); }
  std::uint64_t good() const { return good_; }      // of rated rows
  std::uint64_t longer() const { return longer_; }  // pairs whose chosen answer is the longer one
  std::uint64_t shorter() const { return shorter_; }
  std::uint64_t too_long() const { return too_long_; }
  std::uint64_t tokens_over() const { return tokens_over_; }  // behind the longest that fits
  // Between the length of an answer and its label, of rated rows; 0 if one of them is constant.
  double length_and_label() const;

  // Rows of `other` whose prompt is here, too.
  std::uint64_t shared_with(const RowFigures& other) const;
  // What to say of held-out rows that share prompts with these; empty: none do.
  std::string warning_of_shared(const RowFigures& held_out) const;

  // What a user should know before training with these rows, a sentence each.
  std::vector<std::string> warnings() const;

 private:
  const std::optional<RowKind> kind_;
  const std::uint64_t longest_;
  std::array<std::vector<std::uint64_t>, kParts> lengths_;
  std::unordered_set<std::uint64_t> all_, prompts_;  // hashes of tokens
  std::vector<std::uint64_t> row_prompts_;           // [rows]
  std::vector<bool> labels_;                         // [rows] of rated rows
  std::uint64_t rows_ = 0, good_ = 0, longer_ = 0, shorter_ = 0, too_long_ = 0, tokens_over_ = 0;
};

}  // namespace troupe::data
