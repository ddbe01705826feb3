// Flags by CLI11.
#include "apps/troupe/flags.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

namespace troupe::app {
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
          option = app.add_option(name, *target, help)->type_name("TEXT (may be repeated)");
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

// The flag with the longest common start, when that is at least three letters.
std::string nearest(const std::vector<Flag>& flags, std::string_view word) {
  std::string_view best;
  std::size_t best_length = 4;
  for (const Flag& flag : flags) {
    const auto end = std::mismatch(word.begin(), word.end(), flag.name.begin(), flag.name.end());
    const auto length = static_cast<std::size_t>(end.first - word.begin());
    if (length > best_length) {
      best = flag.name;
      best_length = length;
    }
  }
  return std::string(best);
}

core::Failure unknown(std::string_view command,
                      const std::vector<Flag>& flags,
                      const std::string& word) {
  const std::string_view name = std::string_view(word).substr(0, word.find('='));
  const std::string near = nearest(flags, name);
  return core::fail(core::ErrorCode::kConfig,
                    std::string(command) + ": unknown argument '" + word + "'; " +
                        (near.empty() ? std::string(command) + " --help lists its flags"
                                      : "did you mean " + near + "?"));
}

core::Result<void> check_range(std::string_view command, const Flag& flag) {
  double value = 0;
  if (const auto* whole = std::get_if<std::int64_t*>(&flag.target)) {
    value = static_cast<double>(**whole);
  } else if (const auto* real = std::get_if<double*>(&flag.target)) {
    value = **real;
  } else {
    return {};
  }
  if (std::isfinite(value) && value >= flag.min && value <= flag.max) return {};
  char range[80];
  std::snprintf(range, sizeof range, "%g; expected %g to %g", value, flag.min, flag.max);
  return core::fail(core::ErrorCode::kConfig,
                    std::string(command) + ": " + std::string(flag.name) + " = " + range);
}

}  // namespace

core::Result<FlagsOutcome> parse_flags(std::string_view title,
                                       const std::vector<Flag>& flags,
                                       Words words) {
  const std::string command(title.substr(0, title.find(':')));
  CLI::App app{std::string(title), command};
  app.allow_extras();
  for (const Flag& flag : flags)
    add(app, flag);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return FlagsOutcome::kHelpShown;
  } catch (const CLI::ParseError& error) {
    return core::fail(core::ErrorCode::kConfig,
                      command + ": " + error.what() + "; " + command + " --help lists its flags");
  }
  if (const auto rest = app.remaining(); !rest.empty()) {
    return unknown(command, flags, rest.front());
  }
  for (const Flag& flag : flags)
    TROUPE_TRY(check_range(command, flag));
  return FlagsOutcome::kRun;
}

}  // namespace troupe::app
