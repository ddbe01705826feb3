// Manages the generators of a run for the controller: which are up, which weights each holds, which
// tickets each samples. In a run of episodes another fleet has the environments, which take tickets
// and no weights, and the generators take calls (CallService). The fleet sends each waiting ticket
// to the generator that the router picks, queues the tickets of a lost generator again, and sends
// new weights to each in the background.
//
//   a generator: lost -> (comes up) stale -> (takes its first weights) fresh -> lost
//
// An error of one generator does not end the run: the ticket goes to another, and a generator that
// keeps failing is restarted; TicketFaults judges whose fault it is. After each loss of a generator
// but the first a ticket is sampled among a quarter as many others. A generator that was restarted
// because it kept failing counts again after its first success. FleetMembers knows who is up,
// WeightPushes sends weights.
//
// Part of the controller, on its strand; its coroutines are children of the run's scope.
// Bounds: one call per group; kGeneratorGroups_max groups per generator.
#pragma once

#include "actors/controller/fleet_members.hpp"
#include "actors/controller/ticket_faults.hpp"
#include "actors/controller/ticket_queue.hpp"
#include "actors/controller/weight_pushes.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::controller {

class Fleet {
 public:
  // `retired` is called when a straggler was cut with nothing to deliver: its slot needs another
  // attempt. `run` outlives the fleet.
  Fleet(RunState& run,
        std::function<void(const experience::Ticket&)> retired,
        FleetKind kind = FleetKind());

  // Called when a generator no longer works and must be restarted; `up` reports its next start.
  // Without it nobody starts generators, and the same one is tried again after a pause.
  using Restart =
      std::function<void(const std::string& name, std::uint64_t epoch, const core::Error& cause)>;
  void when_sick(Restart restart) { restart_ = std::move(restart); }
  // Called when what a generator did wrong turns out to be a ticket's fault.
  void when_cleared(std::function<void(const std::string& name)> clear) {
    faults_.when_cleared(std::move(clear));
  }

  // From now on the run has a scope for coroutines: work can begin.
  void begin();

  // `epoch`: of this start of the generator; passed on to `restart`.
  void up(const std::string& name, std::uint64_t epoch);
  void lost(const std::string& name, const std::string& cause);
  // Gives the generator no more tickets; answers once it samples none, is lost, or at the deadline.
  async::task<void> drain(std::string name, async::Deadline deadline);
  bool knows(const std::string& name) const { return members_.knows(name); }

  // The newest weights; every generator gets them, now or when it comes up.
  void offer(const Published& published) { weights_.offer(published); }
  const std::optional<Published>& latest() const noexcept { return weights_.latest(); }

  // Queues the tickets, each with the settings of `like`.
  void add(const std::vector<experience::Ticket>& tickets, TicketWork like);
  // Asks the generators to cut the update's groups that they are sampling.
  void cut(std::uint64_t update);
  // The update was committed: drops its tickets, and ignores what still comes back for it.
  void forget(std::uint64_t update);

  // A call that a member answers besides tickets.
  struct Taken {
    std::string member;
    std::uint64_t life = 0;
    TicketWork work;
  };
  // Gives a call to a member, none of `avoid` if another could take it; nothing when none has room.
  std::optional<Taken> take(TicketWork work, const std::set<std::string>& avoid);
  // The member has answered; nothing if it was lost meanwhile. `error`: what it answered with.
  void answered(const Taken& taken, const core::Error* error);
  // Notified when a member may have room.
  async::Notifier& changes() noexcept { return landed_; }

  std::size_t waiting() const noexcept { return queue_.size(); }
  std::size_t up_count() const noexcept { return members_.router().generators(); }
  std::size_t able() const { return members_.able(); }
  std::vector<GeneratorLine> lines() const { return members_.lines(); }

 private:
  struct Flight {  // a ticket that a generator samples
    TicketWork work;
    std::string generator;
    bool cut = false;
    bool forgotten = false;
  };

  void dispatch();
  void assign(WorkKind kind);
  async::task<core::Result<void>> sample(std::uint64_t id);
  void ended(std::uint64_t id, const core::Result<Generated>& reply);
  void failed(Flight flight, const core::Error& error);
  void blame(Flight flight, const core::Error& error);
  void gone(const std::string& name, const core::Error& cause);
  void restart(const std::string& name, const core::Error& cause);
  async::task<void> come_back(std::string name, std::uint64_t life);
  async::task<void> unblock(std::string name);
  async::task<void> tell_cut(std::string name, CutGroups request);
  std::uint32_t capacity(WorkKind kind) const;

  RunState& run_;
  const std::function<void(const experience::Ticket&)> retired_;
  Restart restart_;
  FleetMembers members_;
  TicketFaults faults_;
  WeightPushes weights_;
  TicketQueue queue_;
  std::map<std::uint64_t, Flight> flights_;
  async::Notifier landed_;  // a flight has ended, or a generator is lost
  std::uint64_t last_flight_ = 0;
};

}  // namespace troupe::actors::controller
