// The generators of a run as the controller sees them: who is up, who holds which weights, which
// ticket is where. It sends each waiting ticket to the generator that the router picks, takes back
// what a lost one had, and brings new weights to each without anybody waiting for them.
//
//   up -> stale -> (first weights taken) fresh -> lost: its tickets return to the front of the
//   queue
//
// An error of one generator is its own: the ticket goes elsewhere, a generator that is sick is to
// be started again, weights that did not arrive are sent again with back-off and with each new
// version. Two things end a run: a ticket that failed kTicketFailures_max times, each time at
// another generator as far as there are any, and kGeneratorWait without a generator that is able to
// work.
//
// Part of the controller, on its strand; its coroutines are children of the run's scope.
// Bounds: one call a group, two weight calls a generator, kGeneratorGroups_max groups a generator.
#pragma once

#include "actors/controller/failure_book.hpp"
#include "actors/controller/router.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/controller/ticket_queue.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class Fleet {
 public:
  // `retired`: a straggler was cut and had nothing to deliver, so its slot needs another attempt.
  // `run` outlives the fleet.
  Fleet(RunState& run, std::function<void(const experience::Ticket&)> retired);

  // Called when this life of a generator is of no more use; the next one is told by `up`. Without
  // it nobody starts generators, and a sick one is tried again as it is.
  using Restart =
      std::function<void(const std::string& name, std::uint64_t epoch, const core::Error& cause)>;
  void when_sick(Restart restart) { restart_ = std::move(restart); }

  // The run has a scope from now on.
  void begin();

  // `epoch`: of this life, for `restart`.
  void up(const std::string& name, std::uint64_t epoch);
  void lost(const std::string& name, const std::string& cause);
  bool knows(const std::string& name) const { return generators_.contains(name); }

  // The newest weights; every generator gets them, now or when it comes up.
  void offer(const Published& published);
  const std::optional<Published>& latest() const noexcept { return latest_; }

  void add(const std::vector<experience::Ticket>& tickets, TicketWork like);
  // Ends what is being sampled of the update.
  void cut(std::uint64_t update);
  // The update was committed: what is left of it means nothing any more.
  void forget(std::uint64_t update);

  std::size_t waiting() const noexcept { return queue_.size(); }
  std::size_t generators_up() const noexcept { return router_.generators(); }
  // Of these, those that hold weights or were not yet in vain given any.
  std::size_t generators_able() const;
  std::vector<GeneratorLine> lines() const;

 private:
  struct Generator {
    bool up = false;
    std::uint64_t life = 0;  // grows each time it comes up: answers to an earlier life mean nothing
    std::uint64_t epoch = 0;
    std::optional<core::Version> holds{};
    core::Version sent = 0;      // newest weights it was told of
    int pushes = 0;              // weight calls under way
    std::uint64_t misses = 0;    // weights in a row that it could not take, in all its lives
    std::uint64_t failures = 0;  // tickets in a row that failed
    bool again = false;          // weights are going to be sent again
  };
  struct Flight {
    TicketWork work;
    std::string generator;
    bool cut = false;
    bool forgotten = false;
  };

  void dispatch();
  void assign(WorkKind kind);
  std::size_t open(std::uint64_t update) const;  // groups queued or being sampled
  async::task<core::Result<void>> sample(std::uint64_t id);
  core::Result<void> ended(std::uint64_t id, const core::Result<Generated>& reply);
  core::Result<void> failed(Flight flight, const core::Error& error);
  core::Result<void> blame(Flight flight, const core::Error& error);
  void gone(const std::string& name, const core::Error& cause);
  void restart(const std::string& name, const core::Error& cause);
  async::task<void> come_back(std::string name, std::uint64_t life);
  async::task<void> unblock(std::string name);

  void start_push(const std::string& name);
  async::task<void> push(std::string name, std::uint64_t life);
  void missed(const std::string& name, core::Version version, const core::Error& error);
  async::task<void> push_again(std::string name, std::uint64_t life);
  async::task<void> tell_cut(std::string name, CutGroups request);
  async::task<core::Result<void>> wait_for_one(std::uint64_t alone);
  void look_alone();
  std::uint32_t capacity(WorkKind kind) const;

  RunState& run_;
  const std::function<void(const experience::Ticket&)> retired_;
  Restart restart_;
  Router router_;
  TicketQueue queue_;
  FailureBook failures_;
  std::map<std::string, Generator> generators_;  // those that were ever up
  std::map<std::uint64_t, Flight> flights_;
  std::uint64_t last_flight_ = 0;
  std::optional<Published> latest_;
  bool is_alone_ = false;    // no generator is able to work
  std::uint64_t alone_ = 0;  // grows when that begins and when it ends
  std::string last_cause_;
};

}  // namespace troupe::actors
