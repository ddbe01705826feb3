#include "apps/session/node/meet_calls.hpp"

#include "actors/company/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/collective/limits.hpp"

namespace troupe::session {

using actors::GangMet;

actors::gang::AskToMeet MeetCalls::asking() {
  return [this](actors::MeetGang request, const std::atomic<bool>& given_up) {
    return meet(std::move(request), given_up);
  };
}

async::task<void> MeetCalls::ask_company(actors::RoleContext context,
                                         actors::MeetGang request,
                                         std::shared_ptr<Answer> answer) {
  auto met = co_await actors::ask(context, "company/0", std::move(request));
  answer->set_value(std::move(met));
}

Result<GangMet> MeetCalls::meet(actors::MeetGang request, const std::atomic<bool>& given_up) {
  auto answer = std::make_shared<Answer>();
  auto met = answer->get_future();
  const std::string role = request.role;
  async::post(strand_, [this, request = std::move(request), answer = std::move(answer)]() mutable {
    if (context_.scope == nullptr) return;
    const auto patient = context_.with_deadline(actors::company::limits::kSpawnDeadline);
    const std::string what = "gang of " + request.role;
    context_.scope->spawn(what, ask_company(patient, std::move(request), std::move(answer)));
  });
  while (met.wait_for(collective::limits::kRankLook) != std::future_status::ready) {
    if (given_up.load()) return core::fail(ErrorCode::kClosed, role + " is to stop");
  }
  try {
    return met.get();
  } catch (const std::future_error&) {  // the asking coroutine was ended, or never began
    return core::fail(ErrorCode::kPeerLost, "the company of " + role + " went away");
  }
}

}  // namespace troupe::session
