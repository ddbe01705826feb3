// Judges what could not be sampled: whether a ticket, a member of the fleet or the weights are at
// fault, and gives up the tickets that are. A ticket that failed kTicketFailures_max times (at
// different members, if there are several) is set aside: its group fails, and the slot gets another
// prompt. So is one whose members were lost kTicketLosses_max times, the last one while it sampled
// that ticket alone. Logits that are not finite restart a member once for each version of the
// weights; when the fresh one gives them, too, NumericFaults decides. Part of the controller, on
// its strand; its coroutines are children of the run's scope. Bound: the groups of open updates.
#pragma once

#include "actors/controller/failure_book.hpp"
#include "actors/controller/fleet_members.hpp"
#include "actors/controller/numeric_faults.hpp"

#include <functional>
#include <set>
#include <string>

namespace troupe::actors::controller {

class TicketFaults {
 public:
  // `run` and `members` outlive it.
  TicketFaults(RunState& run, FleetMembers& members) : run_(run), members_(members) {}

  // Called when what a member did wrong turns out to be a ticket's fault.
  void when_cleared(std::function<void(const std::string& name)> clear) {
    clear_ = std::move(clear);
  }

  // Where the ticket should not go again; null: it may go anywhere.
  const std::set<std::string>* avoided(const experience::Ticket& ticket) const {
    return failures_.where(ticket);
  }
  std::size_t losses(const experience::Ticket& ticket) const { return failures_.losses(ticket); }
  bool none() const noexcept { return failures_.empty(); }

  void started_again(const std::string& name) { failures_.started_again(name); }
  void forget_update(std::uint64_t update) { failures_.forget_update(update); }
  // The member has sampled the ticket: neither is at fault for what was before.
  void succeeded(const experience::Ticket& ticket, const std::string& name);

  struct Finding {
    std::size_t times = 0;       // the ticket has failed
    bool given_up = false;       // it is set aside
    bool of_member = true;       // the error may be the member's
    bool keeps_failing = false;  // the member fails at different tickets
  };
  // The member failed at the ticket. A ticket that `may_end` is set aside when it failed too often.
  Finding failed(const experience::Ticket& ticket,
                 const std::string& name,
                 const core::Error& error,
                 bool may_end);
  // The member was lost while it sampled the ticket; `alone`: and nothing else. False: the ticket
  // is set aside.
  bool lost(const experience::Ticket& ticket, const std::string& name, bool alone);

 private:
  bool of_member(const experience::Ticket& ticket,
                 const std::string& name,
                 const core::Error& error);
  async::task<core::Result<void>> diverged(core::Version version, std::string what);
  void give_up(const experience::Ticket& ticket, std::string cause);
  async::task<core::Result<void>> set_aside(experience::Ticket ticket, std::string cause);

  RunState& run_;
  FleetMembers& members_;
  std::function<void(const std::string& name)> clear_;
  FailureBook failures_;
  NumericFaults numeric_;
};

}  // namespace troupe::actors::controller
