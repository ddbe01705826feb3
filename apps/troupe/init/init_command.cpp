// `troupe init METHOD`: writes a commented configuration for the data, model and machine that it
// finds.
#include "apps/cli/flags.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/init/init_recipe.hpp"
#include "apps/troupe/new_file.hpp"
#include "runtime/config/read.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/foreign_text.hpp"

#include <cstdio>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

std::vector<cli::Flag> flags_of_init(InitRequest& request) {
  return {{"--data", &request.data, "rows to train on; several files with commas between them"},
          {"--model", &request.model, "model to train: a folder, or org/name in the local cache"},
          {"--out", &request.out, "file to write; standard output without it"}};
}

constexpr const char* kTitle =
    "troupe init METHOD: writes a commented configuration of `troupe train METHOD` for the data, "
    "the model and the machine. METHOD may be an estimator of ppo, such as grpo. Keys of the "
    "configuration (--actor.lora.rank 16) stay as they are given";

struct Asked {
  config::Methods method = config::kNoMethod;
  std::string estimator;
};

// What a word asks for: a method, or an estimator of ppo by one of its names.
Result<Asked> asked_for(const std::string& word) {
  if (const auto method = config::method_named(word); method != config::kNoMethod)
    return Asked{method, {}};
  std::vector<std::string_view> names(std::begin(config::kMethodNames),
                                      std::end(config::kMethodNames));
  for (const core::Choice& choice : session::run_table().find("algo.advantage.estimator")->words) {
    if (word == choice.name || (!choice.alias.empty() && word == choice.alias))
      return Asked{config::kPpo, std::string(choice.name)};
    names.push_back(choice.name);
    if (!choice.alias.empty()) names.push_back(choice.alias);
  }
  const std::string near(core::nearest_word(word, names));
  return fail(ErrorCode::kConfig, "there is no method '" + word + "' to begin with",
              near.empty() ? "choose one of " + config::method_names(config::kAllMethods)
                           : "did you mean `troupe init " + near + "`?");
}

// The own flags of the command; the others, which are keys, go to `rest`.
std::vector<std::string> own_words(cli::Words words,
                                   const std::vector<cli::Flag>& flags,
                                   std::vector<std::string>& rest) {
  std::vector<std::string> own;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    const bool known = std::ranges::any_of(flags, [&](auto& flag) { return flag.name == name; });
    (known ? own : rest).push_back(words[i]);
    if (known && name == words[i] && i + 1 < words.size()) own.push_back(words[++i]);
  }
  return own;
}

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
  std::vector<std::string> keys;
  const std::vector<std::string> own = own_words(words.subspan(1), flags, keys);
  TROUPE_TRY(cli::parse_flags(kTitle, flags, own));
  TROUPE_TRY(check_new(request.out, "--out"));
  request.word = words[0];
  request.estimator = asked.estimator;
  const config::Table& table = session::run_table();
  TROUPE_TRY_ASSIGN(given, config::read(table, keys, asked.method));
  TROUPE_TRY(check_keys(given));
  TROUPE_TRY_ASSIGN(facts,
                    find_facts(asked.method, request.data, request.model, named_columns(given)));
  const InitRecipe made = make_init_recipe(table, request, facts, given);
  TROUPE_TRY(write_new(request.out, "--out", made.yaml));
  for (const std::string& note : given.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  for (const std::string& missing : made.missing)
    std::fprintf(stderr, "note: still to do: %s\n", core::barred(missing).c_str());
  return {};
}

}  // namespace troupe::app
