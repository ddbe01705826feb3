// What a company tells the run around it, and what it asks of that run. The head implements it.
// Used on the company's strand.
#pragma once

#include "actors/company/local_processes.hpp"
#include "actors/company/role_placement.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/async/task.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::company {

struct WantedRole {
  std::string kind, name;
  std::string bound;    // the one node that may run it; "": any that offers the kind
  bool ranked = false;  // the next rank of the gang of its kind
};

struct CompanyOptions {
  std::uint64_t run_id = 0;
  std::string run;               // its folder, as this head calls it
  std::uint64_t generation = 0;  // of this head in the run
  core::Duration head_wait{0};   // how long nodes wait for the next head
  std::string arithmetic, build;
  std::vector<LocalNode> local_nodes;
  std::vector<WantedRole> roles;
  bool episodes = false;  // environments may be attached
  // What every Spawn message carries.
  std::string config;
  std::vector<std::pair<std::string, std::string>> settings;
  std::map<std::string, std::uint32_t> threads;  // by kind
};

class CompanyPort {
 public:
  virtual ~CompanyPort() = default;

  virtual void role_up(const std::string& role) = 0;
  virtual void role_lost(const std::string& role, const core::Error& cause) = 0;
  virtual void note(const std::string& text) = 0;
  // The run cannot go on, because of this error.
  virtual void hopeless(const core::Error& error) = 0;
  // Has the transport drop the name, with `cause` as the error of calls that wait for it, unless a
  // later epoch has it.
  virtual void fence(const std::string& name, std::uint64_t epoch, const core::Error& cause) = 0;

  // When bytes last came from a node of another host, if that is known.
  virtual std::optional<core::TimePoint> heard(const std::string&) { return std::nullopt; }
  // Settings that only a Spawn to a node of another host carries, besides the common ones.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  virtual async::task<Settings> contents() { co_return Settings(); }
  // The state of the run, as JSON.
  virtual async::task<core::Result<std::string>> status() { co_return std::string("{}"); }
  // Changes of the reward set, for the controller of the run.
  virtual async::task<core::Result<RewardsChanged>> attach(AttachReward) {
    co_return RewardsChanged{};
  }
  virtual async::task<core::Result<RewardsChanged>> reweight(ReweightReward) {
    co_return RewardsChanged{};
  }
  virtual async::task<core::Result<RewardsChanged>> detach(DetachReward) {
    co_return RewardsChanged{};
  }
  // Has the controller of the run take a generator out of work.
  virtual async::task<core::Result<Ack>> drain(DrainGenerator) { co_return Ack{}; }
  // Keeps what a node has printed; `pid`: of its process. Must be quick.
  virtual void log(PutLog, std::uint32_t /*pid*/) {}
  // What the node has printed last, oldest first. Must be quick.
  virtual std::vector<std::string> last_lines(const std::string& /*node*/) { return {}; }
  // A rank of this host listens at the Unix socket for those of other hosts.
  virtual void rank_listens(const PlacedRole& /*rank*/, const std::string& /*socket*/) {}
  // The run shall start again at its next checkpoint, since a gang can have all of its ranks, as
  // the text says; "": not any more.
  virtual void regroup(const std::string& /*why*/) {}
};

}  // namespace troupe::actors::company
