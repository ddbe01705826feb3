// The company role keeps the nodes and roles of a run up. It starts the node processes of its own
// host, lets other nodes join, watches their heartbeats, places the run's roles on nodes, restarts
// lost ones, and tells the run which roles came and went. Runs on its own strand and thread in the
// controller's process; everything it is given outlives it.
#pragma once

#include "actors/company/admission.hpp"
#include "actors/company/adoption.hpp"
#include "actors/company/arithmetic_classes.hpp"
#include "actors/company/drains.hpp"
#include "actors/company/gang_meetings.hpp"
#include "actors/company/local_processes.hpp"
#include "actors/company/lost_nodes.hpp"
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
  std::string bound;    // the one node that may play it; "": any that offers the kind
  bool ranked = false;  // the next rank of the gang of its kind
};

struct CompanyOptions {
  std::uint64_t run_id = 0;
  std::string run;               // its folder, as this head calls it
  std::uint64_t generation = 0;  // of the run: this head's
  core::Duration head_wait{0};   // how long nodes wait for the next head
  std::string arithmetic, build;
  std::vector<LocalNode> local_nodes;
  std::vector<WantedRole> roles;
  bool episodes = false;  // environments may be attached
  // The same for every Spawn message.
  std::string config;
  std::vector<std::pair<std::string, std::string>> settings;
  std::map<std::string, std::uint32_t> threads;  // by kind
};

// The nodes that have joined and the roles that they play, for `status`.
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

// What the company calls, on its strand.
struct CompanyHooks {
  std::function<void(const std::string& role)> role_up;
  std::function<void(const std::string& role, const core::Error& cause)> role_lost;
  std::function<void(const std::string& text)> note;
  // The run cannot go on, because of this error.
  std::function<void(const core::Error&)> hopeless;
  // Has the transport drop the name, with `cause` as the error of calls that wait for it.
  std::function<void(const std::string& name, const core::Error& cause)> fence;
  // When bytes last came from a node of another host. May be null.
  Membership::Traffic traffic;
  // Settings that only a Spawn to a node of another host carries, beside the common ones.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  std::function<async::task<Settings>()> contents;
  // The state of the run, as JSON.
  std::function<async::task<core::Result<std::string>>()> status;
  // Changes of the reward set, for the controller of the run.
  std::function<async::task<core::Result<RewardsChanged>>(AttachReward)> attach;
  std::function<async::task<core::Result<RewardsChanged>>(ReweightReward)> reweight;
  std::function<async::task<core::Result<RewardsChanged>>(DetachReward)> detach;
  // Keeps what a node has printed; `pid`: of its process. Must be quick. Null: nothing is kept.
  std::function<void(PutLog, std::uint32_t pid)> log;
  // What the node has printed last, oldest first. Must be quick. Null: nothing is known.
  std::function<std::vector<std::string>(const std::string& node)> last_lines;
  // A rank of this host listens at the Unix socket for those of other hosts. Null: none come.
  std::function<void(const PlacedRole& rank, const std::string& socket)> rank_listens;
  // The run shall start again at its next checkpoint, since a gang can have all of its ranks, as
  // the text says; "": not any more. Null: it never does.
  std::function<void(const std::string& why)> regroup;
  // Has the controller of the run take a generator out of work. Null: it has none to finish.
  std::function<async::task<core::Result<Ack>>(DrainGenerator)> drain;
};

class Company {
 public:
  Company(RoleContext context,
          CompanyOptions options,
          Admission& admission,
          NodeLauncher& launcher,
          CompanyHooks hooks);

  // Starts the local processes and all that keeps the company up. Called once, on the strand.
  void begin() { context_.scope->spawn("company", attend()); }

  CompanyView view() const;

  // Refuses a repeated request: the name is taken.
  async::task<core::Result<Joined>> on(Join request);
  // A repeated request counts as one more heartbeat.
  async::task<core::Result<Ack>> on(Beat request);
  // Lines that are there already are left out of a repeated request.
  async::task<core::Result<Ack>> on(PutLog request);
  // A repeated request gets the state of that moment.
  async::task<core::Result<Status>> on(QueryStatus request);
  // A repeated request gets the same answer.
  async::task<core::Result<GangMet>> on(MeetGang request);

  // Attaches a reward that a guest brings, once the reward's role has introduced itself. Refuses a
  // repeated request: the name is taken.
  async::task<core::Result<RewardsChanged>> on(AttachReward request);
  // A repeated request makes another set with the same weight.
  async::task<core::Result<RewardsChanged>> on(ReweightReward request) {
    return hooks_.reweight(std::move(request));
  }
  // Detaches a reward. Answers after its last group is scored, and then dismisses the guest that
  // brought it. Refuses a repeated request: the reward is gone.
  async::task<core::Result<RewardsChanged>> on(DetachReward request);

