#include "actors/controller/call_service.hpp"

#include "actors/controller/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "runtime/core/rng.hpp"

#include <set>

namespace troupe::actors::controller {
namespace {

// No other generator would answer otherwise.
bool is_of_the_request(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kData ||
         code == ErrorCode::kUnsupported;
}

TicketWork work_of(const Complete& call) {
  TicketWork work;
  work.ticket = call.ticket;
  work.kind = call.ticket.kind() == experience::TicketKind::kEvaluation ? WorkKind::kEvaluation
                                                                        : WorkKind::kTraining;
  work.version_min = call.version_min;
  work.key = core::derive_seed(call.session, 1) | 1;
  return work;
}

}  // namespace

async::task<core::Result<Completed>> CallService::complete(Complete request) {
  const TicketWork work = work_of(request);
  std::set<std::string> failed;
  std::size_t failures = 0, losses = 0;
  for (;;) {
    if (run_.scope == nullptr) {
      co_return core::fail(ErrorCode::kClosed, "the run is not sampling");
    }
    const auto taken = generators_.take(work, failed);
    if (!taken) {
      const bool woken = co_await generators_.changes().wait(async::Deadline::none());
      static_cast<void>(woken);
      continue;
    }
    auto reply = co_await ask(run_.context, taken->member, request);
    if (reply) {
      generators_.answered(*taken, nullptr);
      co_return reply;
    }
    const core::Error error = without_name(reply.error(), taken->member);
    const bool at_fault = is_of_the_request(error.code);
    generators_.answered(*taken, at_fault ? nullptr : &error);
    if (at_fault) co_return core::fail(error);
    if (error.code == ErrorCode::kOverloaded) continue;
    if (is_loss(error.code)) {
      if (++losses >= limits::kTicketLosses_max) co_return core::fail(error);
      continue;
    }
    failed.insert(taken->member);
    if (++failures >= limits::kTicketFailures_max) co_return core::fail(error);
  }
}

}  // namespace troupe::actors::controller
