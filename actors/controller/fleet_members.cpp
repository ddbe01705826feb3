#include "actors/controller/fleet_members.hpp"

#include <algorithm>
#include <limits>

namespace troupe::actors::controller {

// A generator that holds a prompt's prefix is worth two groups of extra load.
FleetMembers::FleetMembers(RunState& run, FleetKind kind)
    : run_(run), kind_(kind), router_(std::int64_t{2} * run.plan.samples, kind.work_max) {}

bool FleetMembers::is_up(const std::string& name) const {
  const auto found = members_.find(name);
  return found != members_.end() && found->second.up;
}

bool FleetMembers::lives(const std::string& name, std::uint64_t life) const {
  return is_up(name) && members_.at(name).life == life;
}

void FleetMembers::up(const std::string& name, std::uint64_t epoch) {
  Member& member = members_[name];
  member = {.up = true,
            .life = member.life + 1,
            .epoch = epoch,
            .misses = member.misses,
            .sick = member.sick};
  router_.up(name);
  if (!kind_.weights) {
    member.holds = 0;
    router_.holds(name, std::numeric_limits<core::Version>::max());
  }
  run_.listener.on_peer(name, true, "");
  look();
}

void FleetMembers::down(const std::string& name, const std::string& cause) {
  router_.down(name);
  run_.listener.on_peer(name, false, cause);
  look();
}

std::size_t FleetMembers::able() const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [this](const auto& entry) {
        const Member& member = entry.second;
        return member.up && !member.sick && !router_.leaves(entry.first) &&
               (member.holds || member.misses == 0);
      }));
}

void FleetMembers::look() {
  if (run_.scope == nullptr) return;
  const bool alone = able() == 0;
  if (alone == is_alone_) return;
  is_alone_ = alone;
  ++alone_;
  if (alone && !kind_.patient) run_.scope->spawn("", wait_for_one(alone_));
}

async::task<core::Result<void>> FleetMembers::wait_for_one(std::uint64_t alone) {
  co_await async::sleep_for(*run_.context.timers, limits::kGeneratorWait);
  if (alone != alone_) co_return core::Result<void>();
  const std::string wait = std::to_string(limits::kGeneratorWait.count() / 1000);
  // Not kPeerLost: that would rerun from the last checkpoint, as for a lost policy, still without a
  // generator.
  co_return core::fail(core::ErrorCode::kDeadline,
                       "no " + std::string(kind_.noun) + " came up within " + wait + " s" +
                           (cause_.empty() ? "" : " that works (" + cause_ + ")"),
                       "run the same command again to go on from the last checkpoint");
}

std::vector<GeneratorLine> FleetMembers::lines() const {
  std::vector<GeneratorLine> all;
  for (const auto& [name, member] : members_) {
    const char* const state = !member.up ? "lost" : member.holds ? "fresh" : "stale";
    all.push_back({name, state, router_.groups(name), router_.samples(name), member.holds});
  }
  return all;
}

}  // namespace troupe::actors::controller
