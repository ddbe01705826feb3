// A simulated process: threads that can be frozen, the places of its roles in the network, its
// devices. Made and ended by the world. A process that has ended runs nothing but its own undoing,
// and nothing of that reaches a wire or a disk.
#pragma once

#include "runtime/cluster/endpoint.hpp"
#include "tests/sim/sim_device.hpp"
#include "tests/sim/sim_network.hpp"
#include "tests/sim/virtual_time.hpp"

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace troupe::sim {

using cluster::sim::SimDevice;
using cluster::sim::SimNetwork;
using cluster::sim::VirtualThreads;
using cluster::sim::VirtualTime;

// Ends a coroutine of the world whose error nobody else awaits.
inline void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

class Process {
 public:
  Process(VirtualTime& time, std::string name, std::string host, std::uint64_t number)
      : time_(time),
        name_(std::move(name)),
        host_(std::move(host)),
        number_(number),
        threads_(time.make_threads()) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const noexcept { return name_; }
  const std::string& host() const noexcept { return host_; }
  std::uint64_t number() const noexcept { return number_; }  // no two processes have the same
  bool alive() const noexcept { return alive_; }
  bool frozen() const noexcept { return threads_->frozen(); }
  async::Executor make_strand() { return threads_->make_strand(); }

  // A place for a role of this process. A later start of the role replaces it.
  std::shared_ptr<cluster::Endpoint> join(SimNetwork& network, cluster::Identity identity) {
    auto endpoint = network.join_at(identity, make_strand());
    if (!alive_) SimNetwork::vanish(*endpoint);
    roles_[identity.self] = endpoint;
    return endpoint;
  }
  // The role has ended. False when another start of it, or nobody, stands there.
  bool leave(const cluster::Endpoint& role) {
    const auto place = roles_.find(role.identity().self);
    if (!alive_ || place == roles_.end() || place->second.get() != &role) return false;
    roles_.erase(place);
    return true;
  }
  using Roles = std::map<std::string, std::shared_ptr<cluster::Endpoint>>;
  const Roles& roles() const noexcept { return roles_; }

  SimDevice& device(const std::string& name) {
    auto& device = devices_[name];
    if (!device) device = std::make_unique<SimDevice>(time_, make_strand(), name_ + " " + name);
    return *device;
  }

  void freeze(bool frozen) { threads_->freeze(frozen && alive_); }

  // Ends at once, as by SIGKILL. What its roles still do is to unwind.
  void kill() {
    if (!std::exchange(alive_, false)) return;
    threads_->freeze(false);
    for (const auto& [name, endpoint] : roles_)
      SimNetwork::vanish(*endpoint);
    for (const auto& [name, device] : devices_)
      device->close();
  }

 private:
  VirtualTime& time_;
  const std::string name_, host_;
  const std::uint64_t number_;
  const std::shared_ptr<VirtualThreads> threads_;
  Roles roles_;
  std::map<std::string, std::unique_ptr<SimDevice>> devices_;
  bool alive_ = true;
};

}  // namespace troupe::sim
