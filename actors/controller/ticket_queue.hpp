// The tickets that wait for a generator, in sampling order: evaluations before training (training
// waits for them), then by update; within an update reissued slots first, then by slot. A ticket
// that comes back takes its old place. A pure value. Bound: the groups of the open updates.
#pragma once

#include "actors/protocol/messages.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <utility>

namespace troupe::actors::controller {

enum class WorkKind { kEvaluation, kTraining };

inline constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();

struct TicketWork {
  experience::Ticket ticket{};
  WorkKind kind = WorkKind::kTraining;
  std::int32_t samples = 1;
  std::shared_ptr<const SamplingSpec> sampling;
  core::Version version_min = 0;
  std::uint32_t among = kAnyNumber;  // groups that its generator may have, this one included
  std::uint64_t key = 0;             // work of one key shares a prompt's beginning; 0: none
};

class TicketQueue {
 public:
  // Does nothing for a ticket that waits already.
  void put(TicketWork work) {
    const experience::Ticket ticket = work.ticket;
    const Place place{ticket.update, ticket.attempt == 0, ticket.slot, ticket.attempt};
    line(work.kind).try_emplace(place, std::move(work));
  }

  enum class Offer { kTaken, kLeft, kEnough };
  // Offers the tickets of a kind in order until `to` returns kEnough; removes those that it takes.
  void offer(WorkKind kind, const std::function<Offer(const TicketWork&)>& to) {
    Line& from = line(kind);
    for (auto place = from.begin(); place != from.end();) {
      const Offer answer = to(place->second);
      if (answer == Offer::kEnough) return;
      place = answer == Offer::kTaken ? from.erase(place) : std::next(place);
    }
  }

  // Drops the waiting tickets of an update.
  void forget(std::uint64_t update) {
    for (Line& line : lines_)
      std::erase_if(line, [update](const auto& entry) { return entry.first.update == update; });
  }

  std::size_t size() const noexcept { return lines_[0].size() + lines_[1].size(); }
  std::size_t count(std::uint64_t update) const {
    std::size_t tickets = 0;
    for (const Line& line : lines_)
      for (const auto& [place, work] : line)
        tickets += place.update == update ? 1 : 0;
    return tickets;
  }

 private:
  struct Place {
    std::uint64_t update = 0;
    bool first_attempt = true;  // false sorts first
    std::uint32_t slot = 0;
    std::uint32_t attempt = 0;
    auto operator<=>(const Place&) const = default;
  };
  using Line = std::map<Place, TicketWork>;

  Line& line(WorkKind kind) { return lines_[static_cast<std::size_t>(kind)]; }

  std::array<Line, 2> lines_;  // by kind
};

}  // namespace troupe::actors::controller
