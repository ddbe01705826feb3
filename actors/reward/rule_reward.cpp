#include "actors/reward/rule_reward.hpp"

#include <charconv>
#include <regex>
#include <string_view>

namespace troupe::actors {
namespace {

// std::regex recurses per character; a longer response is judged by its last part.
constexpr std::size_t kRegexText_bytes_max = 8192;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string_view first_line(std::string_view text) {
  const auto start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return {};
  text.remove_prefix(start);
  return trimmed(text.substr(0, text.find('\n')));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Each sample by itself.
class Rule : public RewardSource {
 public:
  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration) override {
    std::vector<RewardScore> scores;
    for (const RewardGroup& group : groups) {
      for (const RewardSample& sample : group.samples)
        scores.push_back(score_one(group.label, sample.response));
    }
    return scores;
  }

 protected:
  virtual RewardScore score_one(const std::string& label, const std::string& response) const = 0;
};

class ExactRule final : public Rule {
 public:
  std::string name() const override { return "exact"; }

 private:
  RewardScore score_one(const std::string& label, const std::string& response) const override {
    if (!trimmed(label).empty()) return {first_line(response) == trimmed(label) ? 1.0 : 0.0, ""};
    return {std::nullopt, "the row has no label to compare with (--data.label_key)"};
  }
};

class LastNumberRule final : public Rule {
 public:
  std::string name() const override { return "last_number"; }

 private:
  RewardScore score_one(const std::string& label, const std::string& response) const override {
    const auto wanted = last_number(label);
    if (!wanted) return {std::nullopt, "the label '" + label + "' holds no number"};
    const auto found = last_number(response);
    return {found && *found == *wanted ? 1.0 : 0.0, ""};
  }
};

class RegexRule final : public Rule {
 public:
  explicit RegexRule(std::regex pattern) : pattern_(std::move(pattern)) {}
  std::string name() const override { return "regex"; }

 private:
  RewardScore score_one(const std::string& label, const std::string& response) const override {
    std::string text = response;
    if (text.size() > kRegexText_bytes_max) text.erase(0, text.size() - kRegexText_bytes_max);
    try {
      std::smatch match;
      if (!std::regex_search(text, match, pattern_)) return {0.0, ""};
      if (match.size() < 2 || trimmed(label).empty()) return {1.0, ""};
      const std::string group = match[1].str();
      return {trimmed(group) == trimmed(label) ? 1.0 : 0.0, ""};
    } catch (const std::regex_error& error) {
      return {std::nullopt, std::string("the pattern ran into a limit: ") + error.what()};
    }
  }

  std::regex pattern_;
};

}  // namespace

std::optional<double> last_number(const std::string& text) {
  std::size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  if (end == 0) return std::nullopt;
  std::size_t begin = end;
  bool point = false;
  while (begin > 0) {
    const char c = text[begin - 1];
    if (c == '.') {
      if (point) break;
      point = true;
    } else if (c == ',') {
      if (begin < 2 || !is_digit(text[begin - 2])) break;
    } else if (!is_digit(c)) {
      break;
    }
    --begin;
  }
  std::string digits;
  if (begin > 0 && text[begin - 1] == '-') {
    // "7-3" is a difference, "= -3" a negative number.
    const bool binary = begin > 1 && (is_digit(text[begin - 2]) || text[begin - 2] == ')');
    if (!binary) digits = "-";
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (text[i] != ',') digits += text[i];
  }
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

core::Result<std::unique_ptr<RewardSource>> make_rule_reward(RuleKind kind,
                                                             const std::string& pattern) {
  switch (kind) {
    case RuleKind::kExact: return {std::make_unique<ExactRule>()};
    case RuleKind::kLastNumber: return {std::make_unique<LastNumberRule>()};
    case RuleKind::kRegex: break;
  }
  if (pattern.empty()) {
    return core::fail(core::ErrorCode::kConfig,
                      "reward.rule regex needs a pattern: set --reward.rule_pattern");
  }
  try {
    return {std::make_unique<RegexRule>(std::regex(pattern))};
  } catch (const std::regex_error& error) {
    return core::fail(core::ErrorCode::kConfig, "reward.rule_pattern '" + pattern +
                                                    "' is not a regular expression: " +
                                                    error.what());
  }
}

std::optional<RuleKind> rule_kind(const std::string& name) {
  if (name == "exact") return RuleKind::kExact;
  if (name == "last_number") return RuleKind::kLastNumber;
  if (name == "regex") return RuleKind::kRegex;
  return std::nullopt;
}

}  // namespace troupe::actors
