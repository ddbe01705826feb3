#include "runtime/net/proven_book.hpp"

#include "runtime/net/limits.hpp"

#include <algorithm>
#include <utility>

namespace troupe::net {

bool ProvenBook::knows(const std::string& address, core::TimePoint now) const {
  const auto found = visits_.find(address);
  return found != visits_.end() &&
         (found->second.open > 0 || now - found->second.last < limits::kGatewayProof_kept);
}

void ProvenBook::enters(const std::string& address, core::TimePoint now) {
  if (!visits_.contains(address)) make_room();
  Visits& visits = visits_[address];
  ++visits.open;
  visits.last = now;
}

void ProvenBook::leaves(const std::string& address, core::TimePoint now) {
  const auto found = visits_.find(address);
  if (found == visits_.end()) return;
  --found->second.open;
  found->second.last = now;
}

void ProvenBook::make_room() {
  if (visits_.size() < limits::kGatewayAddresses_max) return;
  const auto stalest =
      std::min_element(visits_.begin(), visits_.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.open > 0, a.second.last) <
               std::pair(b.second.open > 0, b.second.last);
      });
  if (stalest->second.open == 0) visits_.erase(stalest);
}

}  // namespace troupe::net
