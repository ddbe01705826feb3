#include "actors/reward/rule_reward.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <regex>
#include <string_view>

namespace troupe::actors::reward {
namespace {

// The names of the rules, by RuleKind.
constexpr std::array<const char*, 3> kRuleNames = {"exact", "last_number", "regex"};

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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

RewardScore exact(const std::string& label, const std::string& response) {
  if (!trimmed(label).empty()) return {first_line(response) == trimmed(label) ? 1.0 : 0.0, ""};
  return {std::nullopt, "the row has no label to compare with (--data.label_key)"};
}

RewardScore same_last_number(const std::string& label, const std::string& response) {
  const auto wanted = last_number(label);
  if (!wanted) return {std::nullopt, "the label '" + label + "' holds no number"};
  const auto found = last_number(response);
  return {found && *found == *wanted ? 1.0 : 0.0, ""};
}

RewardScore matches(const std::regex& pattern, const std::string& label, std::string response) {
  if (response.size() > kRegexText_bytes_max) {
    response.erase(0, response.size() - kRegexText_bytes_max);
  }
  try {
    std::smatch match;
    if (!std::regex_search(response, match, pattern)) return {0.0, ""};
    if (match.size() < 2 || trimmed(label).empty()) return {1.0, ""};
    const std::string group = match[1].str();
    return {trimmed(group) == trimmed(label) ? 1.0 : 0.0, ""};
  } catch (const std::regex_error& error) {
    return {std::nullopt, std::string("the pattern ran into a limit: ") + error.what()};
  }
}

// Judges each sample by itself.
class RuleReward final : public RewardSource {
 public:
  using Rule = std::function<RewardScore(const std::string& label, const std::string& response)>;
  RuleReward(RuleKind kind, Rule rule) : kind_(kind), rule_(std::move(rule)) {}

  std::string name() const override { return kRuleNames[static_cast<std::size_t>(kind_)]; }
  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration) override {
    std::vector<RewardScore> scores;
    for (const RewardGroup& group : groups) {
      for (const RewardSample& sample : group.samples)
        scores.push_back(rule_(group.label, sample.response));
    }
    return scores;
  }

 private:
  const RuleKind kind_;
  const Rule rule_;
};

}  // namespace

std::optional<double> last_number(const std::string& text) {
  std::size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1]))
    --end;
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
  if (kind == RuleKind::kExact) return {std::make_unique<RuleReward>(kind, exact)};
  if (kind == RuleKind::kLastNumber) return {std::make_unique<RuleReward>(kind, same_last_number)};
  if (pattern.empty()) {
    return core::fail(core::ErrorCode::kConfig,
                      "reward.rule regex needs a pattern: set --reward.rule_pattern");
  }
  try {
    auto rule = [regex = std::regex(pattern)](const std::string& label,
                                              const std::string& response) {
      return matches(regex, label, response);
    };
    return {std::make_unique<RuleReward>(kind, std::move(rule))};
  } catch (const std::regex_error& error) {
    return core::fail(
        core::ErrorCode::kConfig,
        "reward.rule_pattern '" + pattern + "' is not a regular expression: " + error.what());
  }
}

std::optional<RuleKind> rule_kind(const std::string& name) {
  const auto found = std::find(kRuleNames.begin(), kRuleNames.end(), name);
  if (found == kRuleNames.end()) return std::nullopt;
  return static_cast<RuleKind>(found - kRuleNames.begin());
}

}  // namespace troupe::actors::reward
