// Calls a scorer that may be away for a while, and repeats the call with a growing pause until the
// scorer answers or nobody wants the answer any more. A scorer may thus do the same work twice; the
// ticket book counts an answer once. Runs on the caller's strand. Bounds: the scorer's CallGate,
// and its patience for a request that fails while others are answered.
#pragma once

#include "actors/data/scorer.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "runtime/core/at_exit.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors::data {

// True for errors that may pass when the call is repeated: the scorer is lost or overloaded.
inline bool passing(core::ErrorCode code) {
  return reaction_to(AskedFor::kScores, code) == Reaction::kAgain;
}

// `wanted` says whether the answer is still of use; when it is not, returns the last error. `call`
// is made anew for each try.
template <class Reply>
async::task<core::Result<Reply>> call_patiently(
    async::Timers* timers,
    Scorer* scorer,
    std::function<async::task<core::Result<Reply>>()> call,
    std::function<bool()> wanted) {
  using Answer = core::Result<Reply>;
  core::Duration pause = scorer->patience().pause_min;
  std::optional<core::TimePoint> first_failure;
  std::optional<Scorer::Waiter> waiter;
  for (;;) {
    co_await scorer->gate().enter();
    std::optional<Answer> answer;
    {
      const core::AtExit leave([scorer] { scorer->gate().leave(); });
      auto got = co_await call();
      answer.emplace(std::move(got));
    }
    if (*answer || !passing(answer->error().code)) {
      scorer->answered();
      co_return std::move(*answer);
    }
    if (answer->error().code != core::ErrorCode::kOverloaded) {
      const core::TimePoint now = timers->now();
      if (!first_failure) first_failure = now;
      if (!waiter) waiter.emplace(*scorer);
      scorer->failed(answer->error());
      const bool long_enough = now - *first_failure >= scorer->patience().away_max;
      // The scorer answered others meanwhile, so this request is what it fails on.
      if (long_enough && !scorer->gone()) co_return std::move(*answer);
    }
    if (!wanted()) co_return std::move(*answer);
    co_await scorer->wait(pause);
    pause = std::min(2 * pause, scorer->patience().pause_max);
    if (!wanted()) co_return std::move(*answer);
    ++scorer->retries;
  }
}

}  // namespace troupe::actors::data
