// A ticket's name in messages for people.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

// Updates from this number on are evaluations: their prompts are the held-out ones, in order.
inline constexpr std::uint64_t kFirstEvaluation = std::uint64_t{1} << 63;

// "update 3, prompt 1", as people count: from 1.
inline std::string name_of(const core::Ticket& ticket) {
  const bool evaluation = ticket.update >= kFirstEvaluation;
  const std::uint64_t number = evaluation ? ticket.update - kFirstEvaluation : ticket.update;
  return (evaluation ? "evaluation " : "update ") + std::to_string(number + 1) + ", prompt " +
         std::to_string(ticket.slot + 1);
}

}  // namespace troupe::actors
