#include "apps/session/session_news.hpp"

#include "apps/session/run_session.hpp"

namespace troupe::session {

void SessionNews::tell(std::function<void(actors::controller::Conductor&)> what) const {
  const std::lock_guard lock(mutex_);
  if (session_ != nullptr) session_->tell(std::move(what));
}

bool SessionNews::attach(RunSession& session) {
  const std::lock_guard lock(mutex_);
  session_ = &session;
  if (hopeless_) {
    session.end(*hopeless_);
  } else {
    session.tell(
        [why = regroup_](actors::controller::Conductor& conductor) { conductor.regroup(why); });
  }
  return !hopeless_;
}

void SessionNews::detach() {
  const std::lock_guard lock(mutex_);
  session_ = nullptr;
}

void SessionNews::role_up(const std::string& role, std::uint64_t epoch) {
  tell([role, epoch](actors::controller::Conductor& conductor) { conductor.peer_up(role, epoch); });
}

void SessionNews::role_lost(const std::string& role, const core::Error& cause) {
  tell([role, cause](actors::controller::Conductor& conductor) {
    conductor.peer_lost(role, cause);
  });
}

void SessionNews::regroup(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    regroup_ = why;
  }
  tell([why](actors::controller::Conductor& conductor) { conductor.regroup(why); });
}

void SessionNews::give_up(const core::Error& error) {
  const std::lock_guard lock(mutex_);
  if (!hopeless_) hopeless_ = error;
  if (session_ != nullptr) session_->end(error);
}

std::optional<core::Error> SessionNews::hopeless() const {
  const std::lock_guard lock(mutex_);
  return hopeless_;
}

}  // namespace troupe::session
