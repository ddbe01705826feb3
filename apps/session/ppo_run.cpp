#include "apps/session/ppo_run.hpp"

#include "actors/controller/controller.hpp"
#include "actors/controller/reward_board.hpp"
#include "actors/data/data_role.hpp"
#include "actors/data/data_state.hpp"
#include "actors/data/group_log.hpp"
#include "actors/data/held_out_prompts.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/run_files.hpp"
#include "apps/session/run_inputs.hpp"
#include "apps/session/run_life.hpp"
#include "apps/session/run_summary.hpp"

#include <algorithm>
#include <map>

namespace troupe::session {
namespace {

// What the data role is made from.
struct DataParts {
  actors::data::DataRoleOptions options;
  std::unique_ptr<actors::data::PromptSource> prompts,
      evaluation;  // the second null without an evaluation
  std::unique_ptr<actors::data::GroupSink> sink;
};

cluster::RoleHost::Factory data_role(DataParts parts) {
  return actors::factory_of<actors::data::DataRole>(
      [parts = std::move(parts)](actors::RoleContext context) mutable {
        return std::make_shared<actors::data::DataRole>(
            std::move(context), std::move(parts.options), std::move(parts.prompts),
            std::move(parts.evaluation), std::move(parts.sink));
      });
}

// Attached rewards come through the gateway, which a run in one process does not have.
Result<void> check_none_attached(const actors::controller::RunPlan& plan) {
  const actors::controller::RewardBoard board(plan.rewards, plan.earlier_sets, plan.reward_formula);
  if (board.absent().empty()) return {};
  return core::fail(core::ErrorCode::kConfig,
                    "reward " + *board.absent().begin() +
                        " was attached to this run, and no reward can be attached with "
                        "--cluster.transport loopback",
                    "use --cluster.transport caf");
}

class PpoRun final : public RunLife {
 public:
  using RunLife::RunLife;

 private:
  Result<void> run_session() override {
    TROUPE_TRY_ASSIGN(inputs, load_inputs(config_, loopback()));
    const bool chats = inputs.prompts->has_chats();
    TROUPE_TRY_ASSIGN(updates, updates_of_run(config_, inputs.prompts->size()));
    TROUPE_TRY_ASSIGN(start, open_folder());
    if (!begun_) TROUPE_TRY(check_experience(start, *contents_));
    if (start.checkpoint && start.checkpoint->step >= updates) {
      return say_finished(config_, *start.checkpoint, updates, "updates");
    }
    SessionParts parts;
    std::vector<actors::controller::RunPlan::HeldOut> held_out;
    for (const HeldOutInputs& set : inputs.evaluation)
      held_out.push_back({set.name, static_cast<std::uint32_t>(set.prompts->size())});
    actors::controller::RunPlan plan = run_plan(config_, updates, std::move(held_out));
    resume(start, parts, plan);
    if (start.checkpoint)
      plan.evaluations_owed = 2 - evaluations_in(start.folder.metrics_file(), done_);
    TROUPE_TRY_ASSIGN(logged, actors::data::read_log(start.folder.experience(), plan.first_update));
    plan.logged_until = logged.end();
    plan.earlier_starts = actors::data::earlier_starts(logged, plan.staleness_max);
    if (!begun_) TROUPE_TRY(restore_rewards(start.checkpoint, logged.sets));
    for (const auto& [number, set] : reward_sets_)
      plan.earlier_sets.push_back(set);
    if (loopback()) TROUPE_TRY(check_none_attached(plan));
    TROUPE_TRY_ASSIGN(files, RunFiles::open(start.folder, config_.eval.source_key));
    TROUPE_TRY_ASSIGN(reporter, open_reporter(start, updates, inputs.notes));
    files->when_mended([told = reporter.get()](const std::string& text) { told->on_note(text); });
    DataParts data{data_options(config_), std::move(inputs.prompts), {}, std::move(files)};
    data.options.first_prompt = first_prompt_;
    data.options.earlier_sets = plan.earlier_sets;
    data.options.scoring.text_ends = std::move(inputs.text_ends);
    data.options.log.folder = start.folder.experience_folder();
    for (const std::string& text : logged.notes)
      reporter->on_note(text);
    data.options.log.found = std::move(logged);
    data.options.log.kept = start.folder.kept();
    data.options.log.here = [&start] { return start.folder.check_here().has_value(); };
    if (!inputs.evaluation.empty()) {
      std::vector<actors::data::PromptsOfSet> sets;
      for (HeldOutInputs& set : inputs.evaluation)
        sets.push_back({set.name, std::move(set.prompts)});
      data.evaluation = std::make_unique<actors::data::HeldOutPrompts>(std::move(sets));
      data.options.held_out = held_out_rewards(config_, plan.evaluation_sets);
      TROUPE_TRY_SET(data.options.evaluation_settings,
                     evaluation_settings(config_, *data.evaluation));
    }
    tell_of_groups(data.options, *reporter);
    parts.data = data_role(std::move(data));
    parts.conductor = [this, plan, told = reporter.get()](const cluster::RoleServices& services) {
      auto controller = std::make_shared<actors::controller::Controller>(
          actors::context_of(services), plan, *told);
      plane_->prepare(*controller);
      return hosted(std::move(controller), services);
    };
    auto ended = conduct(std::move(parts), {std::move(inputs.params), std::move(inputs.reward)},
                         updates, start, *reporter);
    if (!ended) {
      ended = go_back(ended.error(), start, *reporter,
                      [this, &start](std::uint64_t to) { return pass_over(start.folder, to); });
    }
    const bool over = settle(ended, *reporter);
    reward_sets_.merge(reporter->reward_sets());
    if (!over) return ended;
    const auto phases = reporter->phases();
    const std::uint64_t done = reporter->done();
    reporter.reset();  // ends the live line before the table
    print_summary(config_, start.folder, done, load_s_, phases, chats);
    return ended;
  }

