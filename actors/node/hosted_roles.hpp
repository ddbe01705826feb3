// The roles that run in a node's process. They are started and stopped as the company asks, and
// live on when the company's process is gone, until another one takes them over or nobody does.
// What was begun is finished, even when the one who asked is gone. Owned by the process, used on
// the strand of its node role. Bound: one start or stop at a time.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/cluster/role_host.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::node {

// The interface that turns a Spawn message into a role; apps/session/roles implements it.
class RoleMaker {
 public:
  virtual ~RoleMaker() = default;
  // Loads what the role needs; slow parts run off the caller's strand. Errors name file and flag.
  virtual async::task<core::Result<cluster::RoleRecipe>> make(Spawn spawn) = 0;
  // Why the roles' device is wedged, so that this process must end; "" when it is not. Any thread.
  virtual std::string wedged() const { return ""; }
  // A role is to stop, up to its start with this epoch (0: whatever its epoch): what it waits for
  // from other processes ends now, with an error. Any thread.
  virtual void abandon(const std::string& role, std::uint64_t epoch) {
    static_cast<void>(role);
    static_cast<void>(epoch);
  }
  // Abandons all roles that are being started and need the company for it. Any thread.
  virtual void abandon_starts() {}
};

class HostedRoles {
 public:
  // What the roles use of their process.
  struct Ports {
    // Adds a role to the transport of this process, on a strand of the roles' threads.
    std::function<core::Result<std::shared_ptr<cluster::Endpoint>>(cluster::Identity)> place;
    RoleMaker* maker = nullptr;
    std::function<void(const std::string&)> note;  // for the log
  };
  HostedRoles(async::Executor strand, async::Timers& timers, Ports ports);

  // Starts a role; a role of an earlier epoch is stopped first, and all roles of another run are.
  // Does nothing when the role is here with that epoch. Error kInvalidArgument: it has run here
  // with a later one of this run.
  async::task<core::Result<void>> start(Spawn spawn);
  // Stops a role if its epoch is at most `epoch`; 0: whatever its epoch. Does nothing when the role
  // is not here.
  async::task<void> stop(std::string role, std::uint64_t epoch = 0);
  // Stops every role; none is started any more. May be awaited on any executor.
  async::task<void> stop_all();
  // Waits until no start or stop is under way. A start that needs the company fails. May be awaited
  // on any executor.
  async::task<void> settle();

  // The newest report of each role, with its age. Asks the roles for the next ones, which come as
  // soon as their strands are free: a role that is stuck keeps its last report. On the strand.
  std::vector<wire::RoleReport> reports();

  // The roles that are here, and the configuration that the last of them was started with.
  std::vector<HostedRole> list() const;
  const std::string& config() const noexcept { return config_; }

 private:
  struct Figures {
    std::optional<wire::RoleReport> report;
    core::TimePoint made{};   // when the report was
    core::TimePoint asked{};  // when the role was last asked for one
    bool asking = false;      // it has not answered
  };
  struct Hosted {
    HostedRole role;
    std::unique_ptr<cluster::RoleHost> host;
    std::shared_ptr<Figures> figures = std::make_shared<Figures>();
    bool stops = false;
  };
  auto begin_change();
  async::task<core::Result<void>> start_here(Spawn spawn);
  async::task<void> forget_run(std::uint64_t next);
  async::task<core::Result<void>> stop_told(std::string role, std::uint64_t epoch);
  async::task<void> stop_one(std::string role, std::uint64_t epoch);
  async::task<void> settle_here();
  async::task<void> stop_here();
  async::task<core::Result<std::unique_ptr<cluster::RoleHost>>> host(Spawn spawn);
  void failed(const std::string& role, const core::Error& error);
  void ask_for_figures(const Hosted& hosted);

  const async::Executor strand_;
  async::Timers& timers_;
  const Ports ports_;
  async::Scope scope_;  // starts and stops under way
  std::map<std::string, Hosted> hosted_;
  std::string config_;
  std::uint64_t run_id_ = 0;                    // of the last start
  std::map<std::string, std::uint64_t> ended_;  // newest epoch of this run's roles that were here
  bool ending_ = false;
  bool changing_ = false;  // a role is being started or stopped
  async::Notifier changed_;
};

}  // namespace troupe::actors::node
