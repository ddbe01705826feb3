// The controller: the order of a run. It issues tickets as far ahead as the staleness bound allows,
// has the fleet sample them, names ready updates to the policy and new weights to the generators;
// it sees ids, versions and counts, never a token. With bound 0 the same code is the synchronous
// run.
//
// Runs on its strand, and is put together from parts that share a RunState: the UpdateLoop is the
// trainer's; beside it the TicketIssuer, one coroutine for each group that is sampled (Fleet), the
// weights on their way, and changes of rewards (RewardService). The Checkpointer saves. Pure
// classes decide (RunPlan, VersionStarts, TicketQueue, Router, RewardBoard), the listener hears.
// The first error ends the run by the name of its role, once the loop has done with its update and
// what was committed is saved.
#pragma once

#include "actors/controller/checkpointer.hpp"
#include "actors/controller/fleet.hpp"
#include "actors/controller/reward_service.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/controller/ticket_issuer.hpp"
#include "actors/controller/update_loop.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/wire/role_report.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::actors {

class Controller {
 public:
  Controller(RoleContext context, RunPlan plan, RunListener& listener);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // The whole run. Whatever ends it early, the last committed update is saved first, where policy
  // and critic stand there; the error says where, or why not. kInterrupted: a stop was asked for.
  // kPeerLost: policy, critic or data is gone, the run can be played again from its last
  // checkpoint. kDeadline: somebody else stayed away for too long.
  async::task<core::Result<void>> run();

  // Ends the run for what happened elsewhere. On the strand.
  void end(core::Error error);

  // Puts the roles into the state of a checkpoint. Before `run`.
  async::task<core::Result<void>> load(std::string folder) {
    return checkpointer_.load(std::move(folder));
  }

  // What the company sees happen to other roles; called on the strand, at any time. Policy, critic
  // and data are needed: without one the run ends. Generators and attached rewards may come and go.
  // `epoch`: of the role's life, as the company counts.
  void peer_up(const std::string& name, std::uint64_t epoch = 0);
  void peer_lost(const std::string& name, const core::Error& error);

  // Repeated: refused, unless the reward is one that is awaited: then the set it is in.
  async::task<core::Result<RewardsChanged>> on(AttachReward request) {
    return rewards_.attach(std::move(request));
  }
  // Repeated: a new set with the same weight.
  async::task<core::Result<RewardsChanged>> on(ReweightReward request) {
    return rewards_.reweight(std::move(request));
  }
  // Repeated: refused; there is no such reward any more.
  async::task<core::Result<RewardsChanged>> on(DetachReward request) {
    return rewards_.detach(std::move(request));
  }

  // Repeated: each asker waits on its own.
  async::task<core::Result<Published>> on(AwaitPublished request) {
    return updates_.await_published(std::move(request));
  }
  // Repeated: answered again.
  async::task<core::Result<Status>> on(QueryStatus request);

  ControllerSnapshot snapshot() const;
  wire::Amounts amounts() const;

  // `restart` is called on the strand with a generator that is sick, the epoch of that life and the
  // cause; the next life is told by `peer_up`. Without it generators are tried again as they are.
  using Restart = std::function<void(const std::string&, std::uint64_t, const core::Error&)>;
  void when_sick(Restart restart) { fleet_.when_sick(std::move(restart)); }

  // `told` is called on the strand with each version, before any generator hears of it.
  void when_published(std::function<void(const Published&)> told) {
    updates_.when_published(std::move(told));
  }

 private:
  static async::task<core::Result<void>> live(async::Scope& scope, Controller* self);
  static async::task<core::Result<void>> begin_company(async::Scope& scope, Controller* self);
  async::task<core::Result<void>> company();
  async::task<core::Result<void>> watch_stop();
  static async::task<core::Result<void>> fail_with(core::Error error);

  RunState run_;
  Fleet fleet_;
  RewardService rewards_;
  TicketIssuer issuer_;
  Checkpointer checkpointer_;
  UpdateLoop updates_;
  std::optional<core::Error> early_;  // before the run began
};

}  // namespace troupe::actors
