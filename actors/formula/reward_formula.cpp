#include "actors/formula/reward_formula.hpp"

#include "actors/formula/limits.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::actors::formula {
namespace {

bool is_word(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') ||
         std::string_view("_-./+").find(c) != std::string::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::optional<double> number_in(std::string_view word) {
  const auto number = core::number_of<double>(word);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace

// Recursive descent over the text.
class FormulaParser {
 public:
  explicit FormulaParser(const std::string& text) : text_(text) {}

  core::Result<RewardFormula> parse() {
    if (text_.size() > limits::kRewardFormula_bytes_max) {
      return core::fail(
          ErrorCode::kConfig, "the formula has " + std::to_string(text_.size()) + " bytes",
          "at most " + std::to_string(limits::kRewardFormula_bytes_max) + " are taken");
    }
    TROUPE_TRY_SET(formula_.root_, term(0));
    skip();
    if (at_ < text_.size()) return wrong("nothing more");
    return formula_;
  }

 private:
  using Term = RewardFormula::Term;
  using Kind = RewardFormula::Kind;

  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  core::Failure wrong(const std::string& expected) {
    skip();
    const std::string found =
        at_ < text_.size() ? "'" + text_.substr(at_, 12) + "'" : std::string("the end");
    return core::fail(ErrorCode::kConfig, "the formula '" + text_ + "' has " + found +
                                              " at character " + std::to_string(at_ + 1) +
                                              ", where " + expected + " was expected");
  }

  core::Result<std::string> word(const std::string& expected) {
    skip();
    quoted_ = at_ < text_.size() && text_[at_] == '"';
    if (quoted_) {
      const auto end = text_.find('"', at_ + 1);
      if (end == std::string::npos) return wrong("a closing quote");
      std::string inside = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return inside;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_]))
      ++at_;
    if (at_ == begin) return wrong(expected);
    return text_.substr(begin, at_ - begin);
  }
  core::Result<double> number(const std::string& expected) {
    skip();
    const std::size_t begin = at_;
    TROUPE_TRY_ASSIGN(written, word(expected));
    if (const auto value = number_in(written)) return *value;
    at_ = begin;
    return wrong(expected);
  }
  core::Result<void> comma() {
    if (take(',')) return {};
    return wrong("a comma");
  }

  core::Result<Term> term(std::size_t depth) {
    if (depth > limits::kRewardFormula_depth_max) return wrong("less nesting");
    const std::size_t begin = (skip(), at_);
    TROUPE_TRY_ASSIGN(first, word("a reward, a number or a function"));
    const bool plain = !quoted_;
    if (plain && take('(')) return call(first, begin, depth);
    if (plain && take('*')) {
      const auto factor = number_in(first);
      at_ = factor ? at_ : begin;
      if (!factor) return wrong("a number before '*'");
      Term scaled{.kind = Kind::kScaled, .number = *factor};
      TROUPE_TRY_ASSIGN(inner, term(depth + 1));
      scaled.terms.push_back(std::move(inner));
      return scaled;
    }
    if (plain && first == "rest") {
      formula_.has_rest_ = true;
      return Term{.kind = Kind::kRest};
    }
    formula_.names_.insert(first);
    return Term{.kind = Kind::kName, .name = std::move(first)};
  }

  core::Result<Term> call(const std::string& name, std::size_t begin, std::size_t depth) {
    Term made;
    if (name == "gate") {
      made.kind = Kind::kGate;
      TROUPE_TRY_SET(made.name, word("the reward that is the gate"));
      formula_.names_.insert(made.name);
      TROUPE_TRY(comma());
      TROUPE_TRY_SET(made.number, number("the gate's bound"));
      TROUPE_TRY(comma());
      return with_terms(std::move(made), 1, 1, depth);
    }
    if (name == "domain") return domain(depth);
    if (name == "mean_minus_std") {
      made.kind = Kind::kSpread;
      TROUPE_TRY_SET(made.number, number("the number of standard deviations"));
      TROUPE_TRY(comma());
      return with_terms(std::move(made), 2, SIZE_MAX, depth);
    }
    const std::pair<std::string_view, Kind> plain[] = {
        {"sum", Kind::kSum}, {"product", Kind::kProduct}, {"min", Kind::kMin}};
    for (const auto& [known, kind] : plain) {
      if (name != known) continue;
      made.kind = kind;
      return with_terms(std::move(made), 1, SIZE_MAX, depth);
    }
    at_ = begin;
    return wrong("sum, product, min, mean_minus_std, gate or domain before '('");
  }

  // Reads "TERM, ...)".
  core::Result<Term> with_terms(Term made, std::size_t least, std::size_t most, std::size_t depth) {
    do {
      TROUPE_TRY_ASSIGN(one, term(depth + 1));
      made.terms.push_back(std::move(one));
    } while (made.terms.size() < most && take(','));
    if (made.terms.size() < least) return wrong("another term");
    if (!take(')')) return wrong(made.terms.size() < most ? "a comma or ')'" : "')'");
    return made;
  }

  core::Result<Term> domain(std::size_t depth) {
    Term made{.kind = Kind::kDomain};
    TROUPE_TRY_SET(made.name, word("the column of the domain"));
    auto& columns = formula_.columns_;
    if (std::find(columns.begin(), columns.end(), made.name) == columns.end()) {
      columns.push_back(made.name);
    }
    TROUPE_TRY(comma());
    do {
      if (made.has_other) return wrong("')', since `other` comes last,");
      TROUPE_TRY_ASSIGN(value, word("a value of the column"));
      made.has_other = !quoted_ && value == "other";
      if (std::find(made.values.begin(), made.values.end(), value) != made.values.end()) {
        return wrong("another value than '" + value + "', which comes twice,");
      }
      made.values.push_back(std::move(value));
      if (!take(':')) return wrong("a ':'");
      TROUPE_TRY_ASSIGN(one, term(depth + 1));
      made.terms.push_back(std::move(one));
    } while (take(','));
    if (!take(')')) return wrong("a comma or ')'");
    return made;
  }

  const std::string text_;
  std::size_t at_ = 0;
  bool quoted_ = false;  // the last word was
  RewardFormula formula_;
};

// One evaluation.
class FormulaValue {
 public:
  FormulaValue(const RewardFormula& formula,
               const std::vector<RewardMember>& members,
               const std::vector<std::optional<double>>& scores,
               const std::string& row)
      : formula_(formula), members_(members), scores_(scores), row_(row) {}

