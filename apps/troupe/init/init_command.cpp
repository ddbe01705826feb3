// `troupe init METHOD`: writes a commented configuration for the data, model and machine that it
// finds.
#include "apps/cli/flags.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/asked_method.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/data/row_flags.hpp"
#include "apps/troupe/init/init_recipe.hpp"
#include "apps/troupe/new_file.hpp"
#include "runtime/config/read.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/shell_word.hpp"

#include <cstdio>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

std::vector<cli::Flag> flags_of_init(InitRequest& request) {
  return row_flags(request.data, request.model,
                   {{"--out", &request.out, "file to write; standard output without it"}});
}

constexpr const char* kTitle =
    "troupe init METHOD: writes a commented configuration of `troupe train METHOD` for the data, "
    "the model and the machine. METHOD may be an estimator of ppo, such as grpo. Keys of the "
    "configuration (--actor.lora.rank 16) stay as they are given";

// Keys that have a flag here.
Result<void> check_keys(const config::Builder& given) {
  constexpr std::pair<const char*, const char*> kFlags[] = {{"actor.model_name_or_path", "--model"},
                                                            {"data.dataset", "--data"},
                                                            {"data.prompt_dataset", "--data"}};
  for (const auto& [key, flag] : kFlags) {
    if (!given.origins().contains(key)) continue;
    return fail(ErrorCode::kConfig, std::string("troupe init: --") + key + " is not looked at here",
                std::string("give ") + flag);
  }
  return {};
}

data::NamedColumns named_columns(const config::Builder& given) {
  const config::TrainConfig& config = given.current();
  const auto named = [&](const char* key, const std::string& value) {
    return given.origins().contains(key) ? value : std::string();
  };
  const bool pairs = (config.method & config::kPairs) != 0;
  return {pairs ? named("data.prompt_key", config.data.prompt_key)
                : named("data.input_key", config.data.input_key),
          named("data.output_key", config.data.output_key),
          named("data.chosen_key", config.data.chosen_key),
          named("data.rejected_key", config.data.rejected_key),
          named("data.label_key", config.data.label_key)};
}

}  // namespace

Result<void> run_init(cli::Words words) {
  InitRequest request;
  const std::vector<cli::Flag> flags = flags_of_init(request);
  if (words.empty() || cli::wants_help(words)) {
    const std::vector<std::string> help = {"--help"};
    TROUPE_TRY(cli::parse_flags(kTitle, flags, help));
    return {};
  }
  TROUPE_TRY_ASSIGN(asked, asked_for(words[0]));
  const cli::PartedWords parted = cli::part_words(words.subspan(1), flags);
  TROUPE_TRY(cli::parse_flags(kTitle, flags, parted.own));
  TROUPE_TRY(check_new(request.out, "--out"));
  request.word = words[0];
  request.estimator = asked.estimator;
  const config::Table& table = session::run_table();
  TROUPE_TRY_ASSIGN(given, config::read(table, parted.rest, asked.method));
  TROUPE_TRY(check_keys(given));
  TROUPE_TRY_ASSIGN(facts,
                    find_facts(asked.method, request.data, request.model, named_columns(given)));
  const InitRecipe made = make_init_recipe(table, request, facts, given);
  TROUPE_TRY(write_new(request.out, "--out", made.yaml));
  for (const std::string& note : given.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  for (const std::string& missing : made.missing)
    std::fprintf(stderr, "note: still to do: %s\n", core::barred(missing).c_str());
  if (request.out.empty()) return {};
  const std::string file = core::shell_word(request.out);
  std::printf(
      "%s is written; check it, then train:\n  troupe config validate %s\n  troupe train %s %s\n",
      request.out.c_str(), file.c_str(), config::method_names(asked.method).c_str(), file.c_str());
  return {};
}

}  // namespace troupe::app
