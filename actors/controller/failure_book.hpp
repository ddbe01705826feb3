// Records which tickets failed at which generators, to tell a bad ticket from a bad generator. A
// ticket that fails at every generator is itself at fault and ends the run; a generator at which
// several tickets fail is restarted while others do its work. A pure value. Bound: the groups of
// the open updates.
#pragma once

#include "runtime/core/find_value.hpp"
#include "runtime/experience/ticket.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace troupe::actors {

class FailureBook {
 public:
  // Records that the ticket failed at this generator; returns how often it has failed so far.
  std::size_t add(const experience::Ticket& ticket, const std::string& generator) {
    Failures& failures = tickets_[ticket];
    failures.at.insert(generator);
    return ++failures.count;
  }
  // The generators at which it failed; null when there are none.
  const std::set<std::string>* where(const experience::Ticket& ticket) const {
    const Failures* const failures = core::find_value(tickets_, ticket);
    return failures == nullptr ? nullptr : &failures->at;
  }
  void forget(const experience::Ticket& ticket) { tickets_.erase(ticket); }
  void forget_update(std::uint64_t update) {
    std::erase_if(tickets_, [update](const auto& entry) { return entry.first.update == update; });
  }
  bool empty() const noexcept { return tickets_.empty(); }

 private:
  struct Failures {
    std::size_t count = 0;
    std::set<std::string> at;
  };
  std::map<experience::Ticket, Failures> tickets_;
};

}  // namespace troupe::actors
