#include "actors/controller/update_loop.hpp"

#include "actors/controller/disk_patience.hpp"
#include "actors/controller/update_metrics.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/config/reward_names.hpp"

#include <algorithm>

namespace troupe::actors::controller {
namespace {

double seconds_between(core::TimePoint from, core::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

async::task<core::Result<void>> ask_commit(RunState& run, std::uint64_t update) {
  const CommitUpdate commit{update, update + 1};
  TROUPE_CO_TRY(co_await ask(run.context, kDataRole, commit));
  co_return core::Result<void>();
}

async::task<core::Result<void>> done_with(core::Result<void> result) {
  co_return result;
}

}  // namespace

UpdateLoop::UpdateLoop(RunState& run,
                       Fleet& generators,
                       Fleet& tickets,
                       TicketIssuer& issuer,
                       Checkpointer& checkpointer,
                       EarlyStop& stop)
    : run_(run),
      generators_(generators),
      tickets_(tickets),
      issuer_(issuer),
      checkpointer_(checkpointer),
      stop_(stop),
      evaluator_(run, tickets, checkpointer),
      news_(*run.context.timers) {}

async::task<core::Result<void>> UpdateLoop::run() {
  for (const auto& [update, version] : run_.plan.earlier_starts)
    run_.starts.record(update, version);
  TROUPE_CO_TRY(co_await publish(run_.done));
  const bool ahead = run_.plan.staleness_max > 0;
  if (ahead) issuer_.release(run_.done);
  if (run_.plan.evaluations_due(run_.done) > 0) TROUPE_CO_TRY(co_await evaluator_.run(run_.done));
  issuer_.release(run_.done);
  while (run_.done < run_.plan.updates) {
    TROUPE_CO_TRY(co_await one_update(run_.done));
    if (run_.ending) co_return core::fail(*run_.ending);
    TROUPE_CO_TRY_ASSIGN(stop, co_await after_update(run_.done));
    if (stop && run_.done < run_.plan.updates) {
      co_return core::fail(core::ErrorCode::kInterrupted,
                           "stopped after update " + std::to_string(run_.done) + " as asked",
                           "run the same command again to go on from there");
    }
    // In a synchronous run the next tickets wait for evaluation and checkpoint, so the checkpoint
    // holds the state between two updates.
    issuer_.release(run_.done);
  }
  co_return core::Result<void>();
}

async::task<core::Result<bool>> UpdateLoop::after_update(std::uint64_t done) {
  // A run that has little time left to end makes the evaluation when it goes on.
  const bool hurried = run_.listener.stop_deadline() && done >= run_.known;
  if (run_.plan.evaluate_after(done) && (!hurried || done == run_.plan.updates))
    TROUPE_CO_TRY(co_await evaluator_.run(done));
  if (done < run_.known) co_return false;
  const bool stop = run_.listener.stop_requested();
  co_await stop_.pass();
  const bool best = run_.listener.is_best(done);
  const bool due = checkpointer_.due() || run_.listener.log_is_long(done);
  if (stop || run_.plan.save_after(done) || best || due) {
    TROUPE_CO_TRY(co_await checkpointer_.save(done, best || done == run_.plan.updates));
  }
  co_return stop;
}

async::task<core::Result<void>> UpdateLoop::one_update(std::uint64_t update) {
  const core::TimePoint begin = run_.context.timers->now();
  auto statuses = co_await collect(update);
  if (!statuses && issuer_.used_up()) co_return co_await prompts_used_up(*issuer_.used_up());
  if (!statuses) co_return statuses.failure();
  const core::TimePoint generated = run_.context.timers->now();

  if (run_.ending) co_return core::fail(*run_.ending);
  co_await stop_.pass();
  if (issuer_.sampled_again()) {
    co_return checkpointer_.misfit(run_.known);
  }

  const auto whole = run_.whole_step();
  run_.listener.on_phase("train");
  if (update < run_.known) run_.grace.skip();
  run_.grace.begin(Grace::Step::kTrain, generated);
  TrainUpdate train{update, run_.plan.groups};
  auto trained = co_await ask(run_.context, kPolicyRole, train);
  if (!trained) co_return checkpointer_.update_failed(update, trained.error());
  const core::TimePoint after_train = run_.context.timers->now();

  run_.listener.on_phase("publish");
  run_.done = update + 1;
  auto published = co_await publish(run_.done);
  if (run_.plan.staleness_max > 0 && published) issuer_.release(run_.done);
  auto committed = co_await commit(update);
  if (!committed) co_return checkpointer_.failure_of(committed.error());
  run_.committed = run_.done;
  tickets_.forget(update);
  const std::uint64_t filtered = issuer_.forget(update);
  const core::TimePoint end = run_.context.timers->now();

  UpdateReport report;
  report.done = update + 1;
  report.metrics = std::move(trained->metrics);
  report_groups(*statuses, report);
  const auto add = [&report](const char* name, double value) {
    report.metrics.emplace_back(name, value);
  };
  if (run_.plan.filters)
    add(config::reward_figure("filtered_groups").c_str(), static_cast<double>(filtered));
  const double step_s = seconds_between(begin, end);
  add("async/version", static_cast<double>(trained->version));
  add("time/generate", seconds_between(begin, generated));
  add("time/train", seconds_between(generated, after_train));
  add("time/sync", seconds_between(after_train, end));
  add("time/step", step_s);
  std::uint64_t tokens = 0;
  for (const GroupStatus& group : statuses->groups)
    tokens += group.tokens;
  add("perf/tokens_per_s", static_cast<double>(tokens) / std::max(step_s, 1e-9));
  TROUPE_CO_TRY(co_await write_down(update, std::move(report)));
  if (update < run_.known) run_.grace.skip();
  run_.grace.end(run_.context.timers->now());
  co_return published;
}

async::task<core::Result<void>> UpdateLoop::commit(std::uint64_t update) {
  std::function<async::task<core::Result<void>>()> step = [this, update] {
    return ask_commit(run_, update);
  };
  co_return co_await patiently(
      &run_, experience::name_of_update(update) + " cannot be written down", std::move(step));
}

async::task<core::Result<void>> UpdateLoop::write_down(std::uint64_t update, UpdateReport report) {
  auto kept = std::make_shared<const UpdateReport>(std::move(report));
  std::function<async::task<core::Result<void>>()> step = [this, kept] {
    return done_with(run_.listener.on_update(*kept));
  };
  co_return co_await patiently(&run_, "the metrics of " + experience::name_of_update(update),
                               std::move(step));
}

void UpdateLoop::report_groups(const GroupStatuses& statuses, UpdateReport& report) {
  add_reward_metrics(statuses, report.metrics);
  if (const std::uint64_t missing = missing_scores(statuses); missing > 0)
    run_.counts["sample without a score"] += missing;
  add_staleness_metrics(statuses, report.metrics);
  report.metrics.emplace_back("async/queue", static_cast<double>(tickets_.waiting()));
  report.metrics.emplace_back("async/generators", static_cast<double>(generators_.up_count()));
  if (staleness_.size() < statuses.staleness.size()) staleness_.resize(statuses.staleness.size());
  for (std::size_t age = 0; age < statuses.staleness.size(); ++age) {
    staleness_[age] += statuses.staleness[age];
  }
}

// Waits until every slot of the update has a group that can be learned from.
async::task<core::Result<GroupStatuses>> UpdateLoop::collect(std::uint64_t update) {
  run_.listener.on_phase("generate");
  run_.grace.begin(Grace::Step::kCollect, run_.context.timers->now());
  TROUPE_CO_TRY(co_await issuer_.await_issued(update));
  run_.awaited = update;
  watch_stragglers(update);
  for (;;) {
    AwaitGroups await{update, run_.starts.window(update)};
    TROUPE_CO_TRY_ASSIGN(statuses, co_await ask(run_.context, kDataRole, std::move(await)));
    const bool all_ready = std::all_of(statuses.groups.begin(), statuses.groups.end(),
                                       [](const auto& group) { return group.ready(); });
    if (all_ready) {
      run_.awaited.reset();
      straggler_timer_.disarm();
      co_return statuses;
    }
    TROUPE_CO_TRY_ASSIGN(again, co_await issuer_.reissue_failed(std::move(statuses)));
    if (again) run_.listener.on_phase("generate");
  }
}

async::task<core::Result<void>> UpdateLoop::publish(std::uint64_t update) {
  PublishWeights request{update};
  auto published = co_await ask(run_.context, kPolicyRole, request);
  if (!published) co_return checkpointer_.failure_of(published.error());
  if (told_) told_(*published);
  run_.starts.record(update, published->version);
  generators_.offer(*published);
  news_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<Published>> UpdateLoop::await_published(AwaitPublished request) {
  const async::Deadline deadline =
      async::Deadline::after(*run_.context.timers, actors::limits::kNewsWait);
  const auto is_news = [&] {
    const auto& newest = generators_.latest();
    return newest && (!request.held || newest->version > *request.held);
  };
  while (!is_news()) {
    if (!co_await news_.wait(deadline)) break;
  }
  if (!generators_.latest())
    co_return core::fail(core::ErrorCode::kNotFound, "no weights were published yet");
  co_return *generators_.latest();
}

// Filtered groups used up the prompts before the last update: saves what was learned, then fails.
async::task<core::Result<void>> UpdateLoop::prompts_used_up(core::Error error) {
  const std::string done = std::to_string(run_.done);
  if (checkpointer_.saved() != run_.done)
    TROUPE_CO_TRY(co_await checkpointer_.save(run_.done, true));
  co_return core::fail(core::ErrorCode::kData,
                       error.message + " after " + done + " of " +
                           std::to_string(run_.plan.updates) + " updates, with " +
                           std::to_string(run_.counts["group filtered"]) + " groups filtered",
                       "what was learned is in the last checkpoint. To go on from it, give its "
                       "folder as --resume with a new --run.path and more --train.num_episodes");
}

void UpdateLoop::watch_stragglers(std::uint64_t update) {
  if (run_.plan.straggler_timeout <= core::Duration::zero() || run_.scope == nullptr) return;
  std::function<void()> fire = [this, update] {
    if (run_.awaited != update || run_.scope == nullptr) return;
    tickets_.cut(update);
    watch_stragglers(update);
  };
  straggler_timer_ = run_.context.timers->arm(
      run_.scope->executor(), run_.context.timers->now() + run_.plan.straggler_timeout,
      std::move(fire));
}

}  // namespace troupe::actors::controller
