#include "apps/session/ppo_run.hpp"

#include "actors/controller/controller.hpp"
#include "actors/controller/reward_board.hpp"
#include "actors/data/data_role.hpp"
#include "actors/data/data_state.hpp"
#include "actors/data/group_log.hpp"
#include "actors/data/held_out_prompts.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/limits.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/run_files.hpp"
#include "apps/session/run_inputs.hpp"
#include "apps/session/run_life.hpp"
#include "apps/session/run_summary.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace troupe::app {
namespace {

using core::Result;

// What the data role is made from.
struct DataParts {
  actors::DataRoleOptions options;
  std::unique_ptr<actors::PromptSource> prompts,
      evaluation;  // the second null without an evaluation
  std::unique_ptr<actors::GroupSink> sink;
};

cluster::RoleHost::Factory data_role(DataParts parts) {
  return actors::factory_of<actors::DataRole>(
      [parts = std::move(parts)](actors::RoleContext context) mutable {
        return std::make_shared<actors::DataRole>(
            std::move(context), std::move(parts.options), std::move(parts.prompts),
            std::move(parts.evaluation), std::move(parts.sink));
      });
}

// Attached rewards come through the gateway, which a run in one process does not have.
Result<void> check_none_attached(const actors::RunPlan& plan) {
  const actors::RewardBoard board(plan.rewards, plan.earlier_sets, plan.reward_formula);
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
    TROUPE_TRY_ASSIGN(updates, updates_of_run(config_, inputs.prompts->size()));
    TROUPE_TRY_ASSIGN(start, open_folder());
    if (!begun_) TROUPE_TRY(check_experience(start, *contents_));
    if (start.checkpoint && start.checkpoint->step >= updates) {
      return say_finished(config_, *start.checkpoint, updates, "updates");
    }
    SessionParts parts;
    std::vector<actors::RunPlan::HeldOut> held_out;
    for (const HeldOutInputs& set : inputs.evaluation)
      held_out.push_back({set.name, static_cast<std::uint32_t>(set.prompts->size())});
    actors::RunPlan plan = run_plan(config_, updates, std::move(held_out));
    resume(start, parts, plan);
    if (start.checkpoint)
      plan.evaluations_owed = 2 - evaluations_in(start.folder.metrics_file(), done_);
    TROUPE_TRY_ASSIGN(logged, actors::read_log(start.folder.experience(), plan.first_update));
    plan.logged_until = logged.end();
    plan.earlier_starts = actors::earlier_starts(logged, plan.staleness_max);
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
      std::vector<actors::PromptsOfSet> sets;
      for (HeldOutInputs& set : inputs.evaluation)
        sets.push_back({set.name, std::move(set.prompts)});
      data.evaluation = std::make_unique<actors::HeldOutPrompts>(std::move(sets));
      data.options.held_out = held_out_rewards(config_, plan.evaluation_sets);
      TROUPE_TRY_SET(data.options.evaluation_settings,
                     evaluation_settings(config_, *data.evaluation));
    }
    tell_of_groups(data.options, *reporter);
    parts.data = data_role(std::move(data));
    parts.conductor = [this, plan, told = reporter.get()](const cluster::RoleServices& services) {
      auto controller =
          std::make_shared<actors::Controller>(actors::context_of(services), plan, *told);
      plane_->prepare(*controller);
      return hosted(std::move(controller), services);
    };
    auto ended = conduct(std::move(parts), {std::move(inputs.params), std::move(inputs.reward)},
                         updates, start, *reporter);
    if (!ended) ended = go_back(start, ended.error(), reporter->done());
    const bool over = settle(ended, *reporter);
    reward_sets_.merge(reporter->reward_sets());
    if (!over) return ended;
    const auto phases = reporter->phases();
    const std::uint64_t done = reporter->done();
    reporter.reset();  // ends the live block before the table
    print_summary(config_, start.folder, done, load_s_, phases);
    return ended;
  }

  // train.on_divergence back: the next session begins with the last good checkpoint, without what
  // was sampled since, and with the prompts after those of that: from the same ones the same would
  // come. An error of another kind, and one time too many, is the run's.
  Result<void> go_back(const store::RunStart& start, const core::Error& error, std::uint64_t done) {
    const bool back = config_.train.on_divergence == config::OnDivergence::kBack;
    if (error.code != core::ErrorCode::kNumeric || !back) return core::fail(error);
    divergences_ = done > diverged_at_ ? 1 : divergences_ + 1;
    diverged_at_ = std::max(diverged_at_, done);
    if (divergences_ > limits::kDivergences_max) {
      return core::fail(error.within("it diverged " + std::to_string(divergences_) +
                                     " times before update " + std::to_string(diverged_at_ + 1) +
                                     " was done, each time with other prompts"));
    }
    const std::uint64_t first = start.checkpoint ? start.checkpoint->step : 0;
    TROUPE_TRY_ASSIGN(logged, actors::read_log(start.folder.experience(), first));
    for (const actors::TicketIssued& one : logged.issued) {
      first_prompt_ = std::max(first_prompt_, one.saved.prompt + 1);
      for (const std::uint64_t replaced : one.saved.replaced)
        first_prompt_ = std::max(first_prompt_, replaced + 1);
    }
    TROUPE_TRY(start.folder.experience().remove_up_to(std::numeric_limits<std::uint64_t>::max()));
    return core::fail(core::ErrorCode::kPeerLost,
                      error.message + "; going back, for the " + std::to_string(divergences_) +
                          ". of at most " + std::to_string(limits::kDivergences_max) +
                          " times, to go on with other prompts");
  }

  static void tell_of_groups(actors::DataRoleOptions& options, RunReporter& reporter) {
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
      TROUPE_TRY_ASSIGN(state, actors::read_state(checkpoint->folder));
      found = std::move(state.reward_sets);
    }
    for (const auto& set : logged) {
      if (found.empty() || set.set > found.back().set) found.push_back(set);
    }
    actors::RewardSets sets(data_options(config_).rewards, config_.reward.formula);
    TROUPE_TRY(sets.restore(found));  // in order
    for (auto& set : found)
      reward_sets_.emplace(set.set, std::move(set));
    return {};
  }

  std::uint64_t first_prompt_ = 0;  // positions before it are passed over: a run diverged on them
  std::uint64_t divergences_ = 0;   // in a row, none of which got past `diverged_at_` updates
  std::uint64_t diverged_at_ = 0;
  std::map<std::uint64_t, actors::SetRewards> reward_sets_;  // beyond the run's own, by number
};

}  // namespace

Result<void> run_ppo(config::TrainConfig config, config::Origins origins) {
  return PpoRun(std::move(config), std::move(origins)).run();
}

}  // namespace troupe::app