  core::Result<double> whole() const {
    TROUPE_TRY_ASSIGN(value, of(formula_.root_));
    if (formula_.has_rest_ || !any_rest()) return value;
    TROUPE_TRY_ASSIGN(others, rest());
    return value + others;
  }

 private:
  using Term = RewardFormula::Term;
  using Kind = RewardFormula::Kind;

  core::Result<double> score(std::size_t member) const {
    if (scores_[member]) return *scores_[member];
    return core::fail(ErrorCode::kData, "reward " + members_[member].name + " gave no score");
  }
  core::Result<std::size_t> named(const std::string& name) const {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (members_[m].name == name) return m;
    return core::fail(ErrorCode::kData, "the formula names reward " + name + ", which is none");
  }
  bool is_rest(std::size_t member) const {
    return !formula_.names_.contains(members_[member].name);
  }
  bool any_rest() const {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (is_rest(m)) return true;
    return false;
  }
  core::Result<double> rest() const {
    double sum = 0;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (!is_rest(m)) continue;
      TROUPE_TRY_ASSIGN(one, score(m));
      sum += members_[m].weight * one;
    }
    return sum;
  }

  core::Result<double> of(const Term& term) const {
    switch (term.kind) {
      case Kind::kName: {
        TROUPE_TRY_ASSIGN(member, named(term.name));
        TROUPE_TRY_ASSIGN(one, score(member));
        return members_[member].weight * one;
      }
      case Kind::kRest:
        return rest();
      case Kind::kDomain: {
        TROUPE_TRY_ASSIGN(inner, RewardFormula::chosen(term, row_));
        return of(*inner);
      }
      default:
        break;
    }
    std::vector<double> values;
    for (const Term& inner : term.terms) {
      TROUPE_TRY_ASSIGN(one, of(inner));
      values.push_back(one);
    }
    return combined(term, values);
  }

