#include "actors/reward/rubric.hpp"

#include "runtime/config/flat_yaml.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/text/messages.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>

namespace troupe::actors::reward {
namespace {

// std::regex recurses per character; of a longer answer the last part is read.
constexpr std::size_t kAnswerRead_bytes_max = 8192;

constexpr std::string_view kNumberPattern = R"(\[\[\s*(-?\d+(?:\.\d+)?)\s*\]\])";
constexpr std::string_view kVerdictPattern = R"(\[\[\s*(A|B|C|tie|Tie)\s*\]\])";

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// Calls `text` for what stands between placeholders and `name` for each "{word}". "{{word}}" is the
// text "{word}", and any other bracket stands for itself.
template <class Text, class Name>
void walk(std::string_view prompt, const Text& text, const Name& name) {
  std::size_t begin = 0;
  for (std::size_t at = prompt.find('{'); at != prompt.npos; at = prompt.find('{', at)) {
    const bool twice = prompt.substr(at).starts_with("{{");
    const std::size_t word = at + (twice ? 2 : 1);
    std::size_t end = word;
    while (end < prompt.size() && is_name(prompt[end]))
      ++end;
    const std::string_view close = twice ? "}}" : "}";
    if (end == word || !prompt.substr(end).starts_with(close)) {
      ++at;
      continue;
    }
    text(prompt.substr(begin, at - begin));
    if (twice) {
      text(prompt.substr(at + 1, end - at));
    } else {
      name(prompt.substr(word, end - word));
    }
    at = begin = end + close.size();
  }
  text(prompt.substr(begin));
}

class RubricReader {
 public:
  explicit RubricReader(const std::string& where) : where_(where) {}

  Result<Rubric> read(const std::vector<config::Setting>& settings) {
    for (const config::Setting& setting : settings)
      TROUPE_TRY(take(setting));
    if (!kind_given_) return bad("kind", "is not set", "expected pointwise, pairwise or reference");
    TROUPE_TRY(check_template());
    const bool pointwise = rubric_.kind == RubricKind::kPointwise;
    if (pattern_.empty()) pattern_ = pointwise ? kNumberPattern : kVerdictPattern;
    try {
      rubric_.pattern = std::regex(pattern_);
    } catch (const std::regex_error& error) {
      return bad("pattern", "'" + pattern_ + "' is not a regular expression: " + error.what());
    }
    if (rubric_.pattern.mark_count() == 0) {
      return bad("pattern", "'" + pattern_ + "' has no group", "put what is read in brackets ()");
    }
    if (pointwise && !range_given_) return bad("range", "is not set", "expected [lowest, highest]");
    if (!pointwise && range_given_)
      return bad("range", "is read with kind pointwise", "leave it out");
    if (rubric_.opponents != 0 && rubric_.kind != RubricKind::kPairwise) {
      return bad("opponents", "is read with kind pairwise", "leave it out");
    }
    return std::move(rubric_);
  }

 private:
  core::Failure bad(const std::string& key,
                    const std::string& why,
                    std::string_view advice = {}) const {
    return core::fail(ErrorCode::kConfig, where_ + ": " + key + ": " + why, advice);
  }

