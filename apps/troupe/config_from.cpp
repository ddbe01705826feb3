// `troupe config from-trl|from-verl|from-openrlhf FILE`: prints the configuration of this project
// that means the same.
#include "apps/cli/flags.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/new_file.hpp"
#include "apps/troupe/trl_script.hpp"
#include "runtime/config/peer_recipe.hpp"
#include "runtime/core/foreign_text.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace troupe::app {
namespace {

std::optional<std::string> environment_value(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<config::Methods> method_asked(const std::string& word) {
  if (word.empty()) return config::kNoMethod;
  const config::Methods method = config::method_named(word);
  if (method != config::kNoMethod) return method;
  return fail(ErrorCode::kConfig, "--method: there is no method '" + word + "'",
              "choose one of " + config::method_names(config::kAllMethods) +
                  " (grpo, rloo and their like are ppo)");
}

void say_counts(const config::PeerRecipe& made) {
  std::fprintf(stderr,
               "note: %zu keys; %zu settings ask for what is so anyway, %zu have no counterpart or "
               "are refused: they stand at the end, with the reason\n",
               made.keys, made.held, made.others);
  for (const std::string& missing : made.missing)
    std::fprintf(stderr, "note: still to do: %s\n", core::barred(missing).c_str());
}

}  // namespace

Result<void> run_config_from(std::string_view peer, cli::Words words) {
  std::string method, out;
  const std::string name = "troupe config from-" + std::string(peer);
  std::vector<std::string> files;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(name + ": FILE of another trainer as a configuration of this one",
                       {{"--method", &method, "what is trained, if FILE does not say it: sft, ppo"},
                        {"--out", &out, "file to write; standard output without it"}},
                       words, &files));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (files.size() != 1) {
    return fail(
        ErrorCode::kConfig,
        name + ": one FILE is expected, " +
            (files.empty() ? "none was given" : std::to_string(files.size()) + " were given"),
        "name the script, YAML or JSON file of the run, or TRL's Python script");
  }
  TROUPE_TRY_ASSIGN(asked, method_asked(method));
  TROUPE_TRY(check_new(out, "--out"));
  const config::Table& table = session::run_table();
  TROUPE_TRY_ASSIGN(file, config::read_peer_file(table, peer, files[0], asked, environment_value,
                                                 read_trl_script));
  const config::PeerRecipe made = config::make_recipe(table, file, files[0]);
  TROUPE_TRY(write_new(out, "--out", made.yaml));
  say_counts(made);
  return {};
}

}  // namespace troupe::app
