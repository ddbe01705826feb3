#include "actors/controller/ticket_queue.hpp"

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
  for (Line& line : lines_)
    std::erase_if(line, [update](const auto& entry) { return entry.first.update == update; });
}

std::size_t TicketQueue::count(std::uint64_t update) const {
  std::size_t tickets = 0;
  for (const Line& line : lines_)
    for (const auto& [place, work] : line)
      tickets += place.update == update ? 1 : 0;
  return tickets;
}

}  // namespace troupe::actors
