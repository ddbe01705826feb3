// One scorer, a reward or the reference model, as the data role sees it: how many calls are inside,
// whether it is there, since when it is away, which columns of a row it reads. Pure but for the
// clock. Owned by the data role, on its strand.
//
// Away is who gives no answer: lost, refusing, too busy to answer. Any answer, also one that says
// no, ends that. People hear of it once, and once when it is over, at most every kNotesEvery.
#pragma once

#include "actors/limits.hpp"
#include "actors/protocol/reward_group.hpp"
#include "runtime/async/event.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/error.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

namespace troupe::actors {

struct Patience {
  core::Duration pause_min = limits::kScorerPause_min;
  core::Duration pause_max = limits::kScorerPause_max;
  core::Duration away_max = limits::kRewardWait;  // --reward.away_s
};

// Lets so many calls through at a time; the others wait in the order they came, so that many groups
// at once fill no inbox. Bound: the waiting calls, one a group and scorer.
class CallGate {
 public:
  explicit CallGate(std::size_t calls_max) : calls_max_(calls_max) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  // Each is followed by `leave`.
  async::task<void> enter() {
    if (inside_ < calls_max_) {
      ++inside_;
      co_return;
    }
    auto turn = std::make_shared<async::Event>();
    const async::Listed<async::Event> listed(waiting_, turn);
    co_await async::Event::wait(turn);
  }

  // The place goes to the first that still waits.
  void leave() {
    for (const auto& turn : waiting_) {
      if (turn->fire()) return;
    }
    --inside_;
  }

 private:
  const std::size_t calls_max_;
  std::size_t inside_ = 0;
  std::list<std::shared_ptr<async::Event>> waiting_;
};

using Note = std::function<void(const std::string&)>;

class Scorer {
 public:
  // `name` as people know it: "reward format". `changed` is woken when the patience has come to its
  // end.
  Scorer(std::string name,
         Patience patience,
         async::Timers& timers,
         Note note,
         async::Notifier& changed);
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  // A call that has failed and is to be made again. The time away is counted while there is one:
  // without calls nobody knows.
  class Waiter {
   public:
    explicit Waiter(Scorer& scorer) : scorer_(scorer) { ++scorer_.waiters_; }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { scorer_.leave(); }

   private:
    Scorer& scorer_;
  };

  void answered();
  void failed(const core::Error& error);
  bool away() const noexcept { return since_.has_value(); }
  // kPeerLost, once it has been away for as long as the patience lasts: the cause, and what helps.
  std::optional<core::Error> gone() const;
  // Until it answers somebody, at most for `pause`, and not beyond the end of the patience.
  async::task<void> wait(core::Duration pause);

  CallGate& gate() noexcept { return gate_; }
  const Patience& patience() const noexcept { return patience_; }

  RewardReads reads;          // what it reads, as far as known
  std::uint64_t retries = 0;  // calls that were made again

 private:
  void leave();

  const std::string name_;
  const Patience patience_;
  async::Timers& timers_;
  const Note note_;
  async::Notifier& changed_;
  async::Notifier back_;
  CallGate gate_{limits::kScorerCalls_max};
  std::size_t waiters_ = 0;
  std::optional<core::TimePoint> since_;  // the first failure after the last answer
  std::optional<core::TimePoint> told_;   // when people heard last that it is away
  bool said_ = false;                     // of this time away
  std::string cause_;
};

}  // namespace troupe::actors
