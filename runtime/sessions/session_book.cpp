#include "runtime/sessions/session_book.hpp"

#include "runtime/core/secret.hpp"

namespace troupe::sessions {

bool SessionBook::make_room() {
  if (sessions_.size() < options_.sessions_max) return true;
  const core::TimePoint idle = timers_.now() - options_.idle;
  auto oldest = sessions_.end();
  for (auto line = sessions_.begin(); line != sessions_.end(); ++line) {
    const bool may_go = line->second.used <= idle || line->second.opened.session->ended();
    if (may_go && (oldest == sessions_.end() || line->second.used < oldest->second.used))
      oldest = line;
  }
  if (oldest == sessions_.end()) return false;
  sessions_.erase(oldest);
  return true;
}

core::Result<OpenedSession> SessionBook::open(std::optional<std::size_t> owner) {
  if (!make_room()) {
    return core::fail(
        core::ErrorCode::kOverloaded,
        "there are " + std::to_string(sessions_.size()) + " sessions, which is the most",
        "end one by POST /sessions/ID/end");
  }
  auto session = std::make_shared<Session>(core::random_hex(kSessionId_bytes), options_.bounds);
  const std::string& id = session->id();
  Line& line = sessions_[id];
  line = {{std::move(session), {std::shared_ptr<void>(), &sampler_}, owner}, timers_.now()};
  return line.opened;
}

std::optional<OpenedSession> SessionBook::find(std::string_view id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  found->second.used = timers_.now();
  return found->second.opened;
}

}  // namespace troupe::sessions
