// Issues the tickets of a run: update after update as far ahead as the staleness bound and the
// rewards allow, and again for slots whose groups failed, were filtered, or were too slow. Part of
// the controller, on its strand; everything it is given outlives it. Bounds: attempts_max and
// filtered_max of the plan for one slot.
#pragma once

#include "actors/controller/fleet.hpp"
#include "actors/controller/reward_service.hpp"
#include "actors/controller/run_state.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

// How often each slot of the open updates had a group that failed, or one that was filtered. A pure
// value. Bound: the slots of the open updates.
class SlotFaults {
 public:
  // The number of its slot by now.
  std::uint32_t add_failed(const experience::Ticket& ticket) { return ++failed_[slot_of(ticket)]; }
  std::uint32_t add_filtered(const experience::Ticket& ticket) {
    return ++filtered_[slot_of(ticket)];
  }

  // Forgets the update and those before it; gives the groups of it that were filtered.
  std::uint64_t forget(std::uint64_t update) {
    std::uint64_t filtered = 0;
    for (const auto& [slot, count] : filtered_)
      filtered += slot.first == update ? count : 0;
    const auto over = [update](const auto& entry) { return entry.first.first <= update; };
    std::erase_if(failed_, over);
    std::erase_if(filtered_, over);
    return filtered;
  }

 private:
  using Slot = std::pair<std::uint64_t, std::uint32_t>;  // update and slot
  static Slot slot_of(const experience::Ticket& ticket) { return {ticket.update, ticket.slot}; }
  std::map<Slot, std::uint32_t> failed_, filtered_;
};

class TicketIssuer {
 public:
  TicketIssuer(RunState& run, Fleet& fleet, const RewardService& rewards);

  // So many updates are done: tickets may go further.
  void release(std::uint64_t done);
  // Until the tickets of the last update are out, or no prompts are left.
  async::task<core::Result<void>> run();

  // Waits until the tickets of an update are out. Error: no prompts are left for it.
  async::task<core::Result<void>> await_issued(std::uint64_t update);
  // Issues slots again whose groups cannot be learned from. False: there are none. Errors: kData
  // when a slot has had its last, kNotFound when no prompts are left.
  async::task<core::Result<bool>> reissue_failed(GroupStatuses statuses);
  // The same for a group that was cut and had nothing to deliver.
  async::task<core::Result<void>> reissue_retired(experience::Ticket ticket);

  // The update was committed; gives its groups that were filtered.
  std::uint64_t forget(std::uint64_t update) { return faults_.forget(update); }
  // Why the prompts do not reach for the next update.
  const std::optional<core::Error>& used_up() const noexcept { return used_up_; }

 private:
  core::Result<std::vector<experience::Ticket>> failed_groups(const GroupStatuses& statuses);
  core::Result<void> count_filtered(const GroupStatus& group);
  bool count_fault(const experience::Ticket& ticket, const std::string& cause);
  async::task<core::Result<void>> reissue(ReissueTickets request);
  TicketWork training_work(std::uint64_t update) const;

  RunState& run_;
  Fleet& fleet_;
  const RewardService& rewards_;
  const std::shared_ptr<const SamplingSpec> sampling_;
  std::optional<std::uint64_t> released_;  // updates done
  std::optional<core::Error> used_up_;
  SlotFaults faults_;
};

// True when each group is ready or has failed.
bool is_settled(const GroupStatuses& statuses);

}  // namespace troupe::actors
