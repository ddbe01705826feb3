// How the scores of several rewards become one score: an expression over the rewards' names.
//
//   NAME                               weight x score of the reward
//   rest                               the sum of all rewards that are not named, in their order
//   2 * TERM                           a multiple
//   sum(TERM, ...), product(TERM, ...), min(TERM, ...)
//   mean_minus_std(K, TERM, TERM, ...) mean - K x standard deviation (of the population)
//   gate(NAME, BOUND, TERM)            TERM; if NAME's score is below BOUND, at most that score
//   domain(COLUMN, VALUE: TERM, ..., other: TERM)   by the column's value in the sample's row
//
// Names, values and columns with other characters than letters, digits and _-./ stand in "quotes".
// A formula without `rest` has the rewards that it does not name added to it. A score that it needs
// and that is missing makes the result missing: no part ever counts as 0. In a domain only the
// rewards of that domain's term are needed. A value type; pure; doubles in the order as written.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::formula {

class RewardFormula {
 public:
  // "" is `rest`. Errors (kConfig): what is wrong, and where in the text.
  static core::Result<RewardFormula> parse(const std::string& text);

  // Error (kConfig): it names a reward that is no member, or `rest` would be empty.
  core::Result<void> check(const std::vector<RewardMember>& members) const;

  // The score of a sample from those of the members, in their order. `row`: a JSON object with the
  // columns that the formula reads, or "". Error kData: why there is no score.
  core::Result<double> value(const std::vector<RewardMember>& members,
                             const std::vector<std::optional<double>>& scores,
                             const std::string& row) const;

  // By member, whether `value` reads its score for samples of this row.
  std::vector<bool> needed(const std::vector<RewardMember>& members, const std::string& row) const;

  const std::set<std::string>& names() const noexcept { return names_; }
  const std::vector<std::string>& columns() const noexcept { return columns_; }

 private:
  friend class FormulaParser;
  friend class FormulaValue;
  enum class Kind { kName, kRest, kScaled, kSum, kProduct, kMin, kSpread, kGate, kDomain };
  struct Term {
    Kind kind = Kind::kRest;
    std::string name{};  // of a reward, or a column
    double number = 0;   // factor, K or bound
    std::vector<Term> terms{};
    std::vector<std::string> values{};  // of a domain, by term; the last may be `other`
    bool has_other = false;
  };
  // The term of a domain for this row. Error kData: it has none.
  static core::Result<const Term*> chosen(const Term& domain, const std::string& row);
  void need(const Term& term,
            const std::vector<RewardMember>& members,
            const std::string& row,
            std::vector<bool>& needed) const;

  Term root_;
  bool has_rest_ = false;
  std::set<std::string> names_;
  std::vector<std::string> columns_;
};

}  // namespace troupe::actors::formula
