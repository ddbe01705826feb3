#include "apps/troupe/completion/candidates.hpp"

#include "apps/cli/flags.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/data/data_words.hpp"
#include "apps/troupe/plan/plan_flags.hpp"
#include "runtime/config/method.hpp"
#include "runtime/config/table.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

namespace troupe::app {
namespace {

using Names = std::vector<std::string_view>;

// What follows a command: its own words, and whether keys of a configuration follow these.
struct Shape {
  std::string_view command;
  Names words;  // empty: its flags follow at once
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"config", {"show", "validate", "docs", "from-trl", "from-verl", "from-openrlhf"}},
      {"attach", {"reward", "environment"}},
      {"detach", {"reward", "environment"}},
      {"re-weight", {"reward"}},
      {"data", {"preview", "stats", "check", "convert", "arithmetic"}},
      {"model", {"random"}},
      {"ca", {"init"}},
      {"completion", {"bash", "zsh"}},
      {"train", {std::begin(config::kMethodNames), std::end(config::kMethodNames)}},
      {"init", {std::begin(config::kMethodNames), std::end(config::kMethodNames)}},
  };
  return all;
}

// Commands that are no lists of flags; completion knows none of theirs.
constexpr std::string_view kWithoutFlags[] = {"bench", "completion", "version"};

bool is_key_command(std::string_view command, std::string_view word) {
  return command == "train" || command == "init" || command == "plan" ||
         (command == "config" && (word == "show" || word == "validate")) ||
         (command == "data" && (word == "preview" || word == "stats" || word == "check"));
}

// The method of the keys that may stand there.
config::Methods method_of_words(cli::Words words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i == 1 && (words[0] == "train" || words[0] == "init"))
      return config::method_named(words[i]);
    if (words[i] == "--method" && i + 1 < words.size()) return config::method_named(words[i + 1]);
  }
  return config::kAllMethods;
}

// Flags that commands read themselves, which FlagCollector does not see.
std::vector<cli::FlagName> own_flags(std::string_view command, std::string_view word) {
  if (command == "train") return {{"--help", false}, {"--help-all", false}};
  if (command == "config" && is_key_command(command, word))
    return {{"--help", false}, {"--method", true}};
  if (command == "data" && is_key_command(command, word)) {
    DataWords words;
    std::vector<cli::FlagName> flags = cli::flag_names(data_flags(words));
    flags.push_back({"--help", false});
    return flags;
  }
  if (command == "doctor")
    return {{"--model", true},
            {"--run-path", true},
            {"--gpus", false},
            {"--json", false},
            {"--help", false}};
  return {{"--help", false}};
}

// The flags of a command: it is called and shows them instead of doing its work.
std::vector<cli::FlagName> flags_of(cli::Words words) {
  const std::string_view command = words[0];
  const auto shape = std::ranges::find(shapes(), command, &Shape::command);
  const bool divided = shape != shapes().end();
  const std::string_view word = words.size() > 1 ? std::string_view(words[1]) : "";
  std::vector<cli::FlagName> flags = own_flags(command, word);
  if (std::ranges::count(kWithoutFlags, command) > 0 || command == "train" || command == "doctor")
    return flags;
  if (divided && std::ranges::count(shape->words, word) == 0) return flags;
  if (command == "config" && !word.starts_with("from-")) return flags;
  if (command == "data" && is_key_command(command, word)) return flags;
  std::vector<std::string> call = {std::string(command)};
  if (divided || (command == "node" && word == "drain")) call.emplace_back(word);
  call.emplace_back("--help");
  const cli::FlagCollector collector;
  static_cast<void>(run_command(call));
  flags.insert(flags.end(), collector.names().begin(), collector.names().end());
  return flags;
}

class Completion {
 public:
  explicit Completion(cli::Words words) : words_(words) {}

  Candidates all() {
    if (words_.size() < 2) return of_names(command_names());
    const std::string& command = words_[0];
    const auto shape = std::ranges::find(shapes(), command, &Shape::command);
    if (words_.size() == 2 && shape != shapes().end() && !now().starts_with("-"))
      return of_names(shape->words);
    if (command == "train" && before() == "--help") return sections();
    keys_ = is_key_command(command, words_[1]);
    flags_ = flags_of(words_.first(words_.size() - 1));
    if (before().starts_with("--") && takes_value(before())) return values();
    if (now().starts_with("-")) return names();
    out_.files = command != "version" && command != "completion";
    return std::move(out_);
  }

 private:
  std::string_view now() const { return words_.back(); }
  std::string_view before() const {
    return words_.size() < 2 ? std::string_view() : words_[words_.size() - 2];
  }
  void offer(std::string_view word) {
    if (word.starts_with(now())) out_.words.emplace_back(word);
  }
  Candidates of_names(const Names& names) {
    for (const std::string_view name : names)
      offer(name);
    return std::move(out_);
  }

  const config::Row* key_of(std::string_view flag) const {
    const config::Row* const row = keys_ ? session::run_table().find_any(flag.substr(2)) : nullptr;
    return row;
  }
  bool takes_value(std::string_view flag) const {
    if (const auto own = std::ranges::find(flags_, flag, &cli::FlagName::name); own != flags_.end())
      return own->takes_value;
    const config::Row* const row = key_of(flag);
    return row != nullptr && !row->is<bool>();
  }

  Candidates values() {
    const config::Row* const row = key_of(before());
    if (before() == "--method")
      return of_names({std::begin(config::kMethodNames), std::end(config::kMethodNames)});
    if (row == nullptr || row->words.empty()) {
      out_.files = true;
      return std::move(out_);
    }
    for (const core::Choice& choice : row->words)
      offer(choice.name);
    return std::move(out_);
  }

  // Flags and keys.
  Candidates names() {
    for (const cli::FlagName& flag : flags_)
      offer(flag.name);
    if (!keys_) return std::move(out_);
    const config::Methods method = method_of_words(words_.first(words_.size() - 1));
    for (const config::Row& row : session::run_table().rows()) {
      if (row.name != "method" && row.is_read_by(method)) offer("--" + row.name);
    }
    return std::move(out_);
  }

  Candidates sections() {
    std::string_view last;
    for (const config::Row& row : session::run_table().rows()) {
      if (row.section() == last || !row.is_read_by(method_of_words(words_))) continue;
      last = row.section();
      offer(last);
    }
    return std::move(out_);
  }

  cli::Words words_;
  bool keys_ = false;
  std::vector<cli::FlagName> flags_;
  Candidates out_;
};

// `--key`, `=`, `value` as `--key`, `value`.
std::vector<std::string> without_equals(cli::Words words) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool joins = words[i] == "=" && !out.empty() && out.back().starts_with("--");
    if (!joins) out.push_back(words[i]);
    if (joins && i + 1 == words.size()) out.emplace_back();
  }
  return out;
}

}  // namespace

Candidates candidates_for(cli::Words words) {
  const std::vector<std::string> all = without_equals(words);
  if (all.empty()) return {};
  return Completion(all).all();
}

}  // namespace troupe::app
