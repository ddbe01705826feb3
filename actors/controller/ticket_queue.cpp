#include "actors/controller/ticket_queue.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::actors {

void TicketQueue::put(TicketWork work) {
  const experience::Ticket ticket = work.ticket;
  const Place place{ticket.update, ticket.attempt == 0, ticket.slot, ticket.attempt};
  Line& into = line(work.kind);
  into.emplace(place, std::move(work));
}

void TicketQueue::offer(WorkKind kind, const std::function<Offer(const TicketWork&)>& to) {
  Line& from = line(kind);
  for (auto place = from.begin(); place != from.end();) {
    const Offer answer = to(place->second);
    if (answer == Offer::kEnough) return;
    place = answer == Offer::kTaken ? from.erase(place) : std::next(place);
  }
}

void TicketQueue::forget(std::uint64_t update) {
  const auto of_update = [update](const auto& entry) { return entry.first.update == update; };
  std::erase_if(evaluation_, of_update);
  std::erase_if(training_, of_update);
}

std::size_t TicketQueue::count(std::uint64_t update) const {
  const auto of_update = [update](const auto& entry) { return entry.first.update == update; };
  return static_cast<std::size_t>(std::count_if(evaluation_.begin(), evaluation_.end(), of_update) +
                                  std::count_if(training_.begin(), training_.end(), of_update));
}

}  // namespace troupe::actors
