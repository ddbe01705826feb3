#include "actors/environment/episode_sessions.hpp"

#include "runtime/core/secret.hpp"

#include <algorithm>

namespace troupe::actors::environment {
namespace {

// How often a session is looked at whose call is being answered.
constexpr core::Duration kLookAtBusy = std::chrono::seconds(1);

}  // namespace

VisitEnd visit_end(const VisitState& state, const EpisodeSettings& settings, core::TimePoint now) {
  const core::TimePoint last = state.opened + settings.episode_timeout_s;
  const bool complete = state.ended && (state.rewarded || !settings.needs_reward);
  if (now >= last || (complete && !state.busy)) return {true, now};
  if (state.busy) return {false, std::min(last, now + kLookAtBusy)};
  const core::TimePoint idle = state.used + settings.reward_timeout;
  if (now >= idle) return {true, now};
  return {false, std::min(last, idle)};
}

class EpisodeSessions::Visit {
 public:
  EpisodeOrder order;
  sessions::OpenedSession opened{};  // its session is null until a client comes
  core::TimePoint begin{}, used{};
};

EpisodeSessions::EpisodeSessions(async::Timers& timers,
                                 sessions::SessionBounds bounds,
                                 MakeSampler make)
    : timers_(timers), bounds_(bounds), make_(std::move(make)) {}

void EpisodeSessions::when_changed(std::function<void()> changed) {
  const std::lock_guard lock(listener_mutex_);
  changed_ = std::move(changed);
}

void EpisodeSessions::touched(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found != open_.end()) found->second->used = timers_.now();
  }
  const std::lock_guard lock(listener_mutex_);
  if (changed_) changed_();
}

// The caller holds `mutex_`.
core::Result<void> EpisodeSessions::furnish(Visit& visit,
                                            std::optional<std::size_t> owner,
                                            bool in_path) {
  TROUPE_TRY_ASSIGN(sampler, make_(visit.order));
  std::string id = core::random_hex(sessions::kSessionId_bytes);
  visit.opened.session =
      std::make_shared<sessions::Session>(id, bounds_, [this, id] { touched(id); });
  visit.opened.sampler = std::move(sampler);
  visit.opened.owner = owner;
  visit.opened.lock.in_path = in_path;
  visit.opened.task = visit.order.task->columns;
  visit.begin = visit.used = timers_.now();
  return {};
}

core::Result<std::shared_ptr<EpisodeSessions::Visit>> EpisodeSessions::begin(
    const EpisodeOrder& order) {
  const std::lock_guard lock(mutex_);
  auto visit = std::make_shared<Visit>(Visit{order});
  TROUPE_TRY(furnish(*visit, std::nullopt, false));
  open_[visit->opened.session->id()] = visit;
  return visit;
}

std::shared_ptr<EpisodeSessions::Visit> EpisodeSessions::offer(EpisodeOrder order) {
  const std::lock_guard lock(mutex_);
  return waiting_.emplace_back(std::make_shared<Visit>(Visit{std::move(order)}));
}

std::shared_ptr<sessions::Session> EpisodeSessions::session(const Visit& visit) const {
  const std::lock_guard lock(mutex_);
  return visit.opened.session;
}

std::string EpisodeSessions::key(const Visit& visit) const {
  const std::lock_guard lock(mutex_);
  return visit.opened.lock.key(visit.opened.session->id());
}

VisitState EpisodeSessions::state(const Visit& visit) const {
  const std::lock_guard lock(mutex_);
  const sessions::Session& session = *visit.opened.session;
  return {visit.begin, visit.used, session.ended(), session.rewarded(), session.busy()};
}

void EpisodeSessions::leave(const Visit& visit) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const auto& one) { return one.get() == &visit; });
  if (!visit.opened.session) return;
  visit.opened.session->close();
  visit.opened.sampler->close();
  open_.erase(visit.opened.session->id());
}

core::Result<sessions::OpenedSession> EpisodeSessions::open(std::optional<std::size_t> owner,
                                                            bool in_path) {
  sessions::OpenedSession opened;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      return core::fail(core::ErrorCode::kOverloaded,
                        "no episode of the run waits for a session now", "try again");
    }
    const std::shared_ptr<Visit> visit = waiting_.front();
    TROUPE_TRY(furnish(*visit, owner, in_path));
    waiting_.pop_front();
    opened = visit->opened;
    open_[opened.session->id()] = visit;
  }
  touched(opened.session->id());
  return opened;
}

std::optional<sessions::OpenedSession> EpisodeSessions::find(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return std::nullopt;
  return found->second->opened;
}

void EpisodeSessions::used(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  if (found != open_.end()) found->second->used = timers_.now();
}

}  // namespace troupe::actors::environment
