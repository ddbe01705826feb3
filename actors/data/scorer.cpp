#include "actors/data/scorer.hpp"

#include "actors/data/limits.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>

namespace troupe::actors::data {
namespace {

std::string rounded_seconds(core::Duration span) {
  const double seconds = std::chrono::duration<double>(span).count();
  return core::printed("%.*f s", seconds < 10 ? 1 : 0, seconds);
}

}  // namespace

Scorer::Scorer(std::string name,
               std::size_t calls_max,
               Patience patience,
               async::Timers& timers,
               Note note,
               async::Notifier& changed)
    : name_(std::move(name)),
      patience_(patience),
      timers_(timers),
      note_(std::move(note)),
      changed_(changed),
      back_(timers),
      gate_(calls_max) {}

void Scorer::answered() {
  if (!since_) return;
  if (said_ && note_) {
    note_(name_ + " is back after " + rounded_seconds(timers_.now() - *since_));
  }
  since_.reset();
  said_ = false;
  back_.notify_all();
}

void Scorer::failed(const core::Error& error) {
  const core::TimePoint now = timers_.now();
  if (!since_) since_ = now;
  cause_ = error.message;
  reads.reset();
  // Reports a scorer that comes and goes all the time only once every kNotesEvery.
  if (!said_ && (!told_ || now - *told_ >= limits::kNotesEvery)) {
    said_ = true;
    told_ = now;
    if (note_) {
      note_(name_ + " is away: " + core::gist_of(cause_) + "; waiting up to " +
            rounded_seconds(patience_.away_max) + " (--reward.away_s)");
    }
  }
  if (gone()) changed_.notify_all();
}

std::optional<core::Error> Scorer::gone() const {
  if (!since_ || timers_.now() - *since_ < patience_.away_max) return std::nullopt;
  return core::advised(core::ErrorCode::kPeerLost,
                       name_ + " has been away for " + rounded_seconds(timers_.now() - *since_) +
                           " (" + core::gist_of(cause_) + ")",
                       "bring it back and run the same command again, or wait longer with "
                       "--reward.away_s");
}

async::task<void> Scorer::wait(core::Duration pause) {
  const core::TimePoint now = timers_.now();
  core::TimePoint end = now + pause;
  if (since_ && !gone()) end = std::min(end, *since_ + patience_.away_max);
  const async::Deadline deadline{end};
  co_await back_.wait(deadline);
}

void Scorer::release() {
  since_.reset();
  said_ = false;
  back_.notify_all();
}

void Scorer::leave() {
  if (--waiters_ > 0) return;
  since_.reset();
  said_ = false;
}

}  // namespace troupe::actors::data
