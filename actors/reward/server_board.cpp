#include "actors/reward/server_board.hpp"

#include "actors/protocol/limits.hpp"
#include "actors/reward/limits.hpp"

#include <algorithm>

namespace troupe::actors::reward {
namespace {

constexpr core::Duration kPatience_min = std::chrono::milliseconds(200);

}  // namespace

std::size_t ServerBoard::in_flight() const {
  std::size_t sum = 0;
  for (const Server& server : servers_) {
    if (!server.away && !server.suspect) sum += server.in_flight;
  }
  return sum;
}

std::optional<ServerBoard::Place> ServerBoard::pick(const Tried& tried, core::TimePoint now) const {
  if (in_flight() >= limits::kRewardRequests_max) return std::nullopt;
  std::optional<Place> best;
  for (Place place = 0; place < servers_.size(); ++place) {
    const Server& server = servers_[place];
    if (tried[place] || !well(place) || silent(place, now)) continue;
    if (server.in_flight >= server.window) continue;
    if (!best || server.in_flight < servers_[*best].in_flight) best = place;
  }
  return best;
}

bool ServerBoard::may_have_room(const Tried& tried, core::TimePoint now) const {
  for (Place place = 0; place < servers_.size(); ++place) {
    if (!tried[place] && well(place) && !silent(place, now)) return true;
  }
  return false;
}

std::optional<ServerBoard::Place> ServerBoard::last_resort(const Tried& tried,
                                                           core::TimePoint begun,
                                                           core::TimePoint now,
                                                           bool& busy) const {
  std::optional<Place> best;
  for (Place place = 0; place < servers_.size(); ++place) {
    const Server& server = servers_[place];
    const bool failed = server.away && server.failed >= begun;
    if (tried[place] || well(place) || failed || silent(place, now)) continue;
    if (!best || server.in_flight < servers_[*best].in_flight) best = place;
  }
  busy = best && servers_[*best].in_flight > 0;
  return best;
}

std::optional<ServerBoard::Place> ServerBoard::probe(const Tried& tried,
                                                     core::TimePoint now) const {
  for (Place place = 0; place < servers_.size(); ++place) {
    const Server& server = servers_[place];
    if (tried[place] || well(place) || server.in_flight > 0 || silent(place, now)) continue;
    if (now >= server.retry) return place;
  }
  return std::nullopt;
}

void ServerBoard::sent(Place place) {
  ++servers_[place].in_flight;
  ++servers_[place].asked;
}

void ServerBoard::answered(Place place,
                           core::TimePoint sent,
                           core::TimePoint now,
                           core::Duration deadline) {
  Server& server = servers_[place];
  --server.in_flight;
  server.heard = now;
  server.away = server.suspect = false;
  server.pause = {};
  const core::Duration took = std::max<core::Duration>(now - sent, std::chrono::microseconds(1));
  // A long answer counts for about the next hundred.
  slowest_ = std::max(took, slowest_ - slowest_ / 64);
  constexpr std::size_t kMost = limits::kRewardRequests_max;
  if (!server.measured) {
    server.measured = true;
    const auto in_turn = static_cast<std::size_t>(deadline / (3 * took));
    server.window = std::clamp<std::size_t>(in_turn, 1, kMost);
  } else if (took <= deadline / 3) {
    server.window = std::min(server.window + 1, kMost);
  } else if (took > deadline / 2) {
    server.window = std::max<std::size_t>(server.window - 1, 1);
  }
}

// Pauses before the next probe, twice as long as the last time.
void ServerBoard::rest(Server& server, core::TimePoint now) {
  if (now < server.retry) return;  // others of the same time failed, too
  server.pause = std::clamp<core::Duration>(2 * server.pause, actors::limits::kScorerPause_min,
                                            actors::limits::kScorerPause_max);
  server.retry = now + server.pause;
}

void ServerBoard::failed(Place place, core::TimePoint now) {
  Server& server = servers_[place];
  --server.in_flight;
  server.away = true;
  server.failed = now;
  server.window = std::max<std::size_t>(server.window / 2, 1);
  rest(server, now);
}

bool ServerBoard::silent_too_long(const Server& server,
                                  core::TimePoint sent,
                                  core::TimePoint now,
                                  core::Duration deadline) const {
  return now - std::max(sent, server.heard) >= patience(deadline);
}

void ServerBoard::late(Place place,
                       core::TimePoint sent,
                       core::TimePoint now,
                       core::Duration deadline) {
  Server& server = servers_[place];
  if (silent_too_long(server, sent, now, deadline)) {
    failed(place, now);
    server.window = 1;
    server.measured = false;
    return;
  }
  --server.in_flight;
  server.window = std::max<std::size_t>(server.window / 2, 1);
}

bool ServerBoard::suspect(Place place,
                          core::TimePoint sent,
                          core::TimePoint now,
                          core::Duration deadline) {
  Server& server = servers_[place];
  if (!silent_too_long(server, sent, now, deadline)) return false;
  server.suspect = true;
  rest(server, now);
  return true;
}

core::Duration ServerBoard::patience(core::Duration deadline) const {
  if (slowest_ == core::Duration::zero()) return deadline;
  return std::min(std::max<core::Duration>(slowest_ + slowest_ / 2, kPatience_min), deadline);
}

}  // namespace troupe::actors::reward
