#include "runtime/sessions/session_book.hpp"

#include <openssl/rand.h>

#include <array>

namespace troupe::sessions {

std::string new_session_id() {
  std::array<unsigned char, 16> bytes{};
  ::RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool SessionBook::make_room() {
  if (sessions_.size() < options_.sessions_max) return true;
  const core::TimePoint idle = timers_.now() - options_.idle;
  auto oldest = sessions_.end();
  for (auto line = sessions_.begin(); line != sessions_.end(); ++line) {
    const bool may_go = line->second.used <= idle || line->second.session->ended();
    if (may_go && (oldest == sessions_.end() || line->second.used < oldest->second.used))
      oldest = line;
  }
  if (oldest == sessions_.end()) return false;
  sessions_.erase(oldest);
  return true;
}

async::task<core::Result<OpenedSession>> SessionBook::open(std::string,
                                                           std::optional<std::size_t> owner) {
  if (!make_room()) {
    co_return core::fail(core::ErrorCode::kOverloaded,
                         "there are " + std::to_string(sessions_.size()) +
                             " sessions, which is the most; end one by POST /sessions/ID/end");
  }
  OpenedSession opened;
  opened.session = std::make_shared<Session>(new_session_id(), options_.bounds);
  opened.sampler = sampler();
  opened.owner = owner;
  sessions_[opened.session->id()] = {opened.session, timers_.now(), owner};
  co_return opened;
}

std::optional<OpenedSession> SessionBook::find(std::string_view id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  found->second.used = timers_.now();
  return OpenedSession{found->second.session, sampler(), found->second.owner};
}

}  // namespace troupe::sessions
