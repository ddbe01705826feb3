// The figures that a node's heartbeats bring: its memory and the newest report of each of its
// roles. Pure: the caller passes the time in. Part of Membership. Bound: kHostedRoles_max roles.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "runtime/core/clock.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::actors::company {

class NodeFigures {
 public:
  // The figures of a heartbeat that came at `now`.
  void take(const Beat& beat, core::TimePoint now);

  std::uint64_t memory() const noexcept { return memory_; }
  // The reports, each with its age at `now`. A role that counts `tokens` also has `tokens_per_s`
  // among its amounts: the mean over the last kRateWindow or a little more.
  std::vector<wire::RoleReport> reports(core::TimePoint now) const;

 private:
  struct Rate {
    core::TimePoint at{};
    double tokens = 0, per_s = 0;
    std::uint64_t epoch = 0;
  };
  struct Role {
    wire::RoleReport report;
    core::TimePoint made{};
    Rate rate;
  };
  static void add_rate(Role& role);

  std::uint64_t memory_ = 0;
  std::map<std::string, Role> roles_;
};

}  // namespace troupe::actors::company
