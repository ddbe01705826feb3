// The data role's record of one scorer (a reward or the reference model): how many calls are in
// flight, whether and since when it is away, what of a row it reads. Owned by the data
// role, on its strand.
//
// A scorer is away while its role is lost, or its source refuses or is too busy; a full inbox
// (kOverloaded) does not count. Any answer, even another error, ends the absence. The user is told
// when a scorer goes away (at most once every kNotesEvery) and when it is back.
#pragma once

#include "actors/data/limits.hpp"
#include "actors/protocol/call_gate.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/reward_group.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe::actors::data {

struct Patience {
  core::Duration pause_min = actors::limits::kScorerPause_min;
  core::Duration pause_max = actors::limits::kScorerPause_max;
  core::Duration away_max = actors::limits::kRewardWait;  // --reward.away_s
};

using Note = std::function<void(const std::string&)>;

class Scorer {
 public:
  // `name`: for messages, "reward format". `calls_max`: in flight. Notifies `changed` when the
  // scorer is `gone`.
  Scorer(std::string name,
         std::size_t calls_max,
         Patience patience,
         async::Timers& timers,
         Note note,
         async::Notifier& changed);
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  // Lives while a failed call is being repeated. The time away counts only while a Waiter lives:
  // without calls it is unknown whether the scorer is there.
  class Waiter {
   public:
    explicit Waiter(Scorer& scorer) : scorer_(scorer) { ++scorer_.waiters_; }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { scorer_.leave(); }

   private:
    Scorer& scorer_;
  };

  void answered();                        // a call got an answer
  void failed(const core::Error& error);  // a call found the scorer away
  bool away() const noexcept { return since_.has_value(); }
  // Nobody waits for it any more: whoever still does looks whether that is so, and its time away
  // begins anew.
  void release();
  // kPeerLost, with cause and remedy, once the scorer has been away for `away_max`; else none.
  std::optional<core::Error> gone() const;
  // Waits until the scorer answers any call, but at most for `pause` and not beyond the time at
  // which it is `gone`.
  async::task<void> wait(core::Duration pause);

  CallGate& gate() noexcept { return gate_; }
  const Patience& patience() const noexcept { return patience_; }

  // What a reward reads, as it said when it was introduced: for which set, and one group at a time.
  // Nothing while it has not been, or has failed since, and may be another.
  std::optional<RewardReads> reads;
  std::uint64_t introduced_for = 0;
  CallGate introduction{1};
  std::uint64_t retries = 0;  // calls that were repeated

 private:
  void leave();

  const std::string name_;
  const Patience patience_;
  async::Timers& timers_;
  const Note note_;
  async::Notifier& changed_;
  async::Notifier back_;
  CallGate gate_;
  std::size_t waiters_ = 0;
  std::optional<core::TimePoint> since_;  // the first failure after the last answer
  std::optional<core::TimePoint> told_;   // when the user was last told that it is away
  bool said_ = false;                     // the user was told of this absence
  std::string cause_;
};

}  // namespace troupe::actors::data
