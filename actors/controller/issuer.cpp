// Tickets: when they are issued, and when again.
#include "actors/controller/controller.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/reward/gist.hpp"

#include <algorithm>

namespace troupe::actors {

void Controller::release(std::uint64_t done) {
  released_ = done;
  changed_.notify_all();
}

TicketWork Controller::training_work(std::uint64_t update) const {
  TicketWork work;
  work.kind = WorkKind::kTraining;
  work.samples = plan_.samples;
  work.sampling = sampling_;
  work.version_min = starts_.min_for(update);
  return work;
}

// Issues update after update, as soon as the bound and the rewards let it.
async::task<core::Result<void>> Controller::issuer() {
  while (next_issue_ < plan_.updates) {
    if (!released_ || !plan_.may_issue(next_issue_, *released_) || rewards_.holds()) {
      const bool woken = co_await changed_.wait(async::Deadline::none());
      static_cast<void>(woken);
      continue;
    }
    const std::uint64_t update = next_issue_++;
    TicketWork work = training_work(update);
    IssueTickets request;
    request.update = update;
    request.groups = plan_.groups;
    request.version_min = work.version_min;
    auto issued = co_await ask(context_, peers_.data, request);
    if (!issued && issued.error().code == core::ErrorCode::kNotFound) {
      used_up_ = issued.error();
      changed_.notify_all();
      co_return core::Result<void>();
    }
    if (!issued) co_return issued.failure();
    issued_ = update + 1;
    fleet_.add(issued->tickets, std::move(work));
    changed_.notify_all();
  }
  co_return core::Result<void>();
}

// The groups that need another attempt. Error: kData when a slot has had its last.
core::Result<std::vector<experience::Ticket>> Controller::failed_groups(std::uint64_t update,
                                                                  const GroupStatuses& statuses) {
  std::vector<experience::Ticket> failed;
  for (const GroupStatus& group : statuses.groups) {
    if (group.state != experience::GroupState::kFailed) continue;
    if (group.filtered) {
      TROUPE_TRY(count_filtered(group));
      failed.push_back(group.ticket);
      continue;
    }
    ++counts_["group failed"];
    if (count_fault(group.ticket, group.cause)) {
      return core::fail(core::ErrorCode::kData,
                        std::to_string(plan_.attempts_max) + " groups in a row failed for " +
                            name_of(group.ticket) + "; the last: " + gist_of(group.cause));
    }
    failed.push_back(group.ticket);
  }
  return failed;
}

// Not a fault of the group: it has no end but that of the data, and a bound for a reward that never
// varies.
core::Result<void> Controller::count_filtered(const GroupStatus& group) {
  ++counts_["group filtered"];
  const std::uint32_t filtered = ++filtered_[{group.ticket.update, group.ticket.slot}];
  if (filtered < plan_.filtered_max) return {};
  return core::fail(core::ErrorCode::kData,
                    std::to_string(filtered) + " groups in a row were filtered for " +
                        name_of(group.ticket) + "; the last: " + group.cause +
                        "; look at the reward, or widen --algo.dynamic_filtering_range");
}

bool Controller::count_fault(const experience::Ticket& ticket, const std::string& cause) {
  const std::uint32_t fault = ++faults_[{ticket.update, ticket.slot}];
  listener_.on_failed_group({ticket, cause, fault, plan_.attempts_max});
  return fault >= plan_.attempts_max;
}

std::uint64_t Controller::forget_slots(std::uint64_t update) {
  std::uint64_t filtered = 0;
  for (const auto& [slot, count] : filtered_)
    filtered += slot.first == update ? count : 0;
  const auto of_update = [update](const auto& entry) { return entry.first.first <= update; };
  std::erase_if(faults_, of_update);
  std::erase_if(filtered_, of_update);
  return filtered;
}

async::task<core::Result<void>> Controller::reissue(ReissueTickets request) {
  const std::uint64_t update = request.tickets.front().update;
  auto reissued = co_await ask(context_, peers_.data, std::move(request));
  if (!reissued) co_return reissued.failure();
  fleet_.add(reissued->tickets, training_work(update));
  co_return core::Result<void>();
}

void Controller::retired(const experience::Ticket& ticket) {
  const std::string cause = "it was cut at the straggler deadline with fewer than two samples done";
  if (count_fault(ticket, cause)) {
    end({core::ErrorCode::kDeadline, std::to_string(plan_.attempts_max) +
                                         " groups in a row were too slow for " + name_of(ticket) +
                                         "; raise rollout.straggler_timeout_s"});
    return;
  }
  ReissueTickets request;
  request.tickets.push_back(ticket);
  scope_->spawn("", reissue(std::move(request)));
}

void Controller::watch_stragglers(std::uint64_t update) {
  if (plan_.straggler_timeout <= core::Duration::zero() || scope_ == nullptr) return;
  std::function<void()> fire = [this, update] {
    if (awaited_ != update || scope_ == nullptr) return;
    fleet_.cut(update);
    watch_stragglers(update);
  };
  straggler_timer_ = context_.timers->arm(
      scope_->executor(), context_.timers->now() + plan_.straggler_timeout, std::move(fire));
}

}  // namespace troupe::actors
