// A ticket as people read it.
#pragma once

#include "runtime/core/ids.hpp"

#include <string>

namespace troupe::actors {

inline std::string place_of(const core::Ticket& ticket) {
  return "prompt " + std::to_string(ticket.slot + 1) + " of update " +
         std::to_string(ticket.update + 1);
}

}  // namespace troupe::actors
