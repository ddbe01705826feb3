// The controller directs a run. It issues tickets as far ahead as the staleness bound allows, has
// the generators sample them, tells the policy which updates are ready and the generators which
// weights are new. It sees ids, versions and counts, never a token. With bound 0 the run is
// synchronous.
//
// Runs on its strand. Its parts share a RunState: the UpdateLoop drives training; beside it run the
// TicketIssuer, the Fleet (one coroutine for each group that is sampled, and one for each transfer
// of weights) and the RewardService (changes of rewards). The Checkpointer saves. Pure classes make
// the decisions (RunPlan, VersionStarts, TicketQueue, Router, FailureBook, RewardBoard), and a
// RunListener reports what happens. The first error, with the name of its role, ends the run once
// the loop has finished its update and the committed state is saved.
#pragma once

#include "actors/controller/checkpointer.hpp"
#include "actors/controller/early_stop.hpp"
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

  // Does the whole run. A run that ends early first saves the last committed update, unless the
  // policy has learned beyond it; the error says where, or why not. kInterrupted: asked to stop.
  // kPeerLost: policy, critic or data is gone; the run can go on from its last checkpoint.
  // kDeadline: another role stayed away for too long.
  async::task<core::Result<void>> run();

  // Ends the run for an error that happened outside the controller. On the strand.
  void end(core::Error error);

  // Has the roles load the state of a checkpoint. Before `run`.
  async::task<core::Result<void>> load(std::string folder) {
    return checkpointer_.load(std::move(folder));
  }

  // The company reports here that another role came up or was lost; on the strand, at any time. The
  // run ends when policy, critic or data is lost; generators and attached rewards may come and go.
  // `epoch`: the role's, as the company counts it.
  void peer_up(const std::string& name, std::uint64_t epoch = 0);
  void peer_lost(const std::string& name, const core::Error& error);

  // Refuses a name that is attached. A reward that a resumed run waits for returns to its set.
  async::task<core::Result<RewardsChanged>> on(AttachReward request) {
    return rewards_.attach(std::move(request));
  }
  // A repeated request makes another set with the same weight.
  async::task<core::Result<RewardsChanged>> on(ReweightReward request) {
    return rewards_.reweight(std::move(request));
  }
  // Refuses a repeated request: the reward is gone.
  async::task<core::Result<RewardsChanged>> on(DetachReward request) {
    return rewards_.detach(std::move(request));
  }

  // A repeated request waits as the first does.
  async::task<core::Result<Ack>> on(DrainGenerator request);

  // Any number of askers may wait; a repeated request is one more.
  async::task<core::Result<Published>> on(AwaitPublished request) {
    return updates_.await_published(std::move(request));
  }
  // A repeated request gets the state of that moment.
  async::task<core::Result<Status>> on(QueryStatus request);

  ControllerSnapshot snapshot() const;
  wire::Amounts amounts() const;

  // `restart` is called on the strand with the name of a generator that fails too much, its epoch
  // and the cause; `peer_up` reports its next start. Without `restart` it is tried again.
  using Restart = std::function<void(const std::string&, std::uint64_t, const core::Error&)>;
  void when_sick(Restart restart) { fleet_.when_sick(std::move(restart)); }
  // `cleared` is called on the strand with the name of a generator that was not to blame.
  void when_cleared(std::function<void(const std::string&)> cleared) {
    fleet_.when_cleared(std::move(cleared));
  }

  // `told` is called on the strand with each version, before any generator hears of it.
  void when_published(std::function<void(const Published&)> told) {
    updates_.when_published(std::move(told));
  }

 private:
  static async::task<core::Result<void>> live(async::Scope& scope, Controller* self);
  static async::task<core::Result<void>> begin_company(async::Scope& scope, Controller* self);
  async::task<core::Result<void>> company();
  static async::task<core::Result<void>> fail_with(core::Error error);

  RunState run_;
  Fleet fleet_;
  RewardService rewards_;
  TicketIssuer issuer_;
  Checkpointer checkpointer_;
  EarlyStop stop_;
  UpdateLoop updates_;
  std::optional<core::Error> early_;  // an error from before the run began
};

}  // namespace troupe::actors
