// A team whose members' time in parallel regions is measured, in all and without what they wait in
// barriers: what is left of a step is time outside the kernels. Wraps another team, which must
// outlive it; regions start on one thread, as everywhere.
#pragma once

#include "apps/bench/figures.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <vector>

namespace troupe::app {

class MeteredTeam final : public core::TeamRunner {
 public:
  explicit MeteredTeam(core::TeamRunner& team)
      : team_(team), members_(static_cast<std::size_t>(team.size())) {}

  int size() const noexcept override { return team_.size(); }
  core::Memory& memory() noexcept override { return team_.memory(); }
  std::unique_ptr<core::Recording> record(const std::function<void(core::Team)>& region) override {
    return team_.record(region);
  }

  void run(const std::function<void(core::Team)>& region) override {
    team_.run([&](core::Team member) {
      const Stopwatch watch;
      const std::uint64_t waited = core::barrier_wait_ns();
      region(member);
      Member& own = members_[static_cast<std::size_t>(member.rank)];
      own.region_s += watch.seconds();
      own.wait_s += 1e-9 * static_cast<double>(core::barrier_wait_ns() - waited);
    });
  }

  // Since the team was made, means over the members.
  double region_s() const { return mean(&Member::region_s); }
  double wait_s() const { return mean(&Member::wait_s); }

 private:
  struct alignas(64) Member {
    double region_s = 0, wait_s = 0;
  };
  double mean(double Member::*part) const {
    double sum = 0;
    for (const Member& member : members_)
      sum += member.*part;
    return sum / static_cast<double>(members_.size());
  }

  core::TeamRunner& team_;
  std::vector<Member> members_;
};

}  // namespace troupe::app
