#include "runtime/experience/ticket.hpp"

namespace troupe::experience {

std::string name_of_update(std::uint64_t update) {
  if (is_evaluation(update)) return "evaluation " + std::to_string(update - kFirstEvaluation + 1);
  return "update " + std::to_string(update + 1);
}

std::string name_of(const Ticket& ticket) {
  return name_of_update(ticket.update) + ", prompt " + std::to_string(ticket.slot + 1);
}

}  // namespace troupe::experience
