#include "tests/sim/world/gangs.hpp"

#include "runtime/async/deadline.hpp"

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using core::Result;

void Gangs::abandon(const std::string& role, std::uint64_t epoch) {
  if (epoch != 0) {
    std::uint64_t& newest = newest_abandoned_[role];
    newest = std::max(newest, epoch);
  }
  for (const auto& [start, process] : players_) {
    if (start.first == role && (epoch == 0 || start.second <= epoch)) abandoned_.insert(start);
  }
}

std::uint64_t Gangs::newest_abandoned(const std::string& role) const {
  const auto found = newest_abandoned_.find(role);
  return found == newest_abandoned_.end() ? 0 : found->second;
}

Gangs::State Gangs::look(const std::string& kind, std::uint64_t epoch, std::uint32_t ranks) const {
  State state = State::kWhole;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::string role = kind + "/" + std::to_string(rank);
    const auto player = players_.find({role, epoch});
    if (player == players_.end() || !player->second->alive() || is_abandoned(role, epoch))
      return State::kOver;
    if (player->second->frozen()) state = State::kWaits;
  }
  return state;
}

void Gangs::entered(const std::string& phase) {
  auto strike = strikes_.extract(phase);
  if (!strike.empty()) strike.mapped()();
}

async::task<Result<void>> PhaseDevice::submit(std::shared_ptr<Item> item) {
  const char* const kind = item->kind;
  gangs_.entered(kind);
  auto job = [item]() -> Result<void> {
    item->execute();
    return {};
  };
  auto done = co_await own_.run(std::move(job), kind);
  co_return done;
}

async::task<Result<void>> GangDevice::await_all() {
  for (;;) {
    const Gangs::State state = gangs_.look(kind_, epoch_, ranks_);
    if (state == Gangs::State::kWhole) co_return Result<void>();
    if (state == Gangs::State::kOver)
      co_return core::fail(core::ErrorCode::kPeerLost, "a rank of " + kind_ + " is gone");
    co_await async::sleep_for(time_, 20ms);
  }
}

// What a rank does for a publication is nothing.
async::task<Result<void>> GangDevice::submit(std::shared_ptr<Item> item) {
  const std::string what = item->kind;
  const char* const kind = item->kind;
  gangs_.entered(what);
  const bool together = what != "publish";
  if (together) TROUPE_CO_TRY(co_await await_all());
  auto job = [item]() -> Result<void> {
    item->execute();
    return {};
  };
  auto done = co_await own_.run(std::move(job), kind);
  if (!done) co_return done;
  if (together) TROUPE_CO_TRY(co_await await_all());
  co_return Result<void>();
}

}  // namespace troupe::sim
