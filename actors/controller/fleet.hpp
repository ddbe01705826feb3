// Manages the generators of a run for the controller: which are up, which weights each holds, which
// tickets each samples. In a run of episodes another fleet has the environments, which take tickets
// and no weights, and the generators take calls (CallService). The fleet sends each waiting ticket
// to the generator that the router picks, queues the tickets of a lost generator again, and sends
// new weights to each in the background.
//
//   a generator: lost -> (comes up) stale -> (takes its first weights) fresh -> lost
//
// An error of one generator does not end the run: the ticket goes to another, a generator that
// keeps failing is restarted, and weights that did not arrive are sent again, with back-off and
// with each new version. A ticket that failed kTicketFailures_max times (at different generators,
// if there are several) is set aside: its group fails, and the slot gets another prompt. So is one
// whose generators were lost kTicketLosses_max times, the last one while it sampled that ticket
// alone: after each loss but the first a ticket is sampled among a quarter as many others. The run
// ends after kGeneratorWait without a generator that can work, unless the fleet is patient. A
// generator that was restarted because it kept failing counts again after its first success. Logits
// that are not finite restart it once for each version of the weights; NumericFaults decides what
// follows when the fresh one gives them, too.
//
// Part of the controller, on its strand; its coroutines are children of the run's scope.
// Bounds: one call per group; two weight calls and kGeneratorGroups_max groups per generator.
#pragma once

#include "actors/controller/failure_book.hpp"
#include "actors/controller/numeric_faults.hpp"
#include "actors/controller/router.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/controller/snapshot.hpp"
#include "actors/controller/ticket_queue.hpp"
#include "actors/limits.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors {

// What the members of a fleet are.
struct FleetKind {
  const char* noun = "generator";
  bool weights = true;   // they sample, with weights that they are sent
  bool patient = false;  // waits for one as long as it takes
  std::uint32_t work_max = static_cast<std::uint32_t>(limits::kGeneratorGroups_max);  // of each
};

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
    clear_ = std::move(clear);
  }

  // From now on the run has a scope for coroutines: work can begin.
  void begin();

  // `epoch`: of this start of the generator; passed on to `restart`.
  void up(const std::string& name, std::uint64_t epoch);
  void lost(const std::string& name, const std::string& cause);
  // Gives the generator no more tickets; answers once it samples none, is lost, or at the deadline.
  async::task<void> drain(std::string name, async::Deadline deadline);
  bool knows(const std::string& name) const { return generators_.contains(name); }

  // The newest weights; every generator gets them, now or when it comes up.
  void offer(const Published& published);
  const std::optional<Published>& latest() const noexcept { return latest_; }

  // Queues the tickets, each with the settings of `like`.
  void add(const std::vector<experience::Ticket>& tickets, TicketWork like);
  // Asks the generators to cut the update's groups that they are sampling.
  void cut(std::uint64_t update);
  // The update was committed: drops its tickets, and ignores what still comes back for it.
  void forget(std::uint64_t update);

  // A call that a member answers beside tickets.
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
  std::size_t up_count() const noexcept { return router_.generators(); }
  // The generators that can work: up, not sick or drained, and with weights (or no failed try to
  // take any).
  std::size_t able() const;
  std::vector<GeneratorLine> lines() const;

 private:
  struct Generator {
    bool up = false;
    std::uint64_t life = 0;  // grows each time it comes up; answers to an earlier one are ignored
    std::uint64_t epoch = 0;
    std::optional<core::Version> holds{};
    core::Version sent = 0;      // newest weights it was told of
    int pushes = 0;              // weight calls under way
    std::uint64_t misses = 0;    // weights in a row that it could not take, restarts included
    std::uint64_t refusals = 0;  // of tickets in a row while it had none
    bool sick = false;           // restarted, and nothing succeeded since
    bool again = false;          // a timer to send the weights again is running
  };
  struct Flight {  // a ticket that a generator samples
    TicketWork work;
    std::string generator;
    bool cut = false;
    bool forgotten = false;
  };

  void dispatch();
  void assign(WorkKind kind);
  std::size_t open(std::uint64_t update) const;  // groups queued or being sampled
  async::task<core::Result<void>> sample(std::uint64_t id);
  void ended(std::uint64_t id, const core::Result<Generated>& reply);
  void failed(Flight flight, const core::Error& error);
  void blame(Flight flight, const core::Error& error);
  NumericFaults::Verdict verdict_on(const experience::Ticket& ticket,
                                    const std::string& name,
                                    const core::Error& error);
  void well_sampled(const experience::Ticket& ticket, const std::string& name);
  async::task<core::Result<void>> diverged(core::Version version, std::string what);
  void stranded(const Flight& flight, bool alone);
  void give_up(const experience::Ticket& ticket, std::string cause);
  async::task<core::Result<void>> set_aside(experience::Ticket ticket, std::string cause);
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
  const FleetKind kind_;
  const std::function<void(const experience::Ticket&)> retired_;
  Restart restart_;
  std::function<void(const std::string& name)> clear_;
  Router router_;
  TicketQueue queue_;
  FailureBook failures_;
  NumericFaults numeric_;
  std::map<std::string, Generator> generators_;  // those that were ever up
  std::map<std::uint64_t, Flight> flights_;
  async::Notifier landed_;  // a flight has ended, or a generator is lost
  std::uint64_t last_flight_ = 0;
  std::optional<Published> latest_;
  bool is_alone_ = false;    // no generator is able to work
  std::uint64_t alone_ = 0;  // grows when that begins and when it ends
  std::string last_cause_;
};

}  // namespace troupe::actors
