// The controller directs a run. It issues tickets as far ahead as the staleness bound allows, has
// the generators sample them, tells the policy which updates are ready and the generators which
// weights are new. It sees ids, versions and counts, never a token. With bound 0 the run is
// synchronous.
//
// Runs on its strand. Its parts share the RunState of its base: the UpdateLoop drives training;
// around it run the TicketIssuer, the Fleet (one coroutine for each group that is sampled, and one
// for each transfer of weights) and the RewardService (changes of rewards). The Checkpointer saves.
// Pure classes make the decisions (RunPlan, VersionStarts, TicketQueue, Router, FailureBook,
// RewardBoard), and a RunListener reports what happens. The first error, with the name of its role,
// ends the run once the loop has finished its update and the committed state is saved.
#pragma once

#include "actors/controller/call_service.hpp"
#include "actors/controller/conductor.hpp"
#include "actors/controller/early_stop.hpp"
#include "actors/controller/fleet.hpp"
#include "actors/controller/reward_service.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/controller/ticket_issuer.hpp"
#include "actors/controller/update_loop.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/wire/role_report.hpp"

#include <functional>
#include <string>

namespace troupe::actors::controller {

class Controller final : public Conductor {
 public:
  Controller(RoleContext context, RunPlan plan, RunListener& listener);

  void peer_up(const std::string& name, std::uint64_t epoch = 0) override;
  // Generators and attached rewards may be lost.
  void peer_lost(const std::string& name, const core::Error& error) override;

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
  // A repeated request is answered again, with the same bits.
  async::task<core::Result<Completed>> on(Complete request) {
    return calls_.complete(std::move(request));
  }

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
  void when_sick(Restart restart) {
    environments_.when_sick(restart);
    generators_.when_sick(std::move(restart));
  }
  // `cleared` is called on the strand with the name of a generator that was not to blame.
  void when_cleared(std::function<void(const std::string&)> cleared) {
    environments_.when_cleared(cleared);
    generators_.when_cleared(std::move(cleared));
  }

  // `told` is called on the strand with each version, before any generator hears of it.
  void when_published(std::function<void(const Published&)> told) {
    updates_.when_published(std::move(told));
  }

 private:
  void begin_beside() override;
  void leave_scope() override { updates_.stop_watching(); }
  async::task<core::Result<void>> loop() override { return updates_.run(); }
  bool alone();
  std::function<void(const experience::Ticket&)> retired();

  // The fleet that takes tickets: the generators, or in a run of episodes the environments.
  Fleet& tickets() { return run_.plan.episodes ? environments_ : generators_; }

  Fleet generators_;
  Fleet environments_;  // none without episodes
  CallService calls_;
  RewardService rewards_;
  TicketIssuer issuer_;
  EarlyStop stop_;
  UpdateLoop updates_;
};

}  // namespace troupe::actors::controller