  core::Result<double> combined(const Term& term, const std::vector<double>& values) const {
    double result = values.front();
    switch (term.kind) {
      case Kind::kScaled:
        return term.number * result;
      case Kind::kSum:
        for (std::size_t i = 1; i < values.size(); ++i)
          result += values[i];
        return result;
      case Kind::kProduct:
        for (std::size_t i = 1; i < values.size(); ++i)
          result *= values[i];
        return result;
      case Kind::kMin:
        return *std::min_element(values.begin(), values.end());
      case Kind::kSpread:
        return mean_minus_std(term.number, values);
      default: {
        TROUPE_TRY_ASSIGN(member, named(term.name));
        TROUPE_TRY_ASSIGN(gate, score(member));
        return gate < term.number ? std::min(result, gate) : result;
      }
    }
  }

  static double mean_minus_std(double k, const std::vector<double>& values) {
    const auto count = static_cast<double>(values.size());
    double sum = 0, squares = 0;
    for (const double value : values)
      sum += value;
    const double mean = sum / count;
    for (const double value : values)
      squares += (value - mean) * (value - mean);
    return mean - k * std::sqrt(squares / count);
  }

  const RewardFormula& formula_;
  const std::vector<RewardMember>& members_;
  const std::vector<std::optional<double>>& scores_;
  const std::string& row_;
};

core::Result<const RewardFormula::Term*> RewardFormula::chosen(const Term& domain,
                                                               const std::string& row) {
  const auto columns = parse::written_json<nlohmann::json>(row.empty() ? "{}" : row);
  const nlohmann::json value =
      columns.is_object() ? columns.value(domain.name, nlohmann::json()) : nlohmann::json();
  const std::string text = value.is_string() ? value.get<std::string>()
                           : value.is_null() ? std::string()
                                             : parse::written_text(value);
  for (std::size_t i = 0; i < domain.terms.size(); ++i) {
    const bool other = domain.has_other && i + 1 == domain.terms.size();
    if (other || (domain.values[i] == text && !value.is_null())) return &domain.terms[i];
  }
  return core::fail(ErrorCode::kData,
                    value.is_null()
                        ? "the row has no column '" + domain.name + "', which the formula reads"
                        : "the formula has no term for '" + text + "' in column '" + domain.name +
                              "', and no `other`");
}

void RewardFormula::need(const Term& term,
                         const std::vector<RewardMember>& members,
                         const std::string& row,
                         std::vector<bool>& needed) const {
  if (term.kind == Kind::kDomain) {
    if (const auto inner = chosen(term, row)) need(**inner, members, row, needed);
    return;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const bool read = term.kind == Kind::kRest ? !names_.contains(members[m].name)
                                               : !term.name.empty() && members[m].name == term.name;
    if (read) needed[m] = true;
  }
  for (const Term& inner : term.terms)
    need(inner, members, row, needed);
}

std::vector<bool> RewardFormula::needed(const std::vector<RewardMember>& members,
                                        const std::string& row) const {
  std::vector<bool> result(members.size(), false);
  need(root_, members, row, result);
  if (!has_rest_) need(Term{.kind = Kind::kRest}, members, row, result);
  return result;
}

core::Result<RewardFormula> RewardFormula::parse(const std::string& text) {
  return FormulaParser(text.empty() ? "rest" : text).parse();
}

core::Result<void> RewardFormula::check(const std::vector<RewardMember>& members) const {
  std::string known;
  bool any_rest = false;
  for (const RewardMember& member : members) {
    known += (known.empty() ? "" : ", ") + member.name;
    any_rest = any_rest || !names_.contains(member.name);
  }
  for (const std::string& name : names_) {
    const bool is_member =
        std::any_of(members.begin(), members.end(),
                    [&name](const RewardMember& member) { return member.name == name; });
    if (is_member) continue;
    return core::fail(ErrorCode::kConfig,
                      "the formula names reward '" + name + "', which the run does not have",
                      "its rewards are: " + known);
  }
  if (!has_rest_ || any_rest || members.empty()) return {};
  return core::fail(ErrorCode::kConfig,
                    "the formula has `rest`, but names all rewards, so that nothing is left for it",
                    "leave `rest` out");
}

core::Result<double> RewardFormula::value(const std::vector<RewardMember>& members,
                                          const std::vector<std::optional<double>>& scores,
                                          const std::string& row) const {
  TROUPE_TRY_ASSIGN(result, FormulaValue(*this, members, scores, row).whole());
  if (std::isfinite(result)) return result;
  return core::fail(ErrorCode::kData, "the formula of its rewards is not finite");
}

}  // namespace troupe::actors::formula
