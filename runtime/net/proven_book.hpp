// From which addresses somebody proved himself at a gateway: as long as one of his connections is
// carried, and for kGatewayProof_kept after the last. Owned by a gateway, used on its strand; a pure
// value otherwise. Bound: kGatewayAddresses_max addresses beside those with connections, the stalest
// goes first.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace troupe::net {

class ProvenBook {
 public:
  bool knows(const std::string& address, core::TimePoint now) const;
  // A connection that proved itself begins and ends.
  void enters(const std::string& address, core::TimePoint now);
  void leaves(const std::string& address, core::TimePoint now);

 private:
  struct Visits {
    std::size_t open = 0;
    core::TimePoint last{};
  };
  void make_room();

  std::map<std::string, Visits> visits_;
};

}  // namespace troupe::net
