// Which tickets failed at which generators, to tell blame apart: a ticket that fails wherever it
// goes is at fault itself, and a run cannot go on without it; a generator at which tickets fail is
// sick, and others do its work. A pure value. Bound: the groups of the open updates.
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
  // It failed at this generator; how often it has failed by now.
  std::size_t add(const experience::Ticket& ticket, const std::string& generator) {
    Failures& failures = tickets_[ticket];
    failures.at.insert(generator);
    return ++failures.count;
  }
  // Where it failed; null when nowhere.
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
