// The company: who is in, who plays what, who is lost, and what is started again. It starts the
// node processes of its own host, lets nodes join, hears their signs of life, places the roles that
// the run wants, and tells the run what came and went. Runs on its own strand and thread in the
// process of the controller; everything it is given outlives it.
#pragma once

#include "actors/company/admission.hpp"
#include "actors/company/local_processes.hpp"
#include "actors/company/membership.hpp"
#include "actors/company/role_placement.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/wire/hello.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors {

struct WantedRole {
  std::string kind, name;
  std::string bound;  // node that plays it; "" any that offers the kind
};

struct CompanyOptions {
  std::uint64_t run_id = 0;
  std::string arithmetic, build;
  std::vector<LocalNode> local_nodes;
  std::vector<WantedRole> roles;
  // What every Spawn carries.
  std::string config;
  std::vector<std::pair<std::string, std::string>> settings;
  std::map<std::string, std::uint32_t> threads;  // by kind
};

// Who is in and who plays what, for `status`.
struct CompanyView {
  struct Node {
    Join join;
    std::string health;
    double silent_s = 0, age_s = 0;
  };
  std::vector<Node> nodes;
  std::vector<PlacedRole> roles;
  std::map<std::string, std::string> brought;  // node by the reward role it brought
};

// Called on the company's strand.
struct CompanyHooks {
  std::function<void(const std::string& role)> role_up;
  std::function<void(const std::string& role, const core::Error& cause)> role_lost;
  std::function<void(const std::string& text)> note;
  // The run cannot go on.
  std::function<void(const core::Error&)> hopeless;
  // The transport drops the name and fails what waits for it.
  std::function<void(const std::string& name, const core::Error& cause)> fence;
  // What a Spawn to another host carries beside the settings of all.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  std::function<async::task<Settings>()> contents;
  // What goes on, as JSON.
  std::function<async::task<core::Result<std::string>>()> status;
  // Changes of the reward set, for the controller of the run.
  std::function<async::task<core::Result<RewardsChanged>>(AttachReward)> attach;
  std::function<async::task<core::Result<RewardsChanged>>(ReweightReward)> reweight;
  std::function<async::task<core::Result<RewardsChanged>>(DetachReward)> detach;
};

class Company {
 public:
  Company(RoleContext context,
          CompanyOptions options,
          Admission& admission,
          NodeLauncher& launcher,
          CompanyHooks hooks);

  // Starts the local processes and looks after everything from then on. Called once, on the strand.
  void begin() { context_.scope->spawn("company", attend()); }

  CompanyView view() const;

  // Repeated: refused; the name is taken.
  async::task<core::Result<Joined>> on(Join request);
  // Repeated: one more sign of life.
  async::task<core::Result<Ack>> on(Beat request);
  // Repeated: the state of that moment.
  async::task<core::Result<Status>> on(QueryStatus request);

  // A reward that a guest brings is attached once its role has introduced itself; after the last
  // group that needed it is scored, the guest is dismissed. Repeated: refused; the name is taken.
  async::task<core::Result<RewardsChanged>> on(AttachReward request);
  // Repeated: a new set with the same weight.
  async::task<core::Result<RewardsChanged>> on(ReweightReward request) {
    return hooks_.reweight(std::move(request));
  }
  // Repeated: refused; there is no such reward any more.
  async::task<core::Result<RewardsChanged>> on(DetachReward request);

  // From the transport, posted to the strand.
  void on_arrived(const wire::Hello& hello, const std::string& origin);
  void on_lost(const std::string& name, std::uint64_t epoch, const core::Error& cause);

  // This life of a role is of no more use: it is stopped where it plays and started again, there or
  // elsewhere, as one that was lost. News of a life that is over change nothing.
  void restart(const std::string& role, std::uint64_t epoch, const core::Error& cause);

  // Waits until all roles of these kinds are up.
  async::task<core::Result<void>> await_up(std::vector<std::string> kinds,
                                           async::Deadline deadline);
  // Stops every role; they are wanted again after `begin_run`.
  async::task<void> end_run();
  void begin_run() { resting_ = parting_ = false; }
  // Asks every node to end and waits until the local ones have, at most until the deadline. Guests
  // that brought a reward are asked when the run is `over`; else they see it go and wait for it.
  async::task<void> dismiss_all(async::Deadline deadline, bool over);

  const RolePlacement& placement() const noexcept { return placement_; }
  // Of its present or last life; 0 for a role that is not wanted.
  std::uint64_t epoch_of(const std::string& role) const {
    const PlacedRole* const placed = placement_.find(role);
    return placed == nullptr ? 0 : placed->epoch;
  }

 private:
  async::task<core::Result<void>> attend();
  void tend_processes();
  void look_at_silence();
  void start_due_roles();
  async::task<void> start_role(PlacedRole placed);
  void not_started(const PlacedRole& placed, const core::Error& error);
  async::task<void> stop_role(std::string role, std::uint64_t epoch, core::Error cause);
  async::task<bool> arrived(std::string role, std::uint64_t epoch);
  std::uint64_t introduced(const std::string& name) const;  // the epoch; 0 when it is not there
  async::task<void> give_up_soon(std::string node, std::uint64_t epoch, core::Error cause);
  void give_up(const std::string& node, const core::Error& cause);
  void lose_role(const std::string& role, std::uint64_t epoch, const core::Error& cause);
  void fail_run(const core::Error& error);
  async::task<core::Result<void>> dismiss(std::string node);

  RoleContext context_;
  CompanyOptions options_;
  Admission& admission_;
  CompanyHooks hooks_;
  Membership membership_;
  RolePlacement placement_;
  LocalProcesses processes_;
  std::map<std::string, std::uint64_t> introduced_;  // epoch by name, of those that are there
  std::map<std::string, std::string> brought_;       // node by the reward role it brought
  std::uint64_t next_generator_ = 0;
  bool resting_ = false;     // no role is started
  bool parting_ = false;     // roles end because they were asked to
  bool dismissing_ = false;  // so do nodes
  bool failed_ = false;
  async::Notifier changed_;
};

}  // namespace troupe::actors
