#include "runtime/core/activity.hpp"

#include "runtime/core/limits.hpp"

#include <algorithm>
#include <utility>

namespace troupe::core {

std::string_view state_name(Activity::State state) noexcept {
  constexpr std::string_view kNames[] = {"busy", "idle", "paused"};
  return kNames[static_cast<std::size_t>(state)];
}

Activity::Activity(const Clock& clock, std::string cause)
    : clock_(clock), cause_(std::move(cause)), start_(clock.now()), since_(start_) {
  idle_[cause_] = Duration::zero();
}

// Causes that differ each time must not grow the table without bound.
std::string Activity::bounded(State state, std::string_view cause) const {
  std::string text(cause);
  const bool full = idle_.size() >= limits::kActivityCauses_max;
  return state == State::kIdle && full && !idle_.contains(text) ? std::string("other") : text;
}

void Activity::settle(TimePoint now) {
  Duration& sum = state_ == State::kBusy     ? busy_
                  : state_ == State::kPaused ? paused_
                                             : idle_[cause_];
  sum += now - std::exchange(since_, now);
}

// Spans are contiguous. `span` extends the last one if it is short or of the same state and cause;
// if the last one is short, `span` takes it over.
void Activity::keep(Span span) {
  if (!spans_.empty()) {
    Span& last = spans_.back();
    const bool same = last.state == span.state && last.cause == span.cause;
    if (same || span.end - span.begin < limits::kActivitySpan_min) {
      last.end = span.end;
      return;
    }
    if (last.end - last.begin < limits::kActivitySpan_min) {
      span.begin = last.begin;
      last = std::move(span);
      return;
    }
  }
  spans_.push_back(std::move(span));
  if (spans_.size() > limits::kActivitySpans_max) {
    spans_.pop_front();
    ++dropped_;
  }
}

void Activity::set(State state, std::string_view cause) {
  const std::lock_guard lock(mutex_);
  std::string next = bounded(state, cause);
  if (state == state_ && next == cause_) return;
  const TimePoint begin = since_;
  const TimePoint now = clock_.now();
  settle(now);
  keep(Span{state_, std::exchange(cause_, std::move(next)), begin, now});
  state_ = state;
}

Activity::Report Activity::report(std::uint64_t spans_after) const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  const Duration open = now - since_;
  Report report;
  report.wall = now - start_;
  report.busy = busy_ + (state_ == State::kBusy ? open : Duration::zero());
  report.paused = paused_ + (state_ == State::kPaused ? open : Duration::zero());
  report.idle = idle_;
  if (state_ == State::kIdle) report.idle[cause_] += open;
  report.now = Span{state_, cause_, since_, now};
  // The newest span may still grow, so it is reported only once another one follows it.
  const std::uint64_t finished = dropped_ + (spans_.empty() ? 0 : spans_.size() - 1);
  for (std::uint64_t number = std::max(spans_after, dropped_); number < finished; ++number) {
    report.spans.push_back(spans_[number - dropped_]);
  }
  report.next_span = finished;
  return report;
}

Activity::Busy::Busy(Activity* activity, std::string_view what) : activity_(activity) {
  if (activity_ == nullptr) return;
  {
    const std::lock_guard lock(activity_->mutex_);
    state_ = activity_->state_;
    cause_ = activity_->cause_;
  }
  activity_->set_busy(what);
}

Activity::Busy::~Busy() {
  if (activity_ != nullptr) activity_->set(state_, cause_);
}

}  // namespace troupe::core
