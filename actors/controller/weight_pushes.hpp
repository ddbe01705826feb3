// Sends new weights to the members of a fleet, in the background. A member keeps those that it has
// when others do not arrive: they are sent again, with back-off and with each new version; one that
// repeatedly rejects what arrived is to be restarted. Part of the controller, on its strand; its
// coroutines are children of the run's scope. Bound: two calls a member.
#pragma once

#include "actors/controller/fleet_members.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::actors::controller {

class WeightPushes {
 public:
  // What the fleet is told about a member.
  struct Outcome {
    std::function<void()> took;  // a member holds newer weights
    std::function<void(const std::string&name, const core::Error&cause)> gone, sick;
  };
  // `run` and `members` outlive it.
  WeightPushes(RunState& run, FleetMembers& members, Outcome outcome)
      : run_(run), members_(members), outcome_(std::move(outcome)) {}

  // The newest weights; every member gets them, now or when it comes up.
  void offer(const Published& published);
  const std::optional<Published>& latest() const noexcept { return latest_; }
  // The member has come up.
  void begin(const std::string& name);

 private:
  void start(const std::string& name);
  async::task<void> push(std::string name, std::uint64_t life);
  void missed(const std::string& name, core::Version version, const core::Error& error);
  async::task<void> push_again(std::string name, std::uint64_t life);

  RunState& run_;
  FleetMembers& members_;
  const Outcome outcome_;
  std::optional<Published> latest_;
};

}  // namespace troupe::actors::controller
