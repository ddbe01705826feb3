// `troupe train ppo CONFIG.yaml [--key v]`: from configuration to a finished run.
#include <cstdio>

#include "apps/troupe/commands.hpp"
#include "apps/troupe/train/learn_settings.hpp"
#include "apps/troupe/train/local_company.hpp"
#include "apps/troupe/train/run_files.hpp"
#include "apps/troupe/train/run_reporter.hpp"
#include "apps/troupe/train/run_summary.hpp"
#include "runtime/core/config_render.hpp"
#include "runtime/store/config_file.hpp"
#include "runtime/store/run_start.hpp"

namespace troupe::app {
namespace {

constexpr const char* kHelp =
    "usage: troupe train ppo CONFIG.yaml [CONFIG.yaml ...] [--key v | key=v ...]\n"
    "\n"
    "Trains a policy from rewards: samples groups of responses, scores them, and learns from them.\n"
    "Files are read from left to right, flags come last; an interrupted run goes on where it stopped\n"
    "(--resume auto). A run writes into its folder (--run.path): docs/run_folder.md.\n";

actors::RunPlan plan_of(const core::TrainConfig& config, std::uint64_t updates,
                        std::uint64_t evaluation_prompts) {
  actors::RunPlan plan;
  plan.updates = updates;
  plan.groups = static_cast<std::uint32_t>(config.rollout.batch_size);
  plan.staleness_max = static_cast<std::uint64_t>(config.train.staleness_max);
  plan.sampling = sampling_spec(config);
  plan.save_steps = static_cast<std::uint64_t>(config.ckpt.save_steps);
  plan.evaluation_groups = static_cast<std::uint32_t>(evaluation_prompts);
  plan.evaluation_samples = static_cast<std::int32_t>(config.eval.n_samples_per_prompt);
  plan.evaluation_temperature = static_cast<float>(config.eval.temperature);
  plan.evaluation_steps = static_cast<std::uint64_t>(config.eval.steps);
  return plan;
}

core::Result<void> train_ppo(Words words) {
  TROUPE_TRY_ASSIGN(builder, store::read_configuration(words));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  const core::SteadyClock clock;
  const core::TimePoint begin = clock.now();
  TROUPE_TRY_ASSIGN(inputs, load_inputs(config));
  TROUPE_TRY_ASSIGN(updates, updates_of_run(config, inputs.prompts->size()));
  TROUPE_TRY_ASSIGN(start, store::start_run(config, builder.origins()));
  CompanyPlan plan;
  plan.config = config;
  plan.run = plan_of(config, updates, inputs.evaluation ? inputs.evaluation->size() : 0);
  if (start.checkpoint) {
    plan.checkpoint = start.checkpoint->folder.string();
    plan.run.first_update = start.checkpoint->step;
  }
  TROUPE_TRY_ASSIGN(files, RunFiles::open(start.folder));
  TROUPE_TRY_ASSIGN(reporter, RunReporter::open(config, start.folder, plan.run.first_update, updates,
                                                clock));
  for (const std::string& note : start.notes) reporter->note(note);
  const double load_s = std::chrono::duration<double>(clock.now() - begin).count();
  TROUPE_TRY(run_local_company(std::move(plan), std::move(inputs), std::move(files), *reporter));
  const auto phases = reporter->phases();
  reporter.reset();  // the live block ends before the table begins
  print_summary(start.folder, updates, load_s, phases);
  return {};
}

}  // namespace

core::Result<void> run_train(Words words) {
  const bool method = !words.empty() && words[0] == "ppo";
  if (words.empty() || wants_help(words)) {
    // `--help rollout` describes the keys of one section.
    const std::string section = method ? core::config_section_help(words.back(), 100) : "";
    if (!section.empty()) {
      std::fputs(section.c_str(), stdout);
      return {};
    }
    std::fputs(kHelp, stdout);
    if (method) {
      std::fputs("\nKeys by section (--help SECTION describes them):\n", stdout);
      std::fputs(core::config_overview(100).c_str(), stdout);
    }
    if (!method) std::fputs("\nKeys: troupe train ppo --help\n", stdout);
    return {};
  }
  if (!method) {
    return core::fail(core::ErrorCode::kConfig,
                      "there is no `train " + words[0] + "`; use `troupe train ppo`");
  }
  return train_ppo(words.subspan(1));
}

}  // namespace troupe::app
