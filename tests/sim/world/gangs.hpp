// The gangs of a world: which process plays which rank of which start, and whether rank 0 gets what
// it needs of the others. In place of the collectives: a job of rank 0 ends when all ranks are
// there to do their part, waits for those that are frozen, and fails when one is gone or has been
// let go. Also the faults that strike a rank in the middle of something. Owned by the world; one
// thread.
#pragma once

#include "runtime/async/device_queue.hpp"
#include "tests/sim/world/process.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::sim {

class Gangs {
 public:
  // The rank has met the others and works from now on.
  void joined(const std::string& role, std::uint64_t epoch, const Process& process) {
    players_[{role, epoch}] = &process;
  }
  // A node was told to stop the role, up to that start of it; 0: whatever its start.
  void abandon(const std::string& role, std::uint64_t epoch);
  bool is_abandoned(const std::string& role, std::uint64_t epoch) const {
    return abandoned_.contains({role, epoch}) || newest_abandoned(role) >= epoch;
  }

  enum class State { kWhole, kWaits, kOver };
  State look(const std::string& kind, std::uint64_t epoch, std::uint32_t ranks) const;

  // From now on: `strike` is called once, when a rank comes to this phase: "start", "meet", a job
  // of rank 0, or "model" within that.
  void arm(const std::string& phase, std::function<void()> strike) {
    strikes_[phase] = std::move(strike);
  }
  void entered(const std::string& phase);

 private:
  using Start = std::pair<std::string, std::uint64_t>;  // of a role, with this epoch
  std::uint64_t newest_abandoned(const std::string& role) const;
  std::map<Start, const Process*> players_;
  std::set<Start> abandoned_;
  std::map<std::string, std::uint64_t> newest_abandoned_;
  std::map<std::string, std::function<void()>> strikes_;
};

// The device of a trainer that is alone, for the faults that strike it in the middle of something.
class PhaseDevice final : public async::DeviceQueue {
 public:
  PhaseDevice(Gangs& gangs, SimDevice& own) : gangs_(gangs), own_(own) {}

 private:
  async::task<core::Result<void>> submit(std::shared_ptr<Item> item) override;

  Gangs& gangs_;
  SimDevice& own_;
};

// The device of rank 0 of a gang.
class GangDevice final : public async::DeviceQueue {
 public:
  GangDevice(VirtualTime& time,
             Gangs& gangs,
             SimDevice& own,
             std::string kind,
             std::uint64_t epoch,
             std::uint32_t ranks)
      : time_(time),
        gangs_(gangs),
        own_(own),
        kind_(std::move(kind)),
        epoch_(epoch),
        ranks_(ranks) {}

 private:
  async::task<core::Result<void>> submit(std::shared_ptr<Item> item) override;
  async::task<core::Result<void>> await_all();

  VirtualTime& time_;
  Gangs& gangs_;
  SimDevice& own_;
  const std::string kind_;
  const std::uint64_t epoch_;
  const std::uint32_t ranks_;
};

}  // namespace troupe::sim
