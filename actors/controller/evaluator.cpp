#include "actors/controller/evaluator.hpp"

#include "actors/controller/disk_patience.hpp"
#include "actors/controller/limits.hpp"
#include "actors/controller/ticket_issuer.hpp"
#include "actors/data/data_role.hpp"
#include "actors/protocol/ask.hpp"

namespace troupe::actors::controller {

async::task<core::Result<void>> Evaluator::run(std::uint64_t done) {
  run_.grace.begin(Grace::Step::kEvaluate, run_.context.timers->now());
  if (run_.plan.evaluations_due(done) > 1) TROUPE_CO_TRY(co_await evaluate(done, true));
  TROUPE_CO_TRY(co_await evaluate(done, false));
  if (done < run_.known) run_.grace.skip();
  run_.grace.end(run_.context.timers->now());
  co_return core::Result<void>();
}

async::task<core::Result<void>> Evaluator::evaluate(std::uint64_t done, bool greedy) {
  run_.listener.on_phase("evaluate");
  const core::TimePoint begin = run_.context.timers->now();
  const std::uint64_t update = experience::evaluation_after(done, greedy);
  const auto& plan = run_.plan;
  IssueTickets issue{update, plan.evaluation_groups,
                     greedy ? 1 : plan.evaluation.n_samples_per_prompt, run_.starts.newest()};
  TicketWork work;
  work.kind = WorkKind::kEvaluation;
  work.samples = issue.samples;
  work.version_min = issue.version_min;
  TROUPE_CO_TRY_ASSIGN(issued, co_await ask(run_.context, kDataRole, issue));
  if (done < run_.known && !issued.tickets.empty()) co_return checkpointer_.misfit(run_.known);
  run_.prompts.add(issued);
  SamplingSpec sampling = plan.sampling;
  sampling.temperature = greedy ? 0.0f : static_cast<float>(plan.evaluation.temperature);
  sampling.top_p = 1;
  sampling.top_k = 0;
  sampling.min_p = 0;
  work.sampling = std::make_shared<const SamplingSpec>(std::move(sampling));
  fleet_.add(issued.tickets, std::move(work));
  TROUPE_CO_TRY_ASSIGN(statuses, co_await settled_groups(update));
  EvaluationReport report;
  report.done = done;
  report.greedy = greedy;
  take(statuses, report);
  TROUPE_CO_TRY(co_await commit(update, done));
  fleet_.forget(update);
  run_.prompts.forget(update);
  report.seconds = std::chrono::duration<double>(run_.context.timers->now() - begin).count();
  co_return run_.listener.on_evaluation(report);
}

// Divides the problems into the sets of the plan.
void Evaluator::take(const GroupStatuses& statuses, EvaluationReport& report) const {
  auto sets = run_.plan.evaluation_sets;
  if (sets.empty()) sets.push_back({"", run_.plan.evaluation_groups});
  auto group = statuses.groups.begin();
  for (const RunPlan::HeldOut& set : sets) {
    EvaluatedSet& own = report.sets.emplace_back();
    own.name = set.name;
    for (std::uint32_t i = 0; i < set.groups && group != statuses.groups.end(); ++i, ++group) {
      if (group->ready()) {
        own.accuracy.push_back(group->mean_score);
      } else if (own.missing++ == 0) {
        run_.listener.on_note("held-out problem " + std::to_string(i + 1) +
                              (set.name.empty() ? "" : " of " + set.name) +
                              " cannot be scored and is left out of the figures: " + group->cause);
      }
    }
  }
}

async::task<core::Result<void>> Evaluator::commit(std::uint64_t update, std::uint64_t done) {
  std::function<async::task<core::Result<void>>()> step = [this, update, done] {
    return commit_once(update, done);
  };
  co_return co_await patiently(&run_, "the evaluation cannot be written down", std::move(step));
}

async::task<core::Result<void>> Evaluator::commit_once(std::uint64_t update, std::uint64_t done) {
  const CommitUpdate commit{update, done};
  TROUPE_CO_TRY(co_await ask(run_.context, kDataRole, commit));
  co_return core::Result<void>();
}

// Waits until each group is ready or has failed. A held-out problem that cannot be scored is left
// out and counted: replacing it would make the evaluation a different one.
async::task<core::Result<GroupStatuses>> Evaluator::settled_groups(std::uint64_t update) {
  for (;;) {
    AwaitGroups await{update, {}};
    auto statuses = co_await ask(run_.context, kDataRole, std::move(await));
    if (!statuses || is_settled(*statuses)) co_return statuses;
    co_await async::sleep_for(*run_.context.timers, limits::kSettlePoll);
  }
}

}  // namespace troupe::actors::controller