  // The next session begins after `to` updates without what was sampled since, and with the prompts
  // after those of that.
  Result<void> pass_over(const store::RunFolder& folder, std::uint64_t to) {
    const store::StepLog log = folder.experience();
    TROUPE_TRY_ASSIGN(used, actors::data::positions_end(log));
    first_prompt_ = std::max(first_prompt_, used);
    const store::CheckpointStore checkpoints(folder.checkpoint_folder(), config_.ckpt.max_num);
    TROUPE_TRY_ASSIGN(newest, checkpoints.latest_listed());
    if (newest) {
      TROUPE_TRY_ASSIGN(state, actors::data::read_state(checkpoints.folder_of(*newest)));
      const auto& ahead = state.prompts.ahead();
      const std::uint64_t end = ahead.empty() ? state.prompts.next() : *ahead.rbegin() + 1;
      first_prompt_ = std::max(first_prompt_, end);
    }
    TROUPE_TRY_ASSIGN(steps, log.steps());
    for (const std::uint64_t step : steps)
      if (step > to || to == 0) TROUPE_TRY(log.remove(step));
    return {};
  }

  static void tell_of_groups(actors::data::DataRoleOptions& options, RunReporter& reporter) {
    options.watched = [&reporter](const actors::GroupCounts& counts) {
      reporter.on_groups(counts);
    };
    options.scoring.note = [&reporter](const std::string& text) { reporter.on_note(text); };
    options.scoring.modules = [&reporter](const std::string& who, const std::string& modules) {
      reporter.on_modules(who, modules);
    };
  }

  // Restores the attached rewards of an earlier process: from the checkpoint, and from the
  // experience log those that came later.
  Result<void> restore_rewards(const std::optional<store::Checkpoint>& checkpoint,
                               const std::vector<actors::SetRewards>& logged) {
    std::vector<actors::SetRewards> found;
    if (checkpoint) {
      TROUPE_TRY_ASSIGN(state, actors::data::read_state(checkpoint->folder));
      found = std::move(state.reward_sets);
    }
    for (const auto& set : logged) {
      if (found.empty() || set.set > found.back().set) found.push_back(set);
    }
    actors::data::RewardSets sets(data_options(config_).rewards, config_.reward.formula);
    TROUPE_TRY(sets.restore(found));  // in order
    for (auto& set : found)
      reward_sets_.emplace(set.set, std::move(set));
    return {};
  }

  std::uint64_t first_prompt_ = 0;  // positions before it are passed over: a run diverged on them
  std::map<std::uint64_t, actors::SetRewards> reward_sets_;  // beyond the run's own, by number
};

}  // namespace

Result<void> run_ppo(config::TrainConfig config, config::Origins origins) {
  return PpoRun(std::move(config), std::move(origins)).run();
}

}  // namespace troupe::session
