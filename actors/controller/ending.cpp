// How a run ends before its last update: when it is asked to, when the prompts are used up, and for
// an error. Whatever ends it, the last committed state is saved while the roles that hold it live.
#include "actors/controller/controller.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

// Nothing cancels what is done while one of these lives: an error beside it waits for its end.
Controller::Whole::Whole(Controller& owner) : controller(owner) {
  ++controller.whole_;
}
Controller::Whole::~Whole() {
  --controller.whole_;
  controller.changed_.notify_all();
}

// A run that is asked to stop ends after its update; one that has nobody to finish it with ends
// now.
async::task<core::Result<void>> Controller::watch_stop() {
  for (;;) {
    co_await async::sleep_for(*context_.timers, limits::kLookEvery);
    if (!listener_.stop_requested()) continue;
    if (awaited_ && fleet_.generators_able() == 0) break;
    if (issued_ == done_ && rewards_.awaits()) break;
  }
  if (unsaved()) TROUPE_CO_TRY(co_await save(committed_, false));
  co_return core::fail(
      ErrorCode::kInterrupted,
      "stopped as asked, with nobody to go on with for update " + std::to_string(committed_ + 1) +
          "; run the same command again to go on from update " + std::to_string(committed_));
}

// The dataset ends before the run does, because groups were filtered. What was learned is kept.
async::task<core::Result<void>> Controller::prompts_used_up(core::Error error) {
  if (saved_ != done_) TROUPE_CO_TRY(co_await save(done_, true));
  co_return core::fail(ErrorCode::kData,
                       error.message + " after " + std::to_string(done_) + " of " +
                           std::to_string(plan_.updates) + " updates, with " +
                           std::to_string(counts_["group filtered"]) +
                           " groups filtered; what was learned is in the last checkpoint. "
                           "To go on from it, give its folder as --resume with a new "
                           "--run.path and more --train.num_episodes, or a wider "
                           "--algo.dynamic_filtering_range");
}

void Controller::end(core::Error error) {
  if (scope_ == nullptr) {
    if (!early_) early_ = std::move(error);
    return;
  }
  scope_->spawn("", fail_with(std::move(error)));
}

async::task<core::Result<void>> Controller::fail_with(core::Error error) {
  co_return core::fail(std::move(error));
}

bool Controller::holds_state(const std::string& peer) const {
  const auto peers = stateful_peers();
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

core::Failure Controller::state_error(core::Error error) {
  state_lost_ =
      state_lost_ || error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kClosed;
  return core::fail(std::move(error));
}

bool Controller::unsaved() const {
  return committed_ > plan_.first_update && saved_ != committed_;
}

// kPeerLost is left to the loss of what the run has learned: it can be played again from its last
// checkpoint. Others who stayed away have had their time: kDeadline.
async::task<core::Result<void>> Controller::save_last(core::Error error) {
  if (state_lost_) {
    error.code = ErrorCode::kPeerLost;
    co_return core::fail(std::move(error));
  }
  if (error.code == ErrorCode::kPeerLost) error.code = ErrorCode::kDeadline;
  if (const auto place = listener_.check_place(); !place) {
    error = place.error();  // whatever it showed in
    save_failed_ = false;
  }
  if (!unsaved() || save_failed_) co_return core::fail(std::move(error));
  const std::string update = "update " + std::to_string(committed_);
  if (committed_ != done_) {
    error.message += "; " + update +
                     " cannot be saved: the one after it is learned from and not "
                     "written down";
    co_return core::fail(std::move(error));
  }
  context_.call_deadline = limits::kLastSave;
  auto saved = co_await save(committed_, false);
  if (saved) {
    error.message += "; " + update + " is saved in " + saved_at_.string();
  } else {
    error.message += "; " + update + " cannot be saved: " + saved.error().message;
  }
  co_return core::fail(std::move(error));
}

}  // namespace troupe::actors
