#include "actors/controller/ticket_issuer.hpp"

#include "actors/controller/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/core/foreign_text.hpp"

#include <algorithm>

namespace troupe::actors::controller {

namespace {

bool is_open(const GroupStatus& group) {
  return group.state == experience::GroupState::kIssued ||
         group.state == experience::GroupState::kGenerated;
}

}  // namespace

bool is_settled(const GroupStatuses& statuses) {
  return std::none_of(statuses.groups.begin(), statuses.groups.end(), is_open);
}

TicketIssuer::TicketIssuer(RunState& run, Fleet& fleet, const RewardService& rewards)
    : run_(run),
      fleet_(fleet),
      rewards_(rewards),
      sampling_(std::make_shared<const SamplingSpec>(run.plan.sampling)) {}

void TicketIssuer::release(std::uint64_t done) {
  released_ = done;
  run_.changed.notify_all();
}

TicketWork TicketIssuer::training_work(std::uint64_t update) const {
  return {.kind = WorkKind::kTraining,
          .samples = run_.plan.samples,
          .sampling = sampling_,
          .version_min = run_.starts.min_for(update)};
}

async::task<core::Result<void>> TicketIssuer::run() {
  while (run_.next_issue < run_.plan.updates) {
    if (!released_ || !run_.plan.may_issue(run_.next_issue, *released_) || rewards_.holds()) {
      co_await run_.changed.wait(async::Deadline::none());
      continue;
    }
    const std::uint64_t update = run_.next_issue++;
    TicketWork work = training_work(update);
    IssueTickets request{
        .update = update, .groups = run_.plan.groups, .version_min = work.version_min};
    auto issued = co_await ask(run_.context, kDataRole, request);
    if (!issued && issued.error().code == ErrorCode::kNotFound) {
      used_up_ = issued.error();
      run_.changed.notify_all();
      co_return core::Result<void>();
    }
    if (!issued) co_return issued.failure();
    run_.issued = update + 1;
    run_.prompts.add(*issued);
    if (update < run_.known && !issued->tickets.empty()) sampled_again_ = true;
    fleet_.add(issued->tickets, std::move(work));
    run_.changed.notify_all();
  }
  co_return core::Result<void>();
}

async::task<core::Result<void>> TicketIssuer::await_issued(std::uint64_t update) {
  while (run_.issued <= update) {
    if (used_up_) co_return core::fail(*used_up_);
    co_await run_.changed.wait(async::Deadline::none());
  }
  co_return core::Result<void>();
}

async::task<core::Result<bool>> TicketIssuer::reissue_failed(GroupStatuses statuses) {
  // A synchronous run must be reproducible: wait until all groups are settled, then draw new
  // prompts in slot order, not in the order in which groups happen to fail.
  if (run_.plan.staleness_max == 0 && !is_settled(statuses)) {
    co_await async::sleep_for(*run_.context.timers, limits::kSettlePoll);
    co_return false;
  }
  ReissueTickets again;
  TROUPE_CO_TRY_SET(again.tickets, failed_groups(statuses));
  if (again.tickets.empty()) co_return false;
  auto reissued = co_await reissue(std::move(again));
  if (!reissued && reissued.error().code == ErrorCode::kNotFound) used_up_ = reissued.error();
  if (!reissued) co_return reissued.failure();
  co_return true;
}

core::Result<std::vector<experience::Ticket>> TicketIssuer::failed_groups(
    const GroupStatuses& statuses) {
  std::vector<experience::Ticket> failed;
  for (const GroupStatus& group : statuses.groups) {
    if (group.ready() || is_open(group)) continue;
    if (group.filtered) {
      TROUPE_TRY(count_filtered(group));
      failed.push_back(group.ticket);
      continue;
    }
    ++run_.counts["group failed"];
    if (statuses.prompts > 0) run_.prompts.add(group.ticket, group.row, statuses.prompts);
    if (const std::string all = count_fault(group.ticket, group.cause); !all.empty()) {
      return core::fail(ErrorCode::kData, all + " failed for " + name_of(group.ticket) +
                                              "; the last: " + core::gist_of(group.cause));
    }
    failed.push_back(group.ticket);
  }
  return failed;
}

// A filtered group did not fail, so it does not count against attempts_max. Its own bound,
// filtered_max, catches a reward that never varies.
core::Result<void> TicketIssuer::count_filtered(const GroupStatus& group) {
  ++run_.counts["group filtered"];
  const std::uint32_t filtered = faults_.add_filtered(group.ticket);
  if (filtered < run_.plan.filtered_max) return {};
  return core::fail(ErrorCode::kData,
                    std::to_string(filtered) + " groups in a row were filtered for " +
                        name_of(group.ticket) + "; the last: " + core::gist_of(group.cause),
                    "look at the reward, or at --algo.dynamic_filtering_enable");
}

// Counts and reports a failed group. Not empty when its slot has used up its attempts: then how
// many groups failed. A prompt that fails again and again is one fault, unless all others fail too.
std::string TicketIssuer::count_fault(const experience::Ticket& ticket, const std::string& cause) {
  const std::uint32_t most = run_.plan.attempts_max;
  const auto& failed = faults_.add_failed(ticket, run_.prompts.id_of(ticket));
  const std::size_t prompts = run_.prompts.all(ticket);
  const bool many = failed.prompts.size() >= most;
  const bool all = faults_.failed_prompts(ticket.update) >= prompts;
  // With few prompts, failed groups count; with many, prompts.
  const std::size_t fault = prompts < most ? failed.groups : failed.prompts.size();
  run_.listener.on_failed_group({ticket, cause, static_cast<std::uint32_t>(fault), most});
  if (failed.groups < most || (!many && !all)) return {};
  const std::string groups = std::to_string(failed.groups) + " groups in a row";
  if (many) return groups;
  return groups + (prompts == 1
                       ? ", with the only prompt that there is,"
                       : ", with all " + std::to_string(prompts) + " prompts that there are,");
}

async::task<core::Result<void>> TicketIssuer::reissue(ReissueTickets request) {
  const std::uint64_t update = request.tickets.front().update;
  TROUPE_CO_TRY_ASSIGN(reissued, co_await ask(run_.context, kDataRole, std::move(request)));
  run_.prompts.add(reissued);
  fleet_.add(reissued.tickets, training_work(update));
  co_return core::Result<void>();
}

async::task<core::Result<void>> TicketIssuer::reissue_retired(experience::Ticket ticket) {
  const std::string cause = "it was cut at the straggler deadline with fewer than two samples done";
  if (const std::string all = count_fault(ticket, cause); !all.empty()) {
    co_return core::fail(ErrorCode::kDeadline, all + " were too slow for " + name_of(ticket),
                         "raise rollout.straggler_timeout_s");
  }
  ReissueTickets request{{ticket}};
  co_return co_await reissue(std::move(request));
}

}  // namespace troupe::actors::controller
