#include "runtime/sessions/session_book.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sessions {
namespace {

// Tokens are counted again after that many requests.
constexpr std::uint64_t kCountEvery = 64;

}  // namespace

SessionBook::Lines::iterator SessionBook::idle_one() {
  const core::TimePoint idle = timers_.now() - options_.idle;
  auto oldest = sessions_.end();
  for (auto line = sessions_.begin(); line != sessions_.end(); ++line) {
    const bool may_go = line->second.used <= idle || line->second.opened.session->ended();
    if (may_go && (oldest == sessions_.end() || line->second.used < oldest->second.used))
      oldest = line;
  }
  return oldest;
}

template <class Weight>
std::pair<SessionBook::Owner, std::uint64_t> SessionBook::heaviest(Weight weight) const {
  std::map<Owner, std::uint64_t> sums;
  for (const auto& [id, line] : sessions_)
    sums[line.opened.owner] += weight(line);
  const auto most = std::ranges::max_element(sums, {}, [](const auto& one) { return one.second; });
  if (most == sums.end()) return {};
  return *most;
}

bool SessionBook::make_room(Owner owner) {
  if (sessions_.size() < options_.sessions_max) return true;
  auto goes = idle_one();
  if (goes == sessions_.end()) {
    const auto [hog, its] = heaviest([](const Line&) { return 1u; });
    const auto own = std::ranges::count_if(
        sessions_, [&](const auto& one) { return one.second.opened.owner == owner; });
    if (hog == owner || its < static_cast<std::uint64_t>(own) + 2) return false;
    // First sessions that were never called, the youngest first; then the one used longest ago.
    for (auto line = sessions_.begin(); line != sessions_.end(); ++line) {
      if (line->second.opened.owner != hog) continue;
      if (goes == sessions_.end()) {
        goes = line;
        continue;
      }
      const bool called = line->second.opened.session->calls() > 0;
      const bool chosen_called = goes->second.opened.session->calls() > 0;
      const bool better = called != chosen_called ? !called
                          : called                ? line->second.used < goes->second.used
                                                  : line->second.number > goes->second.number;
      if (better) goes = line;
    }
  }
  sessions_.erase(goes);
  return true;
}

// While all sessions have too many tokens, the owner with the most loses the session that it used
// longest ago.
void SessionBook::forget_tokens() {
  const auto tokens_of = [](const Line& line) { return line.opened.session->tokens(); };
  for (;;) {
    std::uint64_t sum = 0;
    for (const auto& [id, line] : sessions_)
      sum += tokens_of(line);
    if (sum <= options_.tokens_max) return;
    const auto [hog, its] = heaviest(tokens_of);
    auto goes = sessions_.end();
    for (auto line = sessions_.begin(); line != sessions_.end(); ++line) {
      if (line->second.opened.owner != hog || tokens_of(line->second) == 0) continue;
      if (goes == sessions_.end() || line->second.used < goes->second.used) goes = line;
    }
    if (goes == sessions_.end()) return;
    sessions_.erase(goes);
  }
}

core::Result<OpenedSession> SessionBook::open(std::optional<std::size_t> owner, bool in_path) {
  if (!make_room(owner)) {
    return core::fail(
        core::ErrorCode::kOverloaded,
        "there are " + std::to_string(sessions_.size()) + " sessions, which is the most",
        "end one by POST /sessions/ID/end");
  }
  auto session = std::make_shared<Session>(core::random_hex(kSessionId_bytes), options_.bounds);
  const std::string& id = session->id();
  Line& line = sessions_[id];
  line = {
      {std::move(session), {std::shared_ptr<void>(), &sampler_}, owner}, timers_.now(), ++opened_};
  line.opened.lock.in_path = in_path;
  return line.opened;
}

std::optional<OpenedSession> SessionBook::find(std::string_view id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  return found->second.opened;
}

void SessionBook::used(std::string_view id) {
  if (const auto found = sessions_.find(id); found != sessions_.end())
    found->second.used = timers_.now();
  if (++uses_ % kCountEvery == 0) forget_tokens();
}

}  // namespace troupe::sessions
