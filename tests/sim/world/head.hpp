// One life of the head: company, data and controller in one simulated process, and the command that
// trains session by session. The roles are real; what the program's control plane does around them
// is done here on virtual time. Owned by the world, which keeps it until it has unwound.
#pragma once

#include "actors/company/company.hpp"
#include "actors/controller/controller.hpp"
#include "actors/data/data_role.hpp"
#include "runtime/cluster/role_host.hpp"
#include "tests/sim/world/node.hpp"
#include "tests/sim/world/stage.hpp"
#include "tests/sim/world/supervised.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace troupe::sim {

class Head final : public actors::company::NodeLauncher, public actors::company::CompanyPort {
 public:
  struct Calls {
    // Starts a local node's process.
    std::function<void(Head&, const Node::Self&)> launch;
    std::function<void(const std::string& node)> kill;
    // Tells a node's process that an earlier head left to enter here. False when there is none.
    std::function<bool(Head&, const Node::Self&)> adopt;
    // The run has ended, with this outcome, and all nodes were dismissed.
    std::function<void(Head&, core::Result<void>)> over;
    std::function<void()> progress;
  };
  Head(
      Stage& stage, std::uint64_t number, std::uint64_t run, std::uint64_t generation, Calls calls);
  ~Head() override;

  void begin();
  void kill();
  bool unwound() const noexcept { return unwound_; }
  Process& process() noexcept { return process_; }
  bool in_session() const noexcept { return session_ != nullptr; }

  // ---- the exchange, as this process sees it
  std::string issue_pass() { return admission_.issue_pass(); }
  void introduced(Node& node, const wire::Hello& hello);
  bool hears(const Process& of, const cluster::Identity& from) const;
  // The process that plays a role, as the head knows it.
  const Process* player(const std::string& role) const {
    const auto bound = bound_.find(role);
    return bound == bound_.end() ? nullptr : bound->second.process;
  }
  void connection_lost(Process& of);
  void role_ended(Process& of, const cluster::Identity& role);
  // A local process ended.
  void exited(const std::string& node, const std::string& how) { exits_.push_back({node, how}); }

 private:
  struct Bound {
    Process* process = nullptr;
    std::uint64_t epoch = 0;
  };
  // One life of the run, from a checkpoint to an outcome.
  struct Session {
    std::unique_ptr<FakeListener> listener;
    std::unique_ptr<cluster::RoleHost> data, controller;
    std::weak_ptr<actors::controller::Conductor> role;
    async::Executor strand;
    std::shared_ptr<async::Oneshot<core::Result<void>>> outcome;
  };

  actors::company::CompanyOptions company_options() const;
  actors::controller::RunPlan run_plan(std::uint64_t first) const;
  actors::data::DataRoleOptions data_options();
  // Makes the files ready for a session that goes on after `first` updates or steps.
  core::Result<void> take_up_updates(const std::string& checkpoint, std::uint64_t first);
  core::Result<void> take_up_steps(std::uint64_t first);
  std::unique_ptr<FakeListener> listener(std::uint64_t first);
  std::unique_ptr<FakeListener> step_listener(std::uint64_t first);
  cluster::RoleHost::Factory data_role();
  cluster::RoleHost::Factory rows_role();
  cluster::RoleHost::Factory controller(std::string checkpoint, std::uint64_t first);
  cluster::RoleHost::Factory step_controller(std::string checkpoint, std::uint64_t first);
  template <class Conductor>
  core::Result<std::unique_ptr<cluster::Role>> conducting(std::shared_ptr<Conductor> conductor,
                                                          const std::string& checkpoint,
                                                          const cluster::RoleServices& services);
  static async::task<void> live(Head* self);
  static async::task<core::Result<void>> start_company(Head* self);
  static async::task<core::Result<void>> train(Head* self);
  static async::task<core::Result<void>> run_session(Head* self);
  static async::task<core::Result<void>> host_session(Head* self,
                                                      std::string checkpoint,
                                                      std::uint64_t first);
  static async::task<core::Result<void>> await_roles(Head* self);
  static async::task<void> end_session(Head* self);
  static async::task<void> unwind(Head* self);
  template <class Request>
  async::task<core::Result<typename Request::Reply>> ask_controller(Request request);

  void end_run(core::Error error);
  void tell(std::function<void(actors::controller::Conductor&)> what);
  void attach_session();
  void check_regroup();
  void set_outcome(core::Result<void> outcome);
  void tell_lost(const std::string& name, const std::string& why);
  std::uint64_t session_epoch() const { return core::first_epoch(generation_) + sessions_; }

  // ---- CompanyPort
  void role_up(const std::string& role) override;
  void role_lost(const std::string& role, const core::Error& cause) override;
  void note(const std::string& text) override;
  void hopeless(const core::Error& error) override;
  void fence(const std::string& name, std::uint64_t epoch, const core::Error& cause) override;
  void regroup(const std::string& why) override;
  async::task<core::Result<actors::RewardsChanged>> attach(actors::AttachReward it) override {
    return ask_controller(std::move(it));
  }
  async::task<core::Result<actors::RewardsChanged>> reweight(actors::ReweightReward it) override {
    return ask_controller(std::move(it));
  }
  async::task<core::Result<actors::RewardsChanged>> detach(actors::DetachReward it) override {
    return ask_controller(std::move(it));
  }
  async::task<core::Result<actors::Ack>> drain(actors::DrainGenerator it) override {
    return ask_controller(std::move(it));
  }

  // ---- NodeLauncher
  core::Result<void> start(const std::string& node,
                           const std::vector<std::string>& kinds,
                           const std::string& pass) override;
  bool adopt(const std::string& node,
             const std::vector<std::string>& kinds,
             const std::string& pass) override;
  void kill(const std::string& node) override { calls_.kill(node); }
  std::vector<Exit> exits() override { return std::exchange(exits_, {}); }

  Stage& stage_;
  Process process_;
  const std::uint64_t run_, generation_;
  const Calls calls_;
  DiskView disk_;
  const async::Executor main_, company_strand_;
  actors::company::Admission admission_;
  std::shared_ptr<actors::company::Company> company_;
  std::unique_ptr<cluster::RoleHost> company_host_;
  std::shared_ptr<cluster::Endpoint> status_;  // asks the controller for the company
  std::unique_ptr<async::Scope> asks_;         // requests to the controller
  std::unique_ptr<async::Scope> scope_;        // of the training command
  std::unique_ptr<Session> session_;
  std::map<std::string, Bound> bound_;
  std::vector<Exit> exits_;
  std::map<std::uint64_t, actors::SetRewards> reward_sets_;
  std::optional<core::Error> hopeless_;
  actors::controller::FailedUpdate failed_;
  std::string regroup_;  // what the company says of ranks that are back
  std::uint64_t sessions_ = 0, done_ = 0;
  actors::data::LoggedRun logged_;  // found by the present session
  std::vector<StepLine> kept_;      // by a supervised one
  bool over_ = false, killed_ = false, unwound_ = false;
};

}  // namespace troupe::sim
