// A call to a peer that may be away for a while: tried again, with a growing pause, while the peer
// is lost, full or closed, until it answers or has been away for the time that it is given. The
// peer may have worked on a call whose answer was lost; whoever takes the answer counts it once.
// Runs on the caller's strand. Bounds: Patience, and the gate.
#pragma once

#include "actors/data/call_gate.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/core/limits.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors {

struct Patience {
  core::Duration pause_min = core::limits::kScorerPause_min;
  core::Duration pause_max = core::limits::kScorerPause_max;
  core::Duration away_max = std::chrono::seconds(300);  // since the first call that failed
};

// Errors that may pass when the same call is made again.
inline bool passing(core::ErrorCode code) {
  return code == core::ErrorCode::kPeerLost || code == core::ErrorCode::kOverloaded ||
         code == core::ErrorCode::kClosed;
}

// `wanted` says whether the answer is still of use; the last error is returned when it is not.
// `retries` counts the calls that were made again.
template <class Request>
async::task<core::Result<typename Request::Reply>> ask_patiently(RoleContext context,
                                                                 std::string peer,
                                                                 Request request,
                                                                 Patience patience,
                                                                 CallGate* gate,
                                                                 std::function<bool()> wanted,
                                                                 std::uint64_t* retries) {
  using Answer = core::Result<typename Request::Reply>;
  core::Duration pause = patience.pause_min;
  core::TimePoint first_failure{};
  for (bool failed = false;;) {
    co_await gate->enter();
    std::optional<Answer> answer;
    {
      const CallGate::Pass pass(*gate);
      Request copy = request;
      auto got = co_await ask(context, peer, std::move(copy));
      answer.emplace(std::move(got));
    }
    if (*answer || !passing(answer->error().code) || !wanted()) co_return std::move(*answer);
    const core::TimePoint now = context.timers->now();
    if (!std::exchange(failed, true)) first_failure = now;
    const core::TimePoint end = first_failure + patience.away_max;
    if (now >= end) co_return std::move(*answer);
    co_await async::sleep_until(*context.timers, std::min(now + pause, end));
    pause = std::min(2 * pause, patience.pause_max);
    if (!wanted()) co_return std::move(*answer);
    ++*retries;
  }
}

}  // namespace troupe::actors
