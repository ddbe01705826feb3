// The generators of a run as the controller sees them: who is up, who holds which weights, which
// ticket is where. It sends each waiting ticket to the generator that the router picks, takes back
// what a lost one had, and brings new weights to each without anybody waiting for them.
//
//   up -> stale -> (first weights taken) fresh -> lost: its tickets return to the front of the
//   queue
//
// Part of the controller, on its strand; its coroutines are children of the scope given to `begin`.
// Bounds: one call a group, two weight calls a generator, kGeneratorGroups_max groups a generator.
#pragma once

#include "actors/controller/router.hpp"
#include "actors/controller/run_listener.hpp"
#include "actors/controller/run_plan.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/controller/ticket_queue.hpp"
#include "actors/protocol/role_shell.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class Fleet {
 public:
  struct Hooks {
    // A straggler was cut and had nothing to deliver: its slot needs another attempt.
    std::function<void(const core::Ticket&)> retired;
    // Nothing of this update is queued or being sampled any more.
    std::function<void(std::uint64_t update)> settled;
  };

  Fleet(RoleContext context, const RunPlan& plan, RunListener& listener, Hooks hooks);

  void begin(async::Scope& scope);
  void end() { scope_ = nullptr; }

  void up(const std::string& name);
  void lost(const std::string& name, const std::string& cause);
  bool knows(const std::string& name) const { return generators_.contains(name); }

  // The newest weights; every generator gets them, now or when it comes up.
  void offer(const Published& published);
  const std::optional<Published>& latest() const noexcept { return latest_; }

  void add(const std::vector<core::Ticket>& tickets, TicketWork like);
  // Ends what is being sampled of the update; the number of groups asked for.
  std::size_t cut(std::uint64_t update);
  // The update was committed: what is left of it means nothing any more.
  void forget(std::uint64_t update);

  std::size_t open(std::uint64_t update) const;  // groups queued or being sampled
  std::size_t waiting() const noexcept { return queue_.size(); }
  std::size_t generators_up() const noexcept { return router_.generators(); }
  const std::map<std::string, std::uint64_t>& counts() const noexcept { return counts_; }
  std::vector<GeneratorLine> lines() const;

 private:
  struct Generator {
    bool up = false;
    std::uint64_t life = 0;  // grows each time it comes up: answers to an earlier life mean nothing
    std::optional<core::Version> holds;
    core::Version sent = 0;  // newest weights it was told of
    int pushes = 0;          // weight calls under way
  };
  struct Flight {
    TicketWork work;
    std::string generator;
    bool cut = false;
    bool forgotten = false;
  };

  void dispatch();
  void send(const std::string& name, TicketWork work);
  async::task<core::Result<void>> sample(std::uint64_t id, std::string name);
  core::Result<void> ended(std::uint64_t id, const core::Result<Generated>& reply);
  core::Result<void> failed(Flight flight, const core::Error& error);
  async::task<core::Result<void>> unblock(std::string name);

  void start_push(const std::string& name);
  async::task<core::Result<void>> push(std::string name, std::uint64_t life);
  async::task<core::Result<void>> tell_cut(std::string name, CutGroups request);
  async::task<core::Result<void>> wait_for_one(std::uint64_t alone);
  void check_alone();
  std::uint32_t capacity(WorkKind kind) const;

  RoleContext context_;
  const RunPlan& plan_;
  RunListener& listener_;
  Hooks hooks_;
  async::Scope* scope_ = nullptr;
  Router router_;
  TicketQueue queue_;
  std::map<std::string, Generator> generators_;  // those that were ever up
  std::map<std::uint64_t, Flight> flights_;
  std::uint64_t next_flight_ = 0;
  std::optional<Published> latest_;
  std::uint64_t alone_ = 0;  // grows when the last generator goes
  std::string last_cause_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace troupe::actors
