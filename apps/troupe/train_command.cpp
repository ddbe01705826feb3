// `troupe train METHOD CONFIG.yaml [--key v]`: reads the configuration and does the whole run.
#include "apps/cli/stop_signal.hpp"
#include "apps/session/fitted_lengths.hpp"
#include "apps/session/kept_keys.hpp"
#include "apps/session/pinned_names.hpp"
#include "apps/session/ppo_run.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/supervised_run.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/config/first_keys.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/learn/supervised/methods.hpp"
#include "runtime/learn/trainers.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <map>

namespace troupe::app {
namespace {

// Who may read what the process and its children write from now on: the user alone, or also the
// user's group (folders 0750, files 0640). What exists stays as it is.
void write_privately(bool group) {
  const mode_t mask = ::umask(group ? 027 : 077);
  ::umask(mask | (group ? 027 : 077));
}

Result<void> train(config::Methods method, cli::Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), words, method));
  TROUPE_TRY(session::keep_of_run(builder));
  TROUPE_TRY(session::pin_names(builder));
  for (const std::string& note : builder.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  TROUPE_TRY(session::fit_lengths(builder));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  TROUPE_TRY(learn::find_trainers());  // before anything is written
  cli::limit_stop(
      static_cast<unsigned>(config.run.grace_s),
      "stopped at the end of run.grace_s; the same command goes on from the newest checkpoint "
      "and what was sampled since");
  write_privately(config.run.group_read);
  if (method == config::kPpo) return session::run_ppo(std::move(config), builder.origins());
  return session::run_supervised(std::move(config), builder.origins());
}

constexpr std::string_view kPairRows =
    "Rows: a better and a worse answer (data.chosen_key, data.rejected_key) to one prompt\n"
    "(data.prompt_key), as text or as lists of chat messages; without data.prompt_key both "
    "columns\n"
    "hold the whole dialogue. The prompt is computed once for both.\n";

constexpr std::string_view kPpoPage =
    "Trains a policy from rewards: samples groups of responses, scores them, and learns from "
    "them.\n";

// The beginning of `troupe train [METHOD] --help`: how it is called, what the method does, which
// rows it reads. `method` empty: a line for each method.
std::string train_help(std::string_view method) {
  const std::string word(method.empty() ? "METHOD" : method);
  std::string text =
      "usage: troupe train " + word + " CONFIG.yaml [CONFIG.yaml ...] [--key v | key=v ...]\n\n";
  const auto add = [&](std::string name, std::string_view title, std::string_view page) {
    if (method.empty()) {
      name.resize(10, ' ');
      text += "  " + name + std::string(title) + "\n";
    } else if (name == method) {
      text += page;
      if ((config::method_named(method) & config::kPairs) != 0) text += kPairRows;
    }
  };
  add("ppo", "reinforcement learning from rewards", kPpoPage);
  for (const learn::Method& row : learn::Method::all())
    add(std::string(row.name), row.title, row.page);
  text +=
      "\nFiles are read from left to right, flags come last; an interrupted run goes on where it "
      "stopped\n"
      "(--resume auto). A run writes into its folder (--run.path): docs/run_folder.md.\n";
  if (method.empty()) text += "\nKeys: troupe train METHOD --help\n";
  return text;
}

Result<void> print_help(config::Methods method, const std::string& section_name) {
  // `--help rollout` describes the keys of one group, which is a section of the configuration.
  const std::string section =
      method == config::kNoMethod
          ? ""
          : config::section_help(session::run_table(), section_name, 100, method);
  if (!section.empty()) {
    std::fputs(section.c_str(), stdout);
    return {};
  }
  if (method != config::kNoMethod && !section_name.empty()) {
    return fail(
        ErrorCode::kConfig,
        "train " + config::method_names(method) + " has no group '" + section_name + "' of keys",
        "--help alone lists them");
  }
  std::fputs(train_help(config::method_names(method)).c_str(), stdout);
  if (method == config::kNoMethod) return {};
  const config::Table& table = session::run_table();
  std::fputs("\nThe ten keys that people change first:\n", stdout);
  std::fputs(config::keys_help(table, config::first_keys(method), 100, method).c_str(), stdout);
  std::fputs("\nAll keys, in groups (--help GROUP describes one, --help-all all of them):\n",
             stdout);
  std::fputs(config::groups(table, method).c_str(), stdout);
  return {};
}

// Every key of a method, group by group.
Result<void> print_all_keys(config::Methods method) {
  if (method == config::kNoMethod) {
    return fail(ErrorCode::kConfig, "train --help-all: of which method?",
                "`troupe train METHOD --help-all`; `troupe train --help` lists the methods");
  }
  std::string_view last;
  for (const config::Row& row : session::run_table().rows()) {
    if (row.section() == last) continue;
    last = row.section();
    const std::string page = config::section_help(session::run_table(), last, 100, method);
    if (!page.empty()) std::printf("%s\n", page.c_str());
  }
  return {};
}

// Advice for a word that is no method. Other programs have a command for each variant of
// reinforcement learning, such as grpo; here a variant is a setting of `train ppo`.
std::string advice_for(const std::string& word) {
  std::vector<std::string_view> words(std::begin(config::kMethodNames),
                                      std::end(config::kMethodNames));
  std::map<std::string_view, std::string> settings;
  for (const char* key : {"algo.advantage.estimator", "algo.objective", "dpo.loss"}) {
    const std::string command = key == std::string("dpo.loss") ? "train dpo" : "train ppo";
    for (const core::Choice& choice : session::run_table().find(key)->words) {
      for (const std::string_view kind : {choice.name, choice.alias}) {
        if (kind.empty()) continue;
        words.push_back(kind);
        settings.emplace(kind, "`" + command + "` with --" + key + " " + std::string(choice.name));
      }
    }
  }
  const std::string near(core::nearest_word(word, words));
  const auto found = settings.find(near);
  if (config::method_named(near) == config::kNoMethod && found != settings.end())
    return (near == word ? "it" : near) + " is " + found->second + ", docs/recipes.md";
  if (!near.empty()) return "did you mean `train " + near + "`?";
  return "choose one of " + config::method_names(config::kAllMethods);
}

}  // namespace

Result<void> run_train(cli::Words words) {
  const config::Methods method = words.empty() ? config::kNoMethod : config::method_named(words[0]);
  if (std::ranges::count(words, "--help-all") > 0) return print_all_keys(method);
  if (words.empty() || cli::wants_help(words)) {
    // `--help SECTION`: the word behind it.
    const bool named =
        words.size() > 1 && !cli::wants_help(words.last(1)) && cli::wants_help(words.last(2));
    return print_help(method, named ? words.back() : "");
  }
  if (method == config::kNoMethod)
    return fail(ErrorCode::kConfig, "there is no `train " + words[0] + "`", advice_for(words[0]));
  return train(method, words.subspan(1));
}

}  // namespace troupe::app
