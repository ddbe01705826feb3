// Evaluations: held-out problems, sampled by the weights of exactly one version. The trainer waits,
// so nothing newer is published meanwhile; rollouts of training go on beside it.
#include "actors/controller/controller.hpp"
#include "actors/data/data_role.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"

namespace troupe::actors {

async::task<core::Result<void>> Controller::evaluate(std::uint64_t done) {
  TROUPE_CO_TRY(co_await evaluate(done, true));
  co_return co_await evaluate(done, false);
}

async::task<core::Result<void>> Controller::evaluate(std::uint64_t done, bool greedy) {
  listener_.on_phase("evaluate");
  const core::TimePoint begin = context_.timers->now();
  const std::uint64_t update = experience::kFirstEvaluation + 2 * done + (greedy ? 1 : 0);
  IssueTickets issue;
  issue.update = update;
  issue.groups = plan_.evaluation_groups;
  issue.samples = greedy ? 1 : plan_.evaluation_samples;
  issue.version_min = starts_.newest();
  TicketWork work;
  work.kind = WorkKind::kEvaluation;
  work.samples = issue.samples;
  work.version_min = issue.version_min;
  auto issued = co_await ask(context_, peers_.data, issue);
  if (!issued) co_return issued.failure();
  SamplingSpec sampling = plan_.sampling;
  sampling.temperature = greedy ? 0.0f : plan_.evaluation_temperature;
  sampling.top_p = 1;
  sampling.top_k = 0;
  sampling.min_p = 0;
  work.sampling = std::make_shared<const SamplingSpec>(std::move(sampling));
  fleet_.add(issued->tickets, std::move(work));
  auto statuses = co_await settled_groups(update);
  if (!statuses) co_return statuses.failure();
  EvaluationReport report;
  report.done = done;
  report.greedy = greedy;
  for (const GroupStatus& group : statuses->groups) {
    if (group.ready()) {
      report.accuracy.push_back(group.mean_score);
    } else if (report.missing++ == 0) {
      listener_.on_note("held-out problem " + std::to_string(group.ticket.slot + 1) +
                           " cannot be scored and is left out of the figures: " + group.cause);
    }
  }
  CommitUpdate commit{update, done};
  auto committed = co_await ask(context_, peers_.data, commit);
  if (!committed) co_return committed.failure();
  fleet_.forget(update);
  report.seconds = std::chrono::duration<double>(context_.timers->now() - begin).count();
  co_return listener_.on_evaluation(report);
}

// Once each group is ready or has failed. A held-out problem that cannot be scored is left out, and
// counted; another would not be the same evaluation.
async::task<core::Result<GroupStatuses>> Controller::settled_groups(std::uint64_t update) {
  for (;;) {
    AwaitGroups await;
    await.update = update;
    auto statuses = co_await ask(context_, peers_.data, std::move(await));
    if (!statuses || is_settled(*statuses)) co_return statuses;
    co_await async::sleep_for(*context_.timers, limits::kSettlePoll);
  }
}

}  // namespace troupe::actors
