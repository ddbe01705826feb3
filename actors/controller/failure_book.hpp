// Records which tickets failed at which generators, so that the fleet can tell a bad ticket from a
// bad generator: the fleet sets aside a ticket that fails wherever it is tried (which then counts
// against no generator), and restarts a generator at which several tickets fail. A pure value.
// Bound: the groups of the open updates.
#pragma once

#include "runtime/core/find_value.hpp"
#include "runtime/experience/ticket.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace troupe::actors::controller {

class FailureBook {
 public:
  // Records that the ticket failed at this generator; returns how often it has failed so far.
  std::size_t add(const experience::Ticket& ticket, const std::string& generator) {
    Failures& failures = tickets_[ticket];
    failures.at.insert(generator);
    in_a_row_[generator].insert(ticket);
    return ++failures.count;
  }
  // How many different tickets have failed at this generator since one succeeded there.
  std::size_t at(const std::string& generator) const {
    const auto* const tickets = core::find_value(in_a_row_, generator);
    return tickets == nullptr ? 0 : tickets->size();
  }
  // Records that the generator was lost while it sampled the ticket; returns how often that
  // happened so far.
  std::size_t lost(const experience::Ticket& ticket, const std::string& generator) {
    Failures& failures = tickets_[ticket];
    failures.lost.insert(generator);
    return ++failures.losses;
  }
  std::size_t losses(const experience::Ticket& ticket) const {
    const Failures* const failures = core::find_value(tickets_, ticket);
    return failures == nullptr ? 0 : failures->losses;
  }
  // The ticket was sampled at this generator: forgets the failures of both.
  void succeeded(const experience::Ticket& ticket, const std::string& generator) {
    forget(ticket);
    in_a_row_.erase(generator);
  }
  void started_again(const std::string& generator) { in_a_row_.erase(generator); }
  // The generators at which the ticket failed; null when there are none.
  const std::set<std::string>* where(const experience::Ticket& ticket) const {
    const Failures* const failures = core::find_value(tickets_, ticket);
    return failures == nullptr || failures->at.empty() ? nullptr : &failures->at;
  }
  // The generators that failed at the ticket, or were lost while they sampled it.
  std::set<std::string> blamed(const experience::Ticket& ticket) const {
    const Failures* const failures = core::find_value(tickets_, ticket);
    if (failures == nullptr) return {};
    std::set<std::string> names = failures->at;
    names.insert(failures->lost.begin(), failures->lost.end());
    return names;
  }
  // The ticket is of no interest any more, and no generator is blamed for it.
  void forget(const experience::Ticket& ticket) {
    tickets_.erase(ticket);
    for (auto& [generator, tickets] : in_a_row_)
      tickets.erase(ticket);
  }
  void forget_update(std::uint64_t update) {
    const auto of_update = [update](const auto& entry) { return entry.first.update == update; };
    std::erase_if(tickets_, of_update);
    for (auto& [generator, tickets] : in_a_row_)
      std::erase_if(tickets, [update](const auto& ticket) { return ticket.update == update; });
  }
  bool empty() const noexcept { return tickets_.empty(); }

 private:
  struct Failures {
    std::size_t count = 0;
    std::set<std::string> at;
    std::size_t losses = 0;
    std::set<std::string> lost;
  };
  std::map<experience::Ticket, Failures> tickets_;
  std::map<std::string, std::set<experience::Ticket>> in_a_row_;  // by generator
};

}  // namespace troupe::actors::controller
