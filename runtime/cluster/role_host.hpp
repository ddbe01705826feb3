// Runs one role on one strand over one transport. The host makes the role, serves its requests (it
// answers ping, shutdown and queryRole itself), runs the role's own loop, records how the role
// spends its time, and takes it down in order: requests and calls, handlers, the role's scope, the
// role. It reports the first error or exception that escapes the role, with the role's name. Owned
// by the node.
#pragma once

#include "runtime/async/device_queue.hpp"
#include "runtime/async/scope.hpp"
#include "runtime/cluster/endpoint.hpp"
#include "runtime/core/activity.hpp"
#include "runtime/core/team.hpp"
#include "runtime/wire/role_report.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::cluster {

class Role {
 public:
  virtual ~Role() = default;

  // Answers one request; runs at the same time as other handlers of the role, on its strand.
  virtual async::task<core::Result<wire::Frame>> handle(wire::Frame request) = 0;

  // The role's own loop, run from its start. It may return early; an error fails the role.
  virtual async::task<core::Result<void>> run();

  // The role's state for `status`, in a word or two.
  virtual std::string state() const { return "ready"; }

  // Numbers for `status`: versions, counts.
  virtual wire::Amounts amounts() const { return {}; }
};

// What the host gives a role. The references outlive the role.
struct RoleServices {
  std::shared_ptr<Transport> transport;
  async::Scope& scope;  // for coroutines that run alongside the role's handlers
  async::Timers& timers;
  async::Executor executor;              // the role's strand
  core::Activity& activity;              // records what the role spends its time on
  async::DeviceQueue* device = nullptr;  // long jobs; null for roles without any
  core::TeamRunner* team = nullptr;      // the process's compute pool, used on the device thread
};

class RoleHost {
 public:
  // Makes the role, on its strand.
  using Factory = std::function<core::Result<std::unique_ptr<Role>>(const RoleServices&)>;

  struct Hooks {
    // Called once, on the strand, when an error escapes the role. The host's owner then stops it.
    std::function<void(const PeerName&, const core::Error&)> failed;
    // A peer asked the role to end; the acknowledgement has been sent.
    std::function<void(const PeerName&)> shutdown_asked;
  };

  RoleHost(std::shared_ptr<Endpoint> endpoint,
           Hooks hooks,
           async::DeviceQueue* device = nullptr,
           core::TeamRunner* team = nullptr);
  RoleHost(const RoleHost&) = delete;
  RoleHost& operator=(const RoleHost&) = delete;
  ~RoleHost();  // checks that a started role was stopped

  // Both may be awaited on any executor. `stop` waits for device jobs of the role that have begun.
  async::task<core::Result<void>> start(Factory factory);
  async::task<void> stop();

  // Has `told` called with a report of the role, without spans, on the role's strand, as soon as
  // that is free. Not after `stop` was called.
  void report_to(std::function<void(wire::RoleReport)> told) const;

  const PeerName& name() const noexcept { return endpoint_->identity().self; }
  std::uint64_t epoch() const noexcept { return endpoint_->identity().epoch; }
  core::Activity& activity() noexcept { return activity_; }

 private:
  async::task<core::Result<void>> start_here(Factory factory);
  async::task<void> stop_here();
  async::task<core::Result<wire::Frame>> handle(wire::Frame request);
  // `asking`: requests in the inbox that ask for this report.
  wire::RoleReport role_report(std::uint64_t spans_after, std::size_t asking) const;
  void report(const core::Error& error);

  const std::shared_ptr<Endpoint> endpoint_;
  const Hooks hooks_;
  async::DeviceQueue* const device_;
  core::TeamRunner* const team_;
  async::Scope scope_;
  core::Activity activity_;
  std::unique_ptr<Role> role_;
  bool reported_ = false;
  bool running_ = false;
};

// How to make a role, and where it computes.
struct RoleRecipe {
  RoleHost::Factory factory;
  async::DeviceQueue* device = nullptr;  // outlives the role
  core::TeamRunner* team = nullptr;      // outlives it, too
  std::string arithmetic{};              // Identity::arithmetic
};

// Starts a role on `place`, its endpoint in a network, and returns its host. May be awaited on any
// executor. Errors: that of `place`, unchanged; or the factory's, after the role's name.
async::task<core::Result<std::unique_ptr<RoleHost>>> host_role(
    core::Result<std::shared_ptr<Endpoint>> place, RoleRecipe recipe, RoleHost::Hooks hooks);

}  // namespace troupe::cluster
