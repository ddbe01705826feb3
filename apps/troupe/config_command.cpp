// `troupe config show|validate|docs`.
#include "apps/troupe/commands.hpp"
#include "runtime/core/config_render.hpp"
#include "runtime/store/config_file.hpp"

#include <cstdio>

namespace troupe::app {
namespace {

constexpr const char* kHelp =
    "usage: troupe config show [CONFIG.yaml ...] [--key v | key=v ...]\n"
    "       troupe config validate CONFIG.yaml [...] [--key v | key=v ...]\n"
    "\n"
    "show      print every key with its value as YAML; a comment says where it was set\n"
    "validate  check all keys and the rules between them, then print what a run would do\n"
    "\n"
    "Files are read from left to right, flags come last. Keys: troupe train ppo --help\n";

core::Result<void> show(Words words) {
  TROUPE_TRY_ASSIGN(builder, store::read_configuration(words));
  std::fputs(core::config_yaml(builder.current(), builder.origins()).c_str(), stdout);
  return {};
}

core::Result<void> validate(Words words) {
  TROUPE_TRY_ASSIGN(builder, store::read_configuration(words));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  const auto optimiser_steps = config.mini_batches() * config.train.max_epochs;
  std::printf("valid: %zu keys set, the others at their defaults\n", builder.origins().size());
  std::printf("an update: %lld prompts x %lld samples = %lld samples of at most %lld tokens\n",
              static_cast<long long>(config.rollout.batch_size),
              static_cast<long long>(config.rollout.n_samples_per_prompt),
              static_cast<long long>(config.samples_per_update()),
              static_cast<long long>(config.rollout.max_new_tokens));
  std::printf("           %lld optimiser steps of %lld samples (%lld passes)\n",
              static_cast<long long>(optimiser_steps),
              static_cast<long long>(config.samples_per_update() / config.mini_batches()),
              static_cast<long long>(config.train.max_epochs));
  std::printf("run folder: %s\n", config.run.path.c_str());
  return {};
}

}  // namespace

core::Result<void> run_config(Words words) {
  if (words.empty() || wants_help(words)) {
    std::fputs(kHelp, stdout);
    return {};
  }
  if (words[0] == "show") return show(words.subspan(1));
  if (words[0] == "validate") return validate(words.subspan(1));
  if (words[0] == "docs") {
    std::fputs(core::config_markdown().c_str(), stdout);
    return {};
  }
  return core::fail(core::ErrorCode::kConfig,
                    "there is no `config " + words[0] + "`; use show or validate");
}

}  // namespace troupe::app
