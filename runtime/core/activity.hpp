// Records how a role spends its time: busy, idle for a named cause, or paused. It is in exactly one
// of these states at any time, so their sums equal the time since its start, to the nanosecond. A
// timeline of recent spans is kept; spans shorter than kActivitySpan_min join a neighbour. Owned by
// the role's host; safe on any thread, so a report never waits for the role. Bounds:
// kActivitySpans_max spans; kActivityCauses_max idle causes (further ones count as "other").
#pragma once

#include "runtime/core/clock.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::core {

class Activity {
 public:
  enum class State { kBusy, kIdle, kPaused };

  struct Span {
    State state = State::kIdle;
    std::string cause;  // or what the role was busy with
    TimePoint begin, end;
  };

  struct Report {
    Duration wall{}, busy{}, paused{};     // wall = busy + paused + the sum of idle
    std::map<std::string, Duration> idle;  // by cause
    std::vector<Span> spans;               // finished spans after `spans_after`, oldest first
    std::uint64_t next_span = 0;           // pass this as `spans_after` next time
    Span now;                              // the current span, ended now
  };

  // Starts in the idle state. `clock` must outlive this object.
  explicit Activity(const Clock& clock, std::string cause = "nothing asked");
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // Switches to a state from now on. Repeating the current state and cause has no effect.
  void set_busy(std::string_view what) { set(State::kBusy, what); }
  void set_idle(std::string_view cause) { set(State::kIdle, cause); }
  void set_paused(std::string_view cause) { set(State::kPaused, cause); }

  // Busy while the guard lives; then the previous state returns. Guards nest. A null activity makes
  // it a no-op.
  class Busy {
   public:
    Busy(Activity* activity, std::string_view what);
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy();

   private:
    Activity* const activity_;
    State state_ = State::kIdle;
    std::string cause_;
  };

  // Spans are numbered from 1; `spans_after` is the number of the last span that the caller has.
  Report report(std::uint64_t spans_after = 0) const;

 private:
  void set(State state, std::string_view cause);
  void settle(TimePoint now);  // books the time since the last change
  void keep(Span span);        // appends a finished span
  std::string bounded(State state, std::string_view cause) const;

  const Clock& clock_;
  mutable std::mutex mutex_;
  State state_ = State::kIdle;
  std::string cause_;
  const TimePoint start_;
  TimePoint since_;  // of the last change
  Duration busy_{}, paused_{};
  std::map<std::string, Duration> idle_;
  std::deque<Span> spans_;
  std::uint64_t dropped_ = 0;  // spans removed because of the bound
};

std::string_view state_name(Activity::State state) noexcept;

}  // namespace troupe::core
