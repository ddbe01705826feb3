#include "apps/cli/flags.hpp"

#include "runtime/core/bool_word.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <type_traits>

namespace troupe::cli {
namespace {

void add(CLI::App& app, const Flag& flag) {
  const std::string name(flag.name), help(flag.help);
  std::visit(
      [&](auto* target) {
        using Target = std::remove_pointer_t<decltype(target)>;
        CLI::Option* option = nullptr;
        if constexpr (std::is_same_v<Target, bool>) {
          option = app.add_flag(name, *target, help);
        } else if constexpr (std::is_same_v<Target, std::vector<std::string>>) {
          option = app.add_option(name, *target, help);
          option->type_name(flag.words == 1 ? "TEXT (may be repeated)" : "TEXT");
          option->type_size(1)->expected(flag.words);
          if (flag.words == 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        } else if constexpr (std::is_same_v<Target, std::vector<std::int64_t>>) {
          option = app.add_option(name, *target, help)->type_name("INT,...")->delimiter(',');
          option->type_size(1)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        } else {
          option = app.add_option(name, *target, help)->capture_default_str();
          if constexpr (std::is_arithmetic_v<Target>) {
            option->type_name(std::is_same_v<Target, double> ? "FLOAT" : "INT");
          } else {
            option->type_name("TEXT");
          }
        }
        option->required(flag.required);
      },
      flag.target);
}

// A flag may have several names: "--chat,--apply-chat-template".
std::vector<std::string_view> names_of(const Flag& flag) {
  return core::split(flag.name, ",");
}

core::Error unknown(std::string_view command,
                    const std::vector<Flag>& flags,
                    const std::string& word) {
  std::vector<std::string_view> names;
  for (const Flag& flag : flags) {
    for (const std::string_view name : names_of(flag))
      names.push_back(name);
  }
  const std::string_view written = std::string_view(word).substr(0, word.find('='));
  const std::string_view near = core::nearest_word(written, names);
  return {ErrorCode::kConfig, std::string(command) + ": unknown argument '" + word + "'; " +
                                  (near.empty() ? std::string(command) + " --help lists its flags"
                                                : "did you mean " + std::string(near) + "?")};
}

// Adds an error for each unknown flag, and for each stray word before the first unknown flag, if
// they are not `named`; stray words after it may be its values.
void add_unknown(std::string_view command,
                 const std::vector<Flag>& flags,
                 const std::vector<std::string>& rest,
                 std::vector<std::string>* named,
                 core::ErrorList& wrong) {
  bool after_unknown = false;
  for (const std::string& word : rest) {
    const bool flag = word.starts_with("--");
    if (!word.starts_with("-") && named != nullptr) {
      named->push_back(word);
    } else if (flag || !after_unknown) {
      wrong.add(unknown(command, flags, word));
    }
    after_unknown = after_unknown || flag;
  }
}

bool is_bool_flag(const std::vector<Flag>& flags, std::string_view word) {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) {
    const auto names = names_of(flag);
    return std::holds_alternative<bool*>(flag.target) &&
           std::find(names.begin(), names.end(), word) != names.end();
  });
}

// Rewrites each boolean flag, given as `--json`, `--json yes` or `--json=1`, to `--json=true`.
std::vector<std::string> with_plain_switches(std::string_view command,
                                             const std::vector<Flag>& flags,
                                             Words words,
                                             core::ErrorList& wrong) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (!is_bool_flag(flags, name)) {
      out.push_back(words[i]);
      continue;
    }
    std::optional<bool> given = true;
    if (equals != std::string::npos) {
      given = core::bool_word(std::string_view(words[i]).substr(equals + 1));
    } else if (i + 1 < words.size() && core::bool_word(words[i + 1])) {
      given = core::bool_word(words[++i]);
    }
    if (given) {
      out.push_back(name + (*given ? "=true" : "=false"));
    } else {
      wrong.add(ErrorCode::kConfig, std::string(command) + ": " + words[i],
                "expected true or false");
    }
  }
  return out;
}

Result<void> check_range(std::string_view command, const Flag& flag) {
  std::vector<double> values;
  if (const auto* whole = std::get_if<std::int64_t*>(&flag.target)) {
    values.push_back(static_cast<double>(**whole));
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>*>(&flag.target)) {
    values.assign((*list)->begin(), (*list)->end());
  } else if (const auto* real = std::get_if<double*>(&flag.target)) {
    values.push_back(**real);
  }
  const auto outside = [&](double value) {
    return !(std::isfinite(value) && value >= flag.min && value <= flag.max);
  };
  const auto wrong = std::find_if(values.begin(), values.end(), outside);
  if (wrong == values.end()) return {};
  const double value = *wrong;
  const auto range = core::printed("%g; expected %g to %g", value, flag.min, flag.max);
  return fail(ErrorCode::kConfig,
              std::string(command) + ": " + std::string(flag.name) + " = " + range);
}

thread_local FlagCollector* collector = nullptr;

}  // namespace

FlagCollector::FlagCollector() {
  collector = this;
}

FlagCollector::~FlagCollector() {
  collector = nullptr;
}

void FlagCollector::take(const std::vector<Flag>& flags) {
  std::ranges::move(flag_names(flags), std::back_inserter(names_));
}

std::vector<FlagName> flag_names(const std::vector<Flag>& flags) {
  std::vector<FlagName> out;
  for (const Flag& flag : flags) {
    for (const std::string_view name : names_of(flag)) {
      if (name.starts_with("--"))
        out.push_back({std::string(name), !std::holds_alternative<bool*>(flag.target)});
    }
  }
  return out;
}

PartedWords part_words(Words words, const std::vector<Flag>& flags) {
  PartedWords out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const auto flag = std::ranges::find_if(
        flags, [&](const Flag& one) { return std::ranges::count(names_of(one), name) > 0; });
    if (flag == flags.end()) {
      out.rest.push_back(words[i]);
      continue;
    }
    out.own.push_back(words[i]);
    const bool more = i + 1 < words.size();
    const bool is_switch = std::holds_alternative<bool*>(flag->target);
    const bool takes = is_switch ? more && core::bool_word(words[i + 1]).has_value() : more;
    if (equals == words[i].npos && takes) out.own.push_back(words[++i]);
  }
  return out;
}

Result<FlagsOutcome> parse_flags(std::string_view title,
                                 const std::vector<Flag>& flags,
                                 Words words,
                                 std::vector<std::string>* named) {
  if (collector != nullptr) {
    collector->take(flags);
    return FlagsOutcome::kHelpShown;
  }
  const std::string command(title.substr(0, title.find(':')));
  CLI::App app{std::string(title), command};
  app.allow_extras();
  for (const Flag& flag : flags)
    add(app, flag);
  core::ErrorList wrong;
  std::vector<std::string> plain = with_plain_switches(command, flags, words, wrong);
  std::reverse(plain.begin(), plain.end());
  bool read = true;
  try {
    app.parse(std::move(plain));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return FlagsOutcome::kHelpShown;
  } catch (const CLI::ParseError& error) {
    read = false;
    wrong.add(ErrorCode::kConfig, command + ": " + error.what(),
              command + " --help lists its flags");
  }
  add_unknown(command, flags, app.remaining(), named, wrong);
  for (const Flag& flag : flags) {
    if (read) wrong.take(check_range(command, flag));
  }
  TROUPE_TRY(wrong.result());
  return FlagsOutcome::kRun;
}

}  // namespace troupe::cli
