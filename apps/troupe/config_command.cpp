// `troupe config`: `show` prints all keys with their values, `validate` checks a configuration and
// its files, `docs` prints the reference of all keys, or of another trainer's names.
#include "apps/cli/stop_signal.hpp"
#include "apps/session/fitted_lengths.hpp"
#include "apps/session/input_files.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/config/peer_page.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"

#include <cstdio>
#include <iostream>
#include <iterator>

namespace troupe::app {
namespace {

constexpr const char* kConfigHelp =
    "usage: troupe config show [CONFIG.yaml ...] [--key v | key=v ...]\n"
    "       troupe config validate CONFIG.yaml [...] [--key v | key=v ...]\n"
    "       troupe config from-trl|from-verl|from-openrlhf FILE [--method M] [--out CONFIG.yaml]\n"
    "\n"
    "show      print every key with its value as YAML; a comment says where it was set\n"
    "validate  check all keys, the rules between them and the files that they name, then print "
    "what\n"
    "          a run would do and which files were looked at\n"
    "from-..   print the configuration that means the same as FILE, another trainer's: a script "
    "with\n"
    "          its command line, or its YAML or JSON; what has no counterpart stands in comments\n"
    "\n"
    "Files are read from left to right, flags come last. A file for another method than ppo says "
    "so\n"
    "(method: dpo), or give --method dpo. Keys: troupe train METHOD --help\n";

// On names of other trainers that were taken.
void say_notes(const config::Builder& builder) {
  for (const std::string& note : builder.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
}

Result<void> show(cli::Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), words));
  say_notes(builder);
  std::fputs(config::resolved_yaml(builder.current(), builder.origins()).c_str(), stdout);
  return {};
}

void say_update(const config::TrainConfig& config) {
  const auto optimiser_steps = config.mini_batches() * config.train.max_epochs;
  std::printf("an update: %ld prompts x %ld samples = %ld samples of at most %ld tokens\n",
              config.rollout.batch_size, config.rollout.n_samples_per_prompt,
              config.samples_per_update(), config.rollout.max_new_tokens);
  std::printf("           %ld optimiser steps of %ld samples (%ld passes)\n", optimiser_steps,
              config.samples_per_update() / config.mini_batches(), config.train.max_epochs);
}

void say_step(const config::TrainConfig& config) {
  const bool pairs = (config.method & config::kPairs) != 0;
  std::printf("an optimiser step: %ld %s of at most %ld tokens; %ld passes over %s\n",
              config.train.batch_size, pairs ? "pairs" : "samples", config.data.max_len,
              config.train.max_epochs, config.data.dataset.c_str());
}

Result<void> validate(cli::Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), words));
  say_notes(builder);
  TROUPE_TRY(session::fit_lengths(builder));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  TROUPE_TRY_ASSIGN(seen, session::look_at_input_files(config));
  std::printf("valid for `troupe train %s`: %zu keys set, the others at their defaults\n",
              config::method_names(config.method).c_str(), builder.origins().size());
  if (config.method == config::kPpo) {
    say_update(config);
  } else {
    say_step(config);
  }
  std::printf("learning rate %g, run folder: %s\n", config.actor.adam.lr, config.run.path.c_str());
  std::printf("files that were looked at:\n");
  for (const std::string& line : seen)
    std::printf("  %s\n", line.c_str());
  return {};
}

}  // namespace

Result<void> run_config(cli::Words words) {
  const bool converts = !words.empty() && words[0].starts_with("from-");  // has a help of its own
  if (words.empty() || (cli::wants_help(words) && !converts)) {
    std::fputs(kConfigHelp, stdout);
    return {};
  }
  if (words[0] == "show") return show(words.subspan(1));
  if (words[0] == "validate") return validate(words.subspan(1));
  if (words[0] == "docs" && words.size() > 1) {
    cli::leave_stop_signal();  // which ends the reading of the list
    const std::string list(std::istreambuf_iterator<char>(std::cin), {});
    TROUPE_TRY_ASSIGN(page, config::peer_page(session::run_table(), words[1], list));
    std::fputs(page.c_str(), stdout);
    return {};
  }
  if (words[0] == "docs") {
    std::fputs(config::reference_page(session::run_table()).c_str(), stdout);
    return {};
  }
  if (words[0].starts_with("from-")) return run_config_from(words[0].substr(5), words.subspan(1));
  return fail(ErrorCode::kConfig, "there is no `config " + words[0] + "`",
              "use show, validate, docs, from-trl, from-verl or from-openrlhf");
}

}  // namespace troupe::app
