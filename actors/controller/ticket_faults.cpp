#include "actors/controller/ticket_faults.hpp"

#include "actors/protocol/ask.hpp"

#include <algorithm>

namespace troupe::actors::controller {

void TicketFaults::succeeded(const experience::Ticket& ticket, const std::string& name) {
  FleetMembers::Member& member = members_.at(name);
  failures_.succeeded(ticket, name);
  if (member.holds) numeric_.succeeded(*member.holds);
  member.sick = false;
  members_.look();
}

TicketFaults::Finding TicketFaults::failed(const experience::Ticket& ticket,
                                           const std::string& name,
                                           const core::Error& error,
                                           bool may_end) {
  Finding found;
  found.times = failures_.add(ticket, name);
  found.keeps_failing = failures_.at(name) >= limits::kGeneratorFailures_max;
  found.of_member = of_member(ticket, name, error);
  if (!may_end || found.times < limits::kTicketFailures_max) return found;
  found.given_up = true;
  give_up(ticket, "it failed " + std::to_string(found.times) + " times, the last time at " + name +
                      ": " + error.message);
  return found;
}

// An error that is not numeric is the member's; of the others the numbers say.
bool TicketFaults::of_member(const experience::Ticket& ticket,
                             const std::string& name,
                             const core::Error& error) {
  using Verdict = NumericFaults::Verdict;
  if (error.code != ErrorCode::kNumeric || !members_.kind().weights) return true;
  const core::Version version = members_.at(name).holds.value_or(0);
  const std::size_t wanted = std::min(NumericFaults::kPrompts_max, run_.prompts.all(ticket));
  const Verdict verdict =
      numeric_.add(name, version, run_.prompts.id_of(ticket), wanted, error.message);
  if (verdict == Verdict::kWeights && !run_.diverged) {
    const std::string what =
        wanted == 1 ? "the only prompt has" : std::to_string(wanted) + " different prompts have";
    run_.scope->spawn(
        "", diverged(version, what + " logits that are not finite on " + name +
                                  ", which was started again for it (" + error.message + ")"));
  }
  return verdict == Verdict::kGenerator;
}

// Ends the run: other weights are needed.
async::task<core::Result<void>> TicketFaults::diverged(core::Version version, std::string what) {
  const std::uint64_t updates = run_.starts.first_with(version);
  run_.diverged = updates;
  const std::string whose =
      updates == 0 ? "the weights that the run began with are at fault: "
                   : "the weights after " + run_.plan.name_of(updates) + " have diverged: ";
  co_return core::fail(ErrorCode::kNumeric, whose + what);
}

bool TicketFaults::lost(const experience::Ticket& ticket, const std::string& name, bool alone) {
  ++run_.counts[std::string(members_.kind().noun) + " lost"];
  const std::size_t times = failures_.lost(ticket, name);
  if (!alone || times < limits::kTicketLosses_max) return true;
  give_up(ticket, std::to_string(times) +
                      " times the generator that sampled it was lost, the last time " + name +
                      ", which sampled nothing else");
  return false;
}

void TicketFaults::give_up(const experience::Ticket& ticket, std::string cause) {
  ++run_.counts["ticket set aside"];
  // One member alone may fail at any ticket.
  const std::set<std::string> cleared = failures_.blamed(ticket);
  for (const std::string& name : cleared)
    if (clear_ && cleared.size() > 1) clear_(name);
  failures_.forget(ticket);
  run_.scope->spawn("", set_aside(ticket, std::move(cause)));
}

async::task<core::Result<void>> TicketFaults::set_aside(experience::Ticket ticket,
                                                        std::string cause) {
  SetAside request{ticket, std::move(cause)};
  TROUPE_CO_TRY(co_await ask(run_.context, kDataRole, std::move(request)));
  co_return core::Result<void>();
}

}  // namespace troupe::actors::controller
