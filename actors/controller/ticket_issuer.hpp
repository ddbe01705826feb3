// Issues the tickets of a run, update by update, as far ahead as the staleness bound and changes of
// rewards allow. Reissues slots whose groups failed, were filtered, or were too slow. Part of the
// controller, on its strand; everything it is given outlives it. Bounds: attempts_max and
// filtered_max of the plan for one slot; a prompt that always fails ends no run that has others.
#pragma once

#include "actors/controller/fleet.hpp"
#include "actors/controller/reward_service.hpp"
#include "actors/controller/run_state.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::controller {

// Counts for each slot of the open updates how many of its groups failed, of how many different
// prompts, and how many were filtered. A pure value. Bound: the slots of the open updates.
class SlotFaults {
 public:
  struct Failed {
    std::uint32_t groups = 0;
    std::set<PromptRows::Id> prompts;  // their different ones
  };
  // Both count one group and return its slot's count so far.
  const Failed& add_failed(const experience::Ticket& ticket, const PromptRows::Id& prompt) {
    Failed& failed = failed_[slot_of(ticket)];
    ++failed.groups;
    failed.prompts.insert(prompt);
    failed_prompts_[ticket.update].insert(prompt);
    return failed;
  }
  std::uint32_t add_filtered(const experience::Ticket& ticket) {
    return ++filtered_[slot_of(ticket)];
  }
  // The different prompts of which groups of this update failed.
  std::size_t failed_prompts(std::uint64_t update) const {
    const auto found = failed_prompts_.find(update);
    return found == failed_prompts_.end() ? 0 : found->second.size();
  }

  // Forgets this update and all before it; returns how many of its groups were filtered.
  std::uint64_t forget(std::uint64_t update) {
    std::uint64_t filtered = 0;
    for (const auto& [slot, count] : filtered_)
      filtered += slot.first == update ? count : 0;
    const auto over = [update](const auto& entry) { return entry.first.first <= update; };
    std::erase_if(failed_, over);
    std::erase_if(filtered_, over);
    std::erase_if(failed_prompts_, [update](const auto& entry) { return entry.first <= update; });
    return filtered;
  }

 private:
  using Slot = std::pair<std::uint64_t, std::uint32_t>;  // update and slot
  static Slot slot_of(const experience::Ticket& ticket) { return {ticket.update, ticket.slot}; }
  std::map<Slot, Failed> failed_;
  std::map<Slot, std::uint32_t> filtered_;
  std::map<std::uint64_t, std::set<PromptRows::Id>> failed_prompts_;  // by update
};

class TicketIssuer {
 public:
  TicketIssuer(RunState& run, Fleet& fleet, const RewardService& rewards);

  // `done` updates are done: tickets may be issued as far ahead as that allows.
  void release(std::uint64_t done);
  // Issues tickets until those of the last update are out, or no prompts are left.
  async::task<core::Result<void>> run();

  // Waits until the tickets of an update are out. Error: no prompts are left for it.
  async::task<core::Result<void>> await_issued(std::uint64_t update);
  // Reissues the slots whose groups failed or were filtered. False when it reissued none. Errors:
  // kData when a slot has used up its attempts, kNotFound when no prompts are left.
  async::task<core::Result<bool>> reissue_failed(GroupStatuses statuses);
  // Reissues the slot of a group that was cut with nothing to deliver. kDeadline: no attempts left.
  async::task<core::Result<void>> reissue_retired(experience::Ticket ticket);

  // The update was committed; returns how many of its groups were filtered.
  std::uint64_t forget(std::uint64_t update) {
    run_.prompts.forget(update);
    return faults_.forget(update);
  }
  // The error when too few prompts are left for the next update, else none.
  const std::optional<core::Error>& used_up() const noexcept { return used_up_; }
  // True when an update that the policy knows already needed samples that are not in the log.
  bool sampled_again() const noexcept { return sampled_again_; }

 private:
  core::Result<std::vector<experience::Ticket>> failed_groups(const GroupStatuses& statuses);
  core::Result<void> count_filtered(const GroupStatus& group);
  std::string count_fault(const experience::Ticket& ticket, const std::string& cause);
  async::task<core::Result<void>> reissue(ReissueTickets request);
  TicketWork training_work(std::uint64_t update) const;

  RunState& run_;
  Fleet& fleet_;
  const RewardService& rewards_;
  const std::shared_ptr<const SamplingSpec> sampling_;
  std::optional<std::uint64_t> released_;  // updates done
  std::optional<core::Error> used_up_;
  bool sampled_again_ = false;
  SlotFaults faults_;
};

// True when each group is ready or has failed.
bool is_settled(const GroupStatuses& statuses);

}  // namespace troupe::actors::controller
