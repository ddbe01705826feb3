// The controller: the order of a run. It issues tickets as far ahead as the staleness bound allows,
// has the fleet sample them, names ready updates to the policy and new weights to the generators;
// it sees ids, versions and counts, never a token. With bound 0 the same code is the synchronous
// run.
//
// Runs on its strand. `run` is the trainer's loop; beside it the issuer, one coroutine for each
// group that is sampled, and the weights on their way. Pure classes decide (RunPlan, VersionStarts,
// TicketQueue, Router, RewardBoard), the listener hears. The first error ends the run by the name
// of its role, once the trainer has done with its update and what was committed is saved.
#pragma once

#include "actors/controller/fleet.hpp"
#include "actors/controller/reward_desk.hpp"
#include "actors/controller/run_listener.hpp"
#include "actors/controller/run_plan.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/controller/version_starts.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

struct CompanyPeers {
  std::string data = "data/0";
  std::string policy = "policy/0";
  std::string critic;                                     // "" = none
  std::vector<std::string> generators = {"generator/0"};  // up from the start
};

class Controller {
 public:
  Controller(RoleContext context, RunPlan plan, CompanyPeers peers, RunListener& listener);
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
  async::task<core::Result<void>> load(std::string folder);

  // What the company sees happen to other roles; called on the strand, at any time. Policy, critic
  // and data are needed: without one the run ends. Generators and attached rewards may come and go.
  // `epoch`: of the role's life, as the company counts.
  void peer_up(const std::string& name, std::uint64_t epoch = 0);
  void peer_lost(const std::string& name, const core::Error& error);

  // Repeated: refused, unless the reward is one that is awaited: then the set it is in.
  async::task<core::Result<RewardsChanged>> on(AttachReward request);
  // Repeated: a new set with the same weight.
  async::task<core::Result<RewardsChanged>> on(ReweightReward request);
  // Repeated: refused; there is no such reward any more.
  async::task<core::Result<RewardsChanged>> on(DetachReward request);

  // Repeated: each asker waits on its own.
  async::task<core::Result<Published>> on(AwaitPublished request);

  ControllerSnapshot snapshot() const;

  // `restart` is called on the strand with a generator that is sick, the epoch of that life and the
  // cause; the next life is told by `peer_up`. Without it generators are tried again as they are.
  using Restart = std::function<void(const std::string&, std::uint64_t, const core::Error&)>;
  void when_sick(Restart restart) { fleet_.when_sick(std::move(restart)); }

  // `told` is called on the strand with each version, before any generator hears of it.
  void when_published(std::function<void(const Published&)> told) { published_ = std::move(told); }

 private:
  struct Stay;  // for as long as the company is asked anything
  // A step that is done to its end, whatever happens beside it.
  struct Whole {
    explicit Whole(Controller& owner);
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;
    ~Whole();
    Controller& controller;
  };

  static async::task<core::Result<void>> play(async::Scope& scope, Controller* self);
  static async::task<core::Result<void>> begin_company(async::Scope& scope, Controller* self);
  async::task<core::Result<void>> company();
  async::task<core::Result<void>> trainer();
  async::task<core::Result<bool>> after_update(std::uint64_t done);  // true: asked to stop
  async::task<core::Result<void>> one_update(std::uint64_t update);
  async::task<core::Result<GroupStatuses>> collect(std::uint64_t update);
  async::task<core::Result<void>> publish(std::uint64_t update);
  async::task<core::Result<void>> save(std::uint64_t done, bool models);
  async::task<core::Result<void>> write_checkpoint(std::uint64_t done, bool models);
  std::vector<std::string> stateful_peers() const;  // whose state is part of a checkpoint
  void report_groups(const GroupStatuses& statuses, UpdateReport& report);
  static bool is_settled(const GroupStatuses& statuses);  // each group is ready or has failed

  // ending.cpp
  async::task<core::Result<void>> watch_stop();
  async::task<core::Result<void>> prompts_used_up(core::Error error);
  async::task<core::Result<void>> save_last(core::Error error);
  static async::task<core::Result<void>> fail_with(core::Error error);
  bool holds_state(const std::string& peer) const;
  core::Failure state_error(core::Error error);  // of a call to a role that holds state
  bool unsaved() const;                          // the last committed update is in no checkpoint

  // evaluation.cpp
  async::task<core::Result<void>> evaluate(std::uint64_t done);
  async::task<core::Result<void>> evaluate(std::uint64_t done, bool greedy);
  async::task<core::Result<GroupStatuses>> settled_groups(std::uint64_t update);

  // issuer.cpp
  void release(std::uint64_t done);
  async::task<core::Result<void>> issuer();
  async::task<core::Result<void>> reissue(ReissueTickets request);
  core::Result<std::vector<experience::Ticket>> failed_groups(std::uint64_t update,
                                                        const GroupStatuses& statuses);
  core::Result<void> count_filtered(const GroupStatus& group);
  // Tells of it. True: the slot has had its last.
  bool count_fault(const experience::Ticket& ticket, const std::string& cause);
  std::uint64_t forget_slots(std::uint64_t update);  // gives the groups that were filtered
  TicketWork training_work(std::uint64_t update) const;
  void retired(const experience::Ticket& ticket);
  void watch_stragglers(std::uint64_t update);

  RoleContext context_;
  const RunPlan plan_;
  const CompanyPeers peers_;
  RunListener& listener_;
  std::function<void(const Published&)> published_;
  const std::shared_ptr<const SamplingSpec> sampling_;
  async::Notifier changed_;
  async::Notifier news_;  // of weights
  Fleet fleet_;
  RewardDesk rewards_;
  VersionStarts starts_;
  async::Scope* scope_ = nullptr;          // while the run lasts
  std::optional<core::Error> early_;       // before the run began
  std::optional<core::Error> ending_;      // what the run ends for once the trainer is done
  int whole_ = 0;                          // steps under way that are not cut short
  bool state_lost_ = false;                // policy, critic or data is gone
  bool save_failed_ = false;               // the last try
  std::optional<std::uint64_t> released_;  // updates done, as the issuer is told
  std::uint64_t done_;                     // updates that the policy has learned from
  std::uint64_t committed_;                // and that are written down
  std::uint64_t next_issue_;               // first update whose tickets were not asked for
  std::uint64_t issued_;                   // updates whose tickets are out
  std::optional<std::uint64_t> awaited_;   // the update that the trainer waits for
  std::optional<core::Error> used_up_;     // no prompts are left for the update after issued_
  std::optional<std::uint64_t> saved_;     // updates done at the newest checkpoint of this play
  std::filesystem::path saved_at_;         // its folder
  // By update and slot, until the update is committed.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> faults_, filtered_;
  async::Timer straggler_timer_;
  std::vector<std::uint64_t> staleness_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace troupe::actors
