// The company role keeps the nodes and roles of a run up. It starts the node processes of its own
// host, lets other nodes join, watches their heartbeats, places the run's roles on nodes, restarts
// lost ones, and tells the run which roles came and went. Its parts do that (NodeRegistry,
// RoleStarter, RoleSupervisor, NodeDrain); this class is where requests and news come in. Runs on
// its own strand and thread in the controller's process; everything it is given outlives it.
#pragma once

#include "actors/company/node_drain.hpp"
#include "actors/company/role_starter.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::actors::company {

// The nodes that have joined and the roles that they run, for `status`.
struct CompanyView {
  struct Node {
    Join join;
    std::string health;
    double silent_s = 0, age_s = 0;
    std::uint64_t memory = 0;               // bytes of its process in main memory; 0: not known
    std::vector<wire::RoleReport> reports;  // of its roles, as of its last sign of life
  };
  core::TimePoint now{};
  std::vector<Node> nodes;
  std::vector<PlacedRole> roles;
  std::map<std::string, std::string> brought;  // node by role, for roles that guests brought
  std::vector<LostNode> lost;                  // oldest first
};

class Company {
 public:
  Company(RoleContext context,
          CompanyOptions options,
          Admission& admission,
          NodeLauncher& launcher,
          CompanyPort& port);

  // Starts the local processes and all that keeps the company up. Called once, on the strand.
  void begin() { context_.scope->spawn("company", attend()); }

  CompanyView view() const;

  // Refuses a repeated request: the name is taken.
  async::task<core::Result<Joined>> on(Join request);
  // A repeated request counts as one more heartbeat.
  async::task<core::Result<Ack>> on(Beat request) { co_return nodes_.beat(request); }
  // Lines that are there already are left out of a repeated request.
  async::task<core::Result<Ack>> on(PutLog request) {
    co_return nodes_.keep_log(std::move(request));
  }
  // A repeated request gets the state of that moment.
  async::task<core::Result<Status>> on(QueryStatus request);
  // A repeated request gets the same answer.
  async::task<core::Result<GangMet>> on(MeetGang request) { return roles_.on(std::move(request)); }

  // Attaches a reward that a guest brings, once the reward's role has introduced itself. Refuses a
  // repeated request: the name is taken.
  async::task<core::Result<RewardsChanged>> on(AttachReward request);
  // A repeated request makes another set with the same weight.
  async::task<core::Result<RewardsChanged>> on(ReweightReward request) {
    return port_.reweight(std::move(request));
  }
  // Detaches a reward. Answers after its last group is scored, and then dismisses the guest that
  // brought it. Refuses a repeated request: the reward is gone.
  async::task<core::Result<RewardsChanged>> on(DetachReward request);

  // Takes a node out of the run and dismisses it; it is not started again. A repeated request waits
  // as the first does, and is acknowledged when the node has left.
  async::task<core::Result<Ack>> on(DrainNode request) { return drain_.on(std::move(request)); }

  // From the transport, posted to the strand.
  void on_arrived(const wire::Hello& hello, const std::string& origin);
  void on_lost(const std::string& name, std::uint64_t epoch, const core::Error& cause);

  // Stops a role that no longer works and starts it again, on the same node or another, as if it
  // had been lost. Does nothing when `epoch` is not the role's present one.
  void restart(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
    roles_.restart(role, epoch, cause);
  }
  // The role was not to blame for its last failures and losses: it need not wait for them.
  void clear(const std::string& role) { roles_.placement().clear(role); }

  // Starts again what earlier heads left but does not go together: generators with weights of a
  // policy that is gone. Call before a session.
  void end_leftovers() { starter_.end_leftovers(); }
  // Waits until all roles of these kinds are up. Error kDeadline names those that are not.
  async::task<core::Result<void>> await_up(std::vector<std::string> kinds,
                                           async::Deadline deadline) {
    return roles_.await_up(std::move(kinds), deadline);
  }
  // Stops every role. They are started again only after `begin_run`.
  async::task<void> end_run() { return roles_.end_run(); }
  void begin_run() { roles_.begin_run(); }
  // Asks every node to end and waits until the local ones have, at most until the deadline. Guests
  // that brought a reward are asked only when the run is `over`; otherwise they notice the lost
  // link and wait for the run to come back.
  async::task<void> dismiss_all(async::Deadline deadline, bool over) {
    return nodes_.dismiss_all(deadline, over);
  }

  const RolePlacement& placement() const noexcept { return roles_.placement(); }
  const ArithmeticClasses& classes() const noexcept { return starter_.classes(); }
  // The role's present or last epoch; 0 for a role that the run does not want.
  std::uint64_t epoch_of(const std::string& role) const {
    const PlacedRole* const placed = placement().find(role);
    return placed == nullptr ? 0 : placed->epoch;
  }

 private:
  async::task<core::Result<void>> attend();

  const RoleContext context_;
  const CompanyOptions options_;
  Admission& admission_;
  CompanyPort& port_;
  async::Notifier changed_;
  Arrivals arrivals_;
  LocalProcesses processes_;
  RoleSupervisor roles_;
  RoleStarter starter_;
  NodeRegistry nodes_;
  NodeDrain drain_;
};

}  // namespace troupe::actors::company