  // Takes a node out of the run and dismisses it; it is not started again. A repeated request waits
  // as the first does, and is acknowledged when the node has left.
  async::task<core::Result<Ack>> on(DrainNode request);

  // From the transport, posted to the strand.
  void on_arrived(const wire::Hello& hello, const std::string& origin);
  void on_lost(const std::string& name, std::uint64_t epoch, const core::Error& cause);

  // Stops a role that no longer works and starts it again, on the same node or another, as if it
  // had been lost. Does nothing when `epoch` is not the role's present one.
  void restart(const std::string& role, std::uint64_t epoch, const core::Error& cause);
  // The role was not to blame for its last failures and losses: it need not wait for them.
  void clear(const std::string& role) { placement_.clear(role); }

  // Starts again what earlier heads left but does not go together: generators with weights of a
  // policy that is gone. Call before a session.
  void end_leftovers();
  // Waits until all roles of these kinds are up. Error kDeadline names those that are not.
  async::task<core::Result<void>> await_up(std::vector<std::string> kinds,
                                           async::Deadline deadline);
  // Stops every role. They are started again only after `begin_run`.
  async::task<void> end_run();
  void begin_run() { resting_ = parting_ = false; }
  // Asks every node to end and waits until the local ones have, at most until the deadline. Guests
  // that brought a reward are asked only when the run is `over`; otherwise they notice the lost
  // link and wait for the run to come back.
  async::task<void> dismiss_all(async::Deadline deadline, bool over);

  const RolePlacement& placement() const noexcept { return placement_; }
  const ArithmeticClasses& classes() const noexcept { return classes_; }
  // The role's present or last epoch; 0 for a role that the run does not want.
  std::uint64_t epoch_of(const std::string& role) const {
    const PlacedRole* const placed = placement_.find(role);
    return placed == nullptr ? 0 : placed->epoch;
  }

 private:
  async::task<core::Result<void>> attend();
  core::Result<void> check_run(const Join& request) const;
  std::vector<std::string> adopt(const Join& request);
  async::task<void> take_over(std::string role, std::uint64_t epoch);
  void tend_processes();
  void look_at_silence();
  void start_due_roles();
  void mend_gangs();
  void look_for_room();
  void note_size(const PlacedRole& placed) const;
  async::task<void> start_role(PlacedRole placed);
  void not_started(const PlacedRole& placed, const core::Error& error);
  void note_class(const wire::Hello& hello);
  async::task<void> refuse_class(PlacedRole placed);
  async::task<void> take_down(std::string role, std::uint64_t epoch, core::Error cause);
  async::task<void> stop_role(std::string role, std::uint64_t epoch, core::Error cause);
  void end_rank(const std::string& role, std::uint64_t epoch);
  async::task<bool> arrived(std::string role, std::uint64_t epoch);
  std::uint64_t introduced(const std::string& name) const;  // its epoch; 0 when it is not there
  async::task<void> give_up_soon(std::string node, std::uint64_t epoch, core::Error cause);
  void give_up(const std::string& node, const core::Error& cause);
  std::vector<std::string> last_lines_of(const std::string& node) const;
  void note_lost(const Member& member, const core::Error& cause);
  void lose_role(const std::string& role, std::uint64_t epoch, const core::Error& cause);
  void fail_run(const core::Error& error);
  async::task<core::Result<void>> dismiss(std::string node);
  core::Result<std::string> node_named(const std::string& name) const;
  core::Result<void> begin_drain(const std::string& node);
  async::task<void> drain(std::string node, core::Duration wait);
  async::task<void> take_away(std::string role, std::uint64_t epoch, core::Duration wait);
  async::task<void> see_off(std::string node);

  RoleContext context_;
  CompanyOptions options_;
  Admission& admission_;
  CompanyHooks hooks_;
  Membership membership_;
  RolePlacement placement_;
  ArithmeticClasses classes_;
  Adoption adoption_;
  GangMeetings meetings_;
  LocalProcesses processes_;
  Drains drains_;
  LostNodes lost_nodes_;
  std::map<std::string, std::uint64_t> introduced_;  // epoch by name, of those that are there
  std::map<std::string, std::string> brought_;       // node by role, for roles of guests
  bool no_room_ = false;                             // the disk is too full to start a process
  bool resting_ = false;                             // start no role
  bool parting_ = false;                             // roles end because the company asked them to
  bool dismissing_ = false;                          // nodes, too, end because they were asked to
  bool failed_ = false;  // the run cannot go on, or is over: start nothing any more
  std::string room_;     // what `regroup` was told last
  async::Notifier changed_;
};

}  // namespace troupe::actors
