#include "actors/environment/session_episodes.hpp"

#include "actors/environment/call_sampler.hpp"
#include "actors/environment/environment_role.hpp"
#include "actors/environment/limits.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/core/foreign_text.hpp"

namespace troupe::actors::environment {

SessionEpisodes::SessionEpisodes(const RoleContext& context, const EnvironmentParts& parts)
    : context_(context),
      parts_(parts),
      sessions_(parts.sessions),
      visited_(std::make_shared<async::Notifier>(*context.timers)) {
  if (!sessions_) {
    sessions::SessionBounds bounds;
    bounds.calls_max = static_cast<std::size_t>(parts_.settings.turns_max);
    sessions_ = std::make_shared<EpisodeSessions>(
        *context_.timers, bounds, [context = context_](const EpisodeOrder& order) {
          return core::Result<std::shared_ptr<dialects::Sampler>>(
              std::make_shared<CallSampler>(context, order));
        });
  }
  const auto notify = [visited = std::weak_ptr(visited_)] {
    if (const auto here = visited.lock()) here->notify_all();
  };
  sessions_->when_changed(
      [strand = context_.scope->executor(), notify] { async::post(strand, notify); });
}

SessionEpisodes::~SessionEpisodes() {
  sessions_->when_changed(nullptr);
}

async::task<core::Result<EpisodeEnd>> SessionEpisodes::run(EpisodeOrder order, Loss* loss) {
  return parts_.program ? run_program(std::move(order), loss) : run_session(std::move(order));
}

core::Result<void> SessionEpisodes::serve() {
  if (server_ || parts_.sessions) return {};
  auto server = std::make_unique<SessionServer>(*sessions_, parts_.model, parts_.settings);
  TROUPE_TRY(server->start(parts_.address));
  server_ = std::move(server);
  if (parts_.address && parts_.note) {
    const std::string& file = parts_.address->key_file;
    parts_.note("episodes wait for sessions: POST " + server_->address() + "/sessions opens one" +
                (file.empty() ? "" : ", with the key in " + file));
  }
  return {};
}

async::task<core::Result<EpisodeEnd>> SessionEpisodes::run_program(EpisodeOrder order, Loss* loss) {
  TROUPE_CO_TRY(serve());
  TROUPE_CO_TRY_ASSIGN(visit, sessions_->begin(order));
  const core::AtExit over([this, visit] { sessions_->leave(*visit); });
  const std::shared_ptr<sessions::Session> session = sessions_->session(*visit);
  AgentTask task{server_->url(*session), sessions_->key(*visit), start_of(order)};
  const auto deadline = async::Deadline::after(*context_.timers, parts_.settings.episode_timeout_s);
  auto running = parts_.program->run(std::move(task), deadline);
  const auto outcome = co_await std::move(running);
  if (!outcome) {
    *loss = loss_of(outcome.error());
    co_return outcome.failure();
  }
  session->end();
  auto rewarding = see_end(visit);
  co_await std::move(rewarding);
  co_return end_of(*session, parts_.program->name());
}

// The port may be another process's for a while: the environment of a run whose head was killed.
async::task<core::Result<void>> SessionEpisodes::serve_when_free() {
  for (;;) {
    const auto served = serve();
    if (served || served.error().code != ErrorCode::kResources) co_return served;
    if (parts_.note && !std::exchange(awaits_port_, true)) {
      parts_.note(core::with_fact(served.error().within("--env.listen").message,
                                  "episodes wait until it is free"));
    }
    context_.set_idle("env.listen: the port is taken");
    co_await async::sleep_for(*context_.timers, limits::kListenAgain);
  }
}

async::task<core::Result<EpisodeEnd>> SessionEpisodes::run_session(EpisodeOrder order) {
  auto serving = serve_when_free();
  TROUPE_CO_TRY(co_await std::move(serving));
  context_.set_idle("episodes under way");
  const std::shared_ptr<EpisodeSessions::Visit> visit = sessions_->offer(std::move(order));
  const core::AtExit over([this, visit] { sessions_->leave(*visit); });
  while (!sessions_->session(*visit)) {
    const bool woken = co_await visited_->wait(async::Deadline::none());
    static_cast<void>(woken);
  }
  auto ending = see_end(visit);
  co_await std::move(ending);
  co_return end_of(*sessions_->session(*visit), "a session from outside");
}

// Waits until an episode's session is over.
async::task<void> SessionEpisodes::see_end(std::shared_ptr<EpisodeSessions::Visit> visit) {
  for (;;) {
    const core::TimePoint now = context_.timers->now();
    const VisitEnd end = visit_end(sessions_->state(*visit), parts_.settings, now);
    if (end.over) co_return;
    const bool woken = co_await visited_->wait(async::Deadline{end.look});
    static_cast<void>(woken);
  }
}

core::Result<EpisodeEnd> SessionEpisodes::end_of(const sessions::Session& session,
                                                 const std::string& who) {
  EpisodeEnd end;
  end.tree = session.tree();
  end.rewards = {session.score(), parts_.settings.turn_rewards};
  end.turns = end.tree.size();
  end.forked_by_template = session.forked_by_template();
  if (end.tree.leaves().empty()) {
    return core::fail(ErrorCode::kData, who + " made no call of the model");
  }
  // What follows from it is the affair of the run's rewards.
  const bool unrewarded = parts_.settings.needs_reward && !session.rewarded();
  if (unrewarded && unrewarded_ == 0 && parts_.note) {
    parts_.note(who +
                " got no reward within session.reward_timeout_s of its last call, so it has no "
                "feedback; POST one to /reward, in the place of /v1");
  }
  unrewarded_ += unrewarded ? 1 : 0;
  return end;
}

}  // namespace troupe::actors::environment
