// A group that cannot be learned from, as people are told of it.
#pragma once

#include "runtime/experience/ticket.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

struct FailedGroup {
  experience::Ticket ticket;
  std::string cause;             // may have several lines, as a traceback has
  std::uint32_t fault = 1;       // of its slot, counted from 1
  std::uint32_t faults_max = 1;  // with so many the run ends
};

}  // namespace troupe::actors
