// The trainer's loop, and what happens to the company.
#include "actors/controller/controller.hpp"

#include "actors/controller/update_metrics.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

double seconds_between(core::TimePoint from, core::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

// The scope of the company is there for this long and no longer.
struct Controller::Stay {
  explicit Stay(Controller& owner) : controller(owner) {}
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;
  ~Stay() {
    controller.straggler_timer_.disarm();
    controller.scope_ = nullptr;
    controller.fleet_.end();
  }
  Controller& controller;
};

Controller::Controller(RoleContext context, RunPlan plan, CompanyPeers peers, RunListener& listener)
    : context_(std::move(context)),
      plan_(std::move(plan)),
      peers_(std::move(peers)),
      listener_(listener),
      sampling_(std::make_shared<const SamplingSpec>(plan_.sampling)),
      changed_(*context_.timers),
      news_(*context_.timers),
      fleet_(context_,
             plan_,
             listener_,
             Fleet::Hooks{[this](const experience::Ticket& ticket) { retired(ticket); },
                          [this](std::uint64_t update) {
                            if (awaited_ == update) listener_.on_phase("score");
                          }}),
      rewards_(context_, peers_.data, plan_, listener_, changed_, [this] { return next_issue_; }),
      starts_(plan_.staleness_max),
      done_(plan_.first_update),
      committed_(plan_.first_update),
      next_issue_(plan_.first_update),
      issued_(plan_.first_update) {
  for (const auto& name : peers_.generators)
    fleet_.up(name, 0);
}

async::task<core::Result<void>> Controller::load(std::string folder) {
  for (std::string peer : stateful_peers()) {
    LoadState load{folder};
    auto loaded = co_await ask(context_, std::move(peer), std::move(load));
    if (!loaded) co_return state_error(loaded.error());
  }
  co_return core::Result<void>();
}

std::vector<std::string> Controller::stateful_peers() const {
  std::vector<std::string> peers = {peers_.policy};
  if (!peers_.critic.empty()) peers.push_back(peers_.critic);
  peers.push_back(peers_.data);
  return peers;
}

async::task<core::Result<void>> Controller::run() {
  core::Result<void> played;
  if (early_) {
    played = core::fail(*early_);
  } else {
    played = co_await async::with_scope(&Controller::play, this);
  }
  if (played) co_return played;
  core::Error error = played.error();
  auto saved = save_last(std::move(error));
  co_return co_await std::move(saved);
}

async::task<core::Result<void>> Controller::play(async::Scope& scope, Controller* self) {
  scope.spawn("", self->company());
  while (self->scope_ == nullptr && !self->ending_) {
    const bool woken = co_await self->changed_.wait(async::Deadline::none());
    static_cast<void>(woken);
  }
  auto played = co_await self->trainer();
  if (!played) co_return played.failure();
  scope.cancel();  // weights that are still on their way, timers
  co_return core::Result<void>();
}

// Whatever goes on beside the trainer. An error here ends the run once the trainer has done with
// its update: what is learned is then committed, too, and can be saved.
async::task<core::Result<void>> Controller::company() {
  core::Result<void> ended;
  {
    const Stay stay(*this);
    ended = co_await async::with_scope(&Controller::begin_company, this);
  }
  if (!ended) ending_ = ended.error();
  while (!ended && whole_ > 0 && !state_lost_) {
    const bool woken = co_await changed_.wait(async::Deadline::none());
    static_cast<void>(woken);
  }
  co_return ended;
}

async::task<core::Result<void>> Controller::begin_company(async::Scope& scope, Controller* self) {
  self->scope_ = &scope;
  self->fleet_.begin(scope);
  scope.spawn("", self->issuer());
  scope.spawn("", self->watch_stop());
  scope.spawn("", self->rewards_.await_absent());
  self->changed_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<void>> Controller::trainer() {
  TROUPE_CO_TRY(co_await publish(done_));
  const bool ahead = plan_.staleness_max > 0;
  if (ahead) release(done_);
  if (done_ == 0 && plan_.evaluate_after(0)) TROUPE_CO_TRY(co_await evaluate(0));
  release(done_);
  while (done_ < plan_.updates) {
    TROUPE_CO_TRY(co_await one_update(done_));
    if (ending_) co_return core::fail(*ending_);
    TROUPE_CO_TRY_ASSIGN(stop, co_await after_update(done_));
    if (stop && done_ < plan_.updates) {
      co_return core::fail(core::ErrorCode::kInterrupted,
                           "stopped after update " + std::to_string(done_) +
                               " as asked; run the same command again to go on from there");
    }
    // Without staleness the next tickets wait for evaluation and checkpoint: what is saved is then
    // the state between two updates.
    release(done_);
  }
  co_return core::Result<void>();
}

async::task<core::Result<bool>> Controller::after_update(std::uint64_t done) {
  if (plan_.evaluate_after(done)) TROUPE_CO_TRY(co_await evaluate(done));
  const bool stop = listener_.stop_requested();
  const bool best = listener_.is_best(done);
  if (stop || plan_.save_after(done) || best) {
    TROUPE_CO_TRY(co_await save(done, best || done == plan_.updates));
  }
  co_return stop;
}

async::task<core::Result<void>> Controller::one_update(std::uint64_t update) {
  const core::TimePoint begin = context_.timers->now();
  auto statuses = co_await collect(update);
  if (!statuses && used_up_) {
    core::Error error = *used_up_;
    auto ended = prompts_used_up(std::move(error));
    co_return co_await std::move(ended);
  }
  if (!statuses) co_return statuses.failure();
  const core::TimePoint generated = context_.timers->now();

  if (ending_) co_return core::fail(*ending_);

  const Whole whole(*this);
  listener_.on_phase("train");
  TrainUpdate train{update, plan_.groups};
  auto trained = co_await ask(context_, peers_.policy, train);
  if (!trained) co_return state_error(trained.error());
  const core::TimePoint after_train = context_.timers->now();

  listener_.on_phase("publish");
  done_ = update + 1;
  auto published = co_await publish(done_);
  if (plan_.staleness_max > 0 && published) release(done_);
  CommitUpdate commit{update, update + 1};
  auto committed = co_await ask(context_, peers_.data, commit);
  if (!committed) co_return state_error(committed.error());
  committed_ = done_;
  if (scope_ != nullptr) fleet_.forget(update);
  const std::uint64_t filtered = forget_slots(update);
  const core::TimePoint end = context_.timers->now();

  UpdateReport report;
  report.done = update + 1;
  report.metrics = std::move(trained->metrics);
  report_groups(*statuses, report);
  if (plan_.filters) {
    report.metrics.emplace_back("reward/filtered_groups", static_cast<double>(filtered));
  }
  const double step_s = seconds_between(begin, end);
  report.metrics.emplace_back("async/version", static_cast<double>(trained->version));
  report.metrics.emplace_back("time/generate", seconds_between(begin, generated));
  report.metrics.emplace_back("time/train", seconds_between(generated, after_train));
  report.metrics.emplace_back("time/sync", seconds_between(after_train, end));
  report.metrics.emplace_back("time/step", step_s);
  std::uint64_t tokens = 0;
  for (const GroupStatus& group : statuses->groups)
    tokens += group.tokens;
  report.metrics.emplace_back("perf/tokens_per_s",
                              static_cast<double>(tokens) / std::max(step_s, 1e-9));
  TROUPE_CO_TRY(listener_.on_update(report));
  co_return published;
}

void Controller::report_groups(const GroupStatuses& statuses, UpdateReport& report) {
  add_reward_metrics(statuses, report.metrics);
  if (const std::uint64_t missing = missing_scores(statuses); missing > 0)
    counts_["sample without a score"] += missing;
  add_staleness_metrics(statuses, report.metrics);
  report.metrics.emplace_back("async/queue", static_cast<double>(fleet_.waiting()));
  report.metrics.emplace_back("async/generators", static_cast<double>(fleet_.generators_up()));
  if (staleness_.size() < statuses.staleness.size()) staleness_.resize(statuses.staleness.size());
  for (std::size_t age = 0; age < statuses.staleness.size(); ++age) {
    staleness_[age] += statuses.staleness[age];
  }
}

bool Controller::is_settled(const GroupStatuses& statuses) {
  return std::none_of(statuses.groups.begin(), statuses.groups.end(), [](const auto& group) {
    return group.state == experience::GroupState::kIssued ||
           group.state == experience::GroupState::kGenerated;
  });
}

// Waits until every slot of the update has a group that can be learned from.
async::task<core::Result<GroupStatuses>> Controller::collect(std::uint64_t update) {
  listener_.on_phase("generate");
  while (issued_ <= update) {
    if (used_up_) co_return core::fail(*used_up_);
    const bool woken = co_await changed_.wait(async::Deadline::none());
    static_cast<void>(woken);
  }
  awaited_ = update;
  watch_stragglers(update);
  for (;;) {
    AwaitGroups await;
    await.update = update;
    await.starts = starts_.window(update);
    auto statuses = co_await ask(context_, peers_.data, std::move(await));
    if (!statuses) co_return statuses.failure();
    const bool all_ready = std::all_of(statuses->groups.begin(), statuses->groups.end(),
                                       [](const auto& group) { return group.ready(); });
    if (all_ready) {
      awaited_.reset();
      straggler_timer_.disarm();
      co_return statuses;
    }
    // Without staleness everything follows from ids: fresh prompts are drawn in slot order once all
    // is known, not in the order in which groups happen to fail.
    if (plan_.staleness_max == 0 && !is_settled(*statuses)) {
      co_await async::sleep_for(*context_.timers, limits::kSettlePoll);
      continue;
    }
    ReissueTickets again;
    TROUPE_CO_TRY_ASSIGN(failed, failed_groups(update, *statuses));
    again.tickets = std::move(failed);
    if (again.tickets.empty()) continue;
    auto reissued = co_await reissue(std::move(again));
    if (!reissued && reissued.error().code == core::ErrorCode::kNotFound) {
      used_up_ = reissued.error();
    }
    TROUPE_CO_TRY(reissued);
    listener_.on_phase("generate");
  }
}

async::task<core::Result<void>> Controller::publish(std::uint64_t update) {
  PublishWeights request;
  auto published = co_await ask(context_, peers_.policy, request);
  if (!published) co_return state_error(published.error());
  if (published_) published_(*published);
  starts_.record(update, published->version);
  if (scope_ != nullptr) fleet_.offer(*published);
  news_.notify_all();
  co_return core::Result<void>();
}

async::task<core::Result<void>> Controller::save(std::uint64_t done, bool models) {
  const Whole whole(*this);
  listener_.on_phase("checkpoint");
  auto saved = co_await write_checkpoint(done, models);
  if (saved) saved_ = done;
  save_failed_ = !saved;
  co_return saved;
}

async::task<core::Result<void>> Controller::write_checkpoint(std::uint64_t done, bool models) {
  TROUPE_CO_TRY_ASSIGN(folder, listener_.begin_checkpoint(done));
  for (std::string peer : stateful_peers()) {
    SaveState state{folder.string()};
    auto saved = co_await ask(context_, std::move(peer), std::move(state));
    if (!saved) co_return state_error(saved.error());
  }
  if (models) {
    SaveModel model{(folder / "model").string()};
    auto model_saved = co_await ask(context_, peers_.policy, model);
    if (!model_saved) co_return state_error(model_saved.error());
  }
  if (models && plan_.save_critic && !peers_.critic.empty()) {
    SaveModel critic{(folder / "critic_model").string()};
    auto critic_saved = co_await ask(context_, peers_.critic, critic);
    if (!critic_saved) co_return state_error(critic_saved.error());
  }
  auto at = co_await listener_.commit_checkpoint(done);
  if (!at) co_return at.failure();
  saved_at_ = std::move(*at);
  co_return core::Result<void>();
}

void Controller::peer_up(const std::string& name, std::uint64_t epoch) {
  if (name.starts_with("generator/")) {
    fleet_.up(name, epoch);
  } else {
    listener_.on_peer(name, true, "");
    rewards_.up(name);
  }
}

void Controller::peer_lost(const std::string& name, const core::Error& error) {
  if (fleet_.knows(name)) return fleet_.lost(name, error.message);
  listener_.on_peer(name, false, error.message);
  if (holds_state(name)) {
    state_lost_ = true;
    const bool named = error.message.find(name) != std::string::npos;
    end({core::ErrorCode::kPeerLost, named ? error.message : name + ": " + error.message});
  } else if (rewards_.is_attached(name) && scope_ != nullptr) {
    scope_->spawn("", rewards_.lose(name, error.message));
  }
}

async::task<core::Result<RewardsChanged>> Controller::on(AttachReward request) {
  auto changed = co_await rewards_.attach(std::move(request));
  co_return changed;
}

async::task<core::Result<RewardsChanged>> Controller::on(ReweightReward request) {
  auto changed = co_await rewards_.reweight(std::move(request));
  co_return changed;
}

async::task<core::Result<RewardsChanged>> Controller::on(DetachReward request) {
  auto changed = co_await rewards_.detach(std::move(request));
  co_return changed;
}

async::task<core::Result<Published>> Controller::on(AwaitPublished request) {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, limits::kNewsWait);
  const auto is_news = [&] {
    const auto& newest = fleet_.latest();
    return newest && (!request.held || newest->version > *request.held);
  };
  while (!is_news()) {
    const bool woken = co_await news_.wait(deadline);
    if (!woken) break;
  }
  if (!fleet_.latest())
    co_return core::fail(core::ErrorCode::kNotFound, "no weights were published yet");
  co_return *fleet_.latest();
}

ControllerSnapshot Controller::snapshot() const {
  ControllerSnapshot now;
  now.version = starts_.all().empty() ? 0 : starts_.newest();
  now.done = done_;
  now.issued = issued_;
  now.queue = fleet_.waiting();
  now.generators = fleet_.lines();
  now.staleness = staleness_;
  now.counts = counts_;
  for (const auto& [cause, count] : fleet_.counts())
    now.counts[cause] += count;
  now.reward_set = rewards_.board().set();
  now.rewards = rewards_.board().members();
  return now;
}

}  // namespace troupe::actors