  Result<void> take(const config::Setting& setting) {
    struct NumberKey {
      const char* name;
      std::int64_t Rubric::*place;
      std::int64_t min, max;
    };
    constexpr NumberKey kNumbers[] = {{"max_tokens", &Rubric::max_tokens, 1, 1 << 20},
                                      {"tries", &Rubric::tries, 1, 20},
                                      {"opponents", &Rubric::opponents, 0, 4096},
                                      {"seed", &Rubric::seed, 0, 1'000'000'000}};
    const std::string& key = setting.name;
    if (key == "range") return take_range(setting);
    if (setting.is_list || setting.values.size() != 1) return bad(key, "expected one value");
    const std::string& value = setting.values.front();
    if (key == "kind") return take_kind(value);
    if (key == "system") return rubric_.system = value, Result<void>();
    if (key == "prompt") return rubric_.prompt = value, Result<void>();
    if (key == "pattern") return pattern_ = value, Result<void>();
    if (key == "temperature") return number(key, value, 0, 10, rubric_.temperature);
    if (key == "retry_temperature") return number(key, value, 0, 10, rubric_.retry_temperature);
    for (const NumberKey& one : kNumbers) {
      double wanted = 0;
      if (key != one.name) continue;
      TROUPE_TRY(
          number(key, value, static_cast<double>(one.min), static_cast<double>(one.max), wanted));
      if (wanted != std::floor(wanted)) return bad(key, "expected a whole number");
      rubric_.*one.place = static_cast<std::int64_t>(wanted);
      return {};
    }
    return bad(key, "is not a key of a rubric",
               "it has kind, system, prompt, pattern, range, temperature, retry_temperature, "
               "max_tokens, tries, opponents and seed");
  }

  Result<void> take_kind(const std::string& word) {
    constexpr std::array<std::string_view, 3> kWords = {"pointwise", "pairwise", "reference"};
    const auto found = std::find(kWords.begin(), kWords.end(), word);
    if (found == kWords.end()) {
      return bad("kind", "'" + word + "'", "expected pointwise, pairwise or reference");
    }
    rubric_.kind = static_cast<RubricKind>(found - kWords.begin());
    kind_given_ = true;
    return {};
  }

  Result<void> take_range(const config::Setting& setting) {
    if (setting.values.size() != 2) return bad("range", "expected two numbers: [lowest, highest]");
    TROUPE_TRY(number("range", setting.values[0], -1e9, 1e9, rubric_.low));
    TROUPE_TRY(number("range", setting.values[1], -1e9, 1e9, rubric_.high));
    if (rubric_.low >= rubric_.high)
      return bad("range", "the first number must be below the second");
    range_given_ = true;
    return {};
  }

  Result<void> number(
      const std::string& key, const std::string& text, double min, double max, double& out) const {
    const auto given = core::number_of<double>(text);
    if (given && *given >= min && *given <= max) {
      out = *given;
      return {};
    }
    return bad(key,
               "'" + text + "': " + core::printed("expected a number from %g to %g", min, max));
  }

  Result<void> check_template() const {
    if (rubric_.prompt.empty()) return bad("prompt", "is not set", "it is what the judge is asked");
    const bool pointwise = rubric_.kind == RubricKind::kPointwise;
    std::vector<std::string> seen;
    walk(
        rubric_.prompt, [](std::string_view) {},
        [&](std::string_view name) { seen.emplace_back(name); });
    const auto has = [&](const char* name) { return std::ranges::count(seen, name) > 0; };
    for (const std::string& name : seen) {
      const bool known = name == "prompt" || name == "label" || (pointwise && name == "response") ||
                         (!pointwise && (name == "response_a" || name == "response_b"));
      if (known) continue;
      return bad("prompt",
                 "there is no {" + name + "}: this kind has {prompt}, {label} and " +
                     (pointwise ? "{response}" : "{response_a}, {response_b}"),
                 "write {{" + name + "}} for the text itself");
    }
    if (pointwise ? has("response") : has("response_a") && has("response_b")) return {};
    return bad("prompt", pointwise ? "has no {response} where the answer would go"
                                   : "needs both {response_a} and {response_b}");
  }

  const std::string& where_;
  Rubric rubric_;
  std::string pattern_;
  bool kind_given_ = false, range_given_ = false;
};

// Group 1 of the last match, or nullopt.
std::optional<std::string> last_match(const std::regex& pattern, std::string answer) {
  if (answer.size() > kAnswerRead_bytes_max) {
    answer.erase(0, answer.size() - kAnswerRead_bytes_max);
  }
  std::optional<std::string> found;
  try {
    for (std::sregex_iterator at(answer.begin(), answer.end(), pattern), end; at != end; ++at)
      found = (*at)[1].str();
  } catch (const std::regex_error&) {
    return std::nullopt;  // it ran into a limit: the answer does not parse
  }
  return found;
}

}  // namespace

std::string Rubric::ask(const RubricTexts& texts) const {
  std::string out;
  walk(
      prompt, [&](std::string_view text) { out += text; },
      [&](std::string_view name) {
        out += name == "prompt"       ? texts.prompt
               : name == "label"      ? texts.label
               : name == "response_b" ? texts.second
                                      : texts.first;
      });
  return out;
}

std::optional<double> Rubric::number(const std::string& answer) const {
  const auto text = last_match(pattern, answer);
  if (!text) return std::nullopt;
  const auto value = core::number_of<double>(*text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<double> Rubric::verdict(const std::string& answer) const {
  auto word = last_match(pattern, answer);
  if (!word) return std::nullopt;
  std::ranges::transform(*word, word->begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (*word == "a") return 1.0;
  if (*word == "b") return 0.0;
  if (*word == "c" || *word == "tie") return 0.5;
  return std::nullopt;
}

Result<Rubric> parse_rubric(const std::string& text, const std::string& where) {
  TROUPE_TRY_ASSIGN(settings, config::read_flat_yaml(text, where));
  return RubricReader(where).read(settings);
}

Result<Rubric> read_rubric(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return core::fail(ErrorCode::kConfig, "there is no rubric " + file,
                      "change --reward.judge_rubric");
  }
  TROUPE_TRY_ASSIGN(text, store::read_all(file));
  return parse_rubric(text, file);
}

std::string plain_prompt(const RewardGroup& group) {
  if (group.messages.empty()) return group.prompt;
  const auto messages = parse::bounded_json<nlohmann::ordered_json>(
      group.messages, {.numbers = parse::Numbers::kAsWritten});
  if (!messages || !messages->is_array()) return group.prompt;
  std::string out;
  for (const nlohmann::ordered_json& message : *messages) {
    if (!message.is_object() || !message.contains("content")) return group.prompt;
    // What a call says stands in the rendered prompt alone.
    if (message.contains("tool_calls")) return group.prompt;
    const nlohmann::ordered_json& content = message["content"];
    const bool words = content.is_string() || text::has_text_parts(message);
    const std::string text = words ? text::text_of_content(message) : parse::written_text(content);
    if (messages->size() == 1) return text;
    const auto role = message.find("role");
    const bool named = role != message.end() && role->is_string();
    out += (out.empty() ? "" : "\n\n") + (named ? role->get<std::string>() : "user") + ": " + text;
  }
  return out.empty() ? group.prompt : out;
}

}  // namespace troupe::actors::reward
