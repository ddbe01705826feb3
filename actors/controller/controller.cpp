// The loop of a run.
#include "actors/controller/controller.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/data/data_role.hpp"
#include "actors/protocol/ask.hpp"

namespace troupe::actors {
namespace {

double seconds_between(core::TimePoint from, core::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// Mean, deviation, extremes of the groups' mean scores, and the share of groups without a signal.
void add_reward_metrics(const GroupStatuses& statuses, Metrics& metrics) {
  double sum = 0, squares = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::uint64_t tokens = 0, samples = 0;
  for (const GroupStatus& group : statuses.groups) {
    sum += group.mean_score;
    squares += group.mean_score * group.mean_score;
    low = std::min(low, group.mean_score);
    high = std::max(high, group.mean_score);
    tokens += group.tokens;
    samples += group.samples;
  }
  const double count = static_cast<double>(statuses.groups.size());
  const double mean = sum / count;
  metrics.emplace_back("reward/mean", mean);
  metrics.emplace_back("reward/group_std", std::sqrt(std::max(0.0, squares / count - mean * mean)));
  metrics.emplace_back("reward/group_min", low);
  metrics.emplace_back("reward/group_max", high);
  metrics.emplace_back("response/length_mean",
                       static_cast<double>(tokens) / static_cast<double>(std::max<std::uint64_t>(
                                                         samples, 1)));
}

}  // namespace

Controller::Controller(RoleContext context, RunPlan plan, CompanyPeers peers,
                       RunListener& listener)
    : context_(std::move(context)),
      plan_(std::move(plan)),
      peers_(std::move(peers)),
      listener_(listener) {}

async::task<core::Result<void>> Controller::load(std::string folder) {
  LoadState policy{folder};
  auto loaded = co_await ask(context_, peers_.policy, std::move(policy));
  if (!loaded) co_return loaded.failure();
  LoadState data{folder};
  auto data_loaded = co_await ask(context_, peers_.data, std::move(data));
  if (!data_loaded) co_return data_loaded.failure();
  co_return core::Result<void>();
}

async::task<core::Result<void>> Controller::run() {
  TROUPE_CO_TRY(co_await publish());
  std::uint64_t done = plan_.first_update;
  if (done == 0 && plan_.evaluate_after(0)) {
    TROUPE_CO_TRY(co_await evaluate(0, true));
    TROUPE_CO_TRY(co_await evaluate(0, false));
  }
  while (done < plan_.updates) {
    TROUPE_CHECK(plan_.may_issue(done, done), "the next update may always be issued");
    TROUPE_CO_TRY(co_await one_update(done));
    ++done;
    if (plan_.evaluate_after(done)) {
      TROUPE_CO_TRY(co_await evaluate(done, true));
      TROUPE_CO_TRY(co_await evaluate(done, false));
    }
    const bool stop = listener_.stop_requested();
    if (stop || plan_.save_after(done)) TROUPE_CO_TRY(co_await save(done));
    if (stop && done < plan_.updates) {
      co_return core::fail(core::ErrorCode::kInterrupted,
                           "stopped after update " + std::to_string(done) +
                               " as asked; run the same command again to go on from there");
    }
  }
  co_return core::Result<void>();
}

async::task<core::Result<void>> Controller::one_update(std::uint64_t update) {
  const core::TimePoint begin = context_.timers->now();
  listener_.on_phase("generate");
  Generated totals;
  auto statuses = co_await collect(update, totals);
  if (!statuses) co_return statuses.failure();
  const core::TimePoint generated = context_.timers->now();

  listener_.on_phase("train");
  TrainUpdate train{update, plan_.groups};
  auto trained = co_await ask(context_, peers_.policy, train);
  if (!trained) co_return trained.failure();
  const core::TimePoint after_train = context_.timers->now();

  listener_.on_phase("publish");
  TROUPE_CO_TRY(co_await publish());
  CommitUpdate commit{update, update + 1};
  auto committed = co_await ask(context_, peers_.data, commit);
  if (!committed) co_return committed.failure();
  const core::TimePoint end = context_.timers->now();

  UpdateReport report;
  report.done = update + 1;
  report.metrics = std::move(trained->metrics);
  add_reward_metrics(*statuses, report.metrics);
  const double step_s = seconds_between(begin, end);
  report.metrics.emplace_back("async/version", static_cast<double>(trained->version));
  report.metrics.emplace_back("time/generate", seconds_between(begin, generated));
  report.metrics.emplace_back("time/train", seconds_between(generated, after_train));
  report.metrics.emplace_back("time/sync", seconds_between(after_train, end));
  report.metrics.emplace_back("time/step", step_s);
  report.metrics.emplace_back(
      "perf/tokens_per_s",
      static_cast<double>(totals.tokens + totals.prompt_tokens) / std::max(step_s, 1e-9));
  co_return listener_.on_update(report);
}

async::task<core::Result<Generated>> Controller::generate(std::vector<core::Ticket> tickets,
                                                          SamplingSpec sampling) {
  Generate request;
  request.tickets = std::move(tickets);
  request.sampling = std::move(sampling);
  auto generated = co_await ask(context_, peers_.generator, std::move(request));
  co_return generated;
}

// Tickets out, groups in, until every slot of the update has a group that can be learned from.
async::task<core::Result<GroupStatuses>> Controller::collect(std::uint64_t update,
                                                             Generated& totals) {
  IssueTickets issue;
  issue.update = update;
  issue.groups = plan_.groups;
  auto issued = co_await ask(context_, peers_.data, issue);
  if (!issued) co_return issued.failure();
  std::vector<core::Ticket> open = std::move(issued->tickets);
  for (;;) {
    auto generated = co_await generate(open, plan_.sampling);
    if (!generated) co_return generated.failure();
    totals.samples += generated->samples;
    totals.tokens += generated->tokens;
    totals.prompt_tokens += generated->prompt_tokens;
    listener_.on_phase("score");
    AwaitGroups await{update};
    auto statuses = co_await ask(context_, peers_.data, await);
    if (!statuses) co_return statuses.failure();
    ReissueTickets again;
    for (const GroupStatus& group : statuses->groups) {
      if (group.ready) continue;
      listener_.on_failed_group(update, group.ticket.slot, group.cause);
      if (group.ticket.attempt + 1 >= plan_.attempts_max) {
        co_return core::fail(core::ErrorCode::kData,
                             std::to_string(plan_.attempts_max) + " groups in a row failed in one "
                             "slot of update " + std::to_string(update) + "; the last: " +
                                 group.cause);
      }
      again.tickets.push_back(group.ticket);
    }
    if (again.tickets.empty()) co_return statuses;
    auto reissued = co_await ask(context_, peers_.data, std::move(again));
    if (!reissued) co_return reissued.failure();
    open = std::move(reissued->tickets);
  }
}

async::task<core::Result<void>> Controller::publish() {
  PublishWeights request;
  auto published = co_await ask(context_, peers_.policy, request);
  if (!published) co_return published.failure();
  UpdateWeights update{published->version};
  auto taken = co_await ask(context_, peers_.generator, update);
  if (!taken) co_return taken.failure();
  co_return core::Result<void>();
}

async::task<core::Result<void>> Controller::evaluate(std::uint64_t done, bool greedy) {
  listener_.on_phase("evaluate");
  const core::TimePoint begin = context_.timers->now();
  const std::uint64_t update = kFirstEvaluation + 2 * done + (greedy ? 1 : 0);
  IssueTickets issue;
  issue.update = update;
  issue.groups = plan_.evaluation_groups;
  issue.samples = greedy ? 1 : plan_.evaluation_samples;
  issue.evaluation = true;
  auto issued = co_await ask(context_, peers_.data, issue);
  if (!issued) co_return issued.failure();
  SamplingSpec sampling = plan_.sampling;
  sampling.temperature = greedy ? 0.0f : plan_.evaluation_temperature;
  sampling.top_p = 1;
  sampling.top_k = 0;
  sampling.min_p = 0;
  auto generated = co_await generate(std::move(issued->tickets), std::move(sampling));
  if (!generated) co_return generated.failure();
  AwaitGroups await{update};
  auto statuses = co_await ask(context_, peers_.data, await);
  if (!statuses) co_return statuses.failure();
  EvaluationReport report;
  report.done = done;
  report.greedy = greedy;
  for (const GroupStatus& group : statuses->groups) {
    if (!group.ready) {
      co_return core::fail(core::ErrorCode::kData,
                           "held-out problem " + std::to_string(group.ticket.slot + 1) +
                               " cannot be scored: " + group.cause);
    }
    report.accuracy.push_back(group.mean_score);
  }
  CommitUpdate commit{update, done};
  auto committed = co_await ask(context_, peers_.data, commit);
  if (!committed) co_return committed.failure();
  report.seconds = seconds_between(begin, context_.timers->now());
  co_return listener_.on_evaluation(report);
}

async::task<core::Result<void>> Controller::save(std::uint64_t done) {
  listener_.on_phase("checkpoint");
  TROUPE_CO_TRY_ASSIGN(folder, listener_.begin_checkpoint(done));
  SaveState policy{folder.string()};
  auto policy_saved = co_await ask(context_, peers_.policy, policy);
  if (!policy_saved) co_return policy_saved.failure();
  SaveState data{folder.string()};
  auto data_saved = co_await ask(context_, peers_.data, data);
  if (!data_saved) co_return data_saved.failure();
  if (done == plan_.updates) {
    SaveModel model{(folder / "model").string()};
    auto model_saved = co_await ask(context_, peers_.policy, model);
    if (!model_saved) co_return model_saved.failure();
  }
  co_return listener_.commit_checkpoint(done);
}

}  // namespace troupe::actors
