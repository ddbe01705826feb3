// `troupe config`: `show` prints all keys with their values, `validate` checks a configuration and
// its files, `docs` prints the reference of all keys, or of another trainer's names.
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
    "\n"
    "show      print every key with its value as YAML; a comment says where it was set\n"
    "validate  check all keys, the rules between them and the files that they name, then print "
    "what\n"
    "          a run would do and which files were looked at\n"
    "\n"
    "Files are read from left to right, flags come last. A file for another method than ppo says "
    "so\n"
    "(method: dpo), or give --method dpo. Keys: troupe train METHOD --help\n";

// On names of other trainers that were taken.
void say_notes(const config::Builder& builder) {
  for (const std::string& note : builder.notes())
    std::fprintf(stderr, "note: %s\n", note.c_str());
}

core::Result<void> show(Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(run_table(), words));
  say_notes(builder);
  std::fputs(config::resolved_yaml(builder.current(), builder.origins()).c_str(), stdout);
  return {};
}

long long whole(std::int64_t value) {
  return static_cast<long long>(value);
}

void say_update(const config::TrainConfig& config) {
  const auto optimiser_steps = config.mini_batches() * config.train.max_epochs;
  std::printf("an update: %lld prompts x %lld samples = %lld samples of at most %lld tokens\n",
              whole(config.rollout.batch_size), whole(config.rollout.n_samples_per_prompt),
              whole(config.samples_per_update()), whole(config.rollout.max_new_tokens));
  std::printf("           %lld optimiser steps of %lld samples (%lld passes)\n",
              whole(optimiser_steps), whole(config.samples_per_update() / config.mini_batches()),
              whole(config.train.max_epochs));
}

void say_step(const config::TrainConfig& config) {
  const bool pairs = (config.method & config::kPairs) != 0;
  std::printf("an optimiser step: %lld %s of at most %lld tokens; %lld passes over %s\n",
              whole(config.train.batch_size), pairs ? "pairs" : "samples",
              whole(config.data.max_len), whole(config.train.max_epochs),
              config.data.dataset.c_str());
}

core::Result<void> validate(Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(run_table(), words));
  say_notes(builder);
  TROUPE_TRY(fit_lengths(builder));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  TROUPE_TRY_ASSIGN(seen, look_at_input_files(config));
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

core::Result<void> run_config(Words words) {
  if (words.empty() || wants_help(words)) {
    std::fputs(kConfigHelp, stdout);
    return {};
  }
  if (words[0] == "show") return show(words.subspan(1));
  if (words[0] == "validate") return validate(words.subspan(1));
  if (words[0] == "docs" && words.size() > 1) {
    const std::string list(std::istreambuf_iterator<char>(std::cin), {});
    TROUPE_TRY_ASSIGN(page, config::peer_page(run_table(), words[1], list));
    std::fputs(page.c_str(), stdout);
    return {};
  }
  if (words[0] == "docs") {
    std::fputs(config::reference_page(run_table()).c_str(), stdout);
    return {};
  }
  return core::fail(core::ErrorCode::kConfig, "there is no `config " + words[0] + "`",
                    "use show, validate or docs");
}

}  // namespace troupe::app
