#include "actors/generator/weight_follower.hpp"

#include "actors/generator/limits.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/core/jitter.hpp"
#include "runtime/weights/limits.hpp"

#include <functional>
#include <string>

namespace troupe::actors::generator {
namespace {

// True for errors that another try may overcome.
bool passes(core::ErrorCode code) {
  return code == core::ErrorCode::kPeerLost || code == core::ErrorCode::kClosed ||
         code == core::ErrorCode::kDeadline || code == core::ErrorCode::kOverloaded ||
         code == core::ErrorCode::kData;
}

}  // namespace

WeightFollower::WeightFollower(RoleContext context,
                               std::shared_ptr<weights::WeightSubscriber> subscriber,
                               async::DeviceQueue& fetch_thread,
                               std::function<void()> arrived)
    : context_(std::move(context)),
      subscriber_(std::move(subscriber)),
      fetch_thread_(fetch_thread),
      arrived_(std::move(arrived)),
      changed_(*context_.timers) {}

async::task<core::Result<Ack>> WeightFollower::update(UpdateWeights request) {
  const core::Version version = request.version;
  if (!holds(version) && (!wanted_ || wanted_->version < version)) {
    failed_.reset();
    wanted_ = std::move(request);
    if (!std::exchange(watching_, true)) context_.scope->spawn("weights' end", close_at_end());
    if (!std::exchange(fetching_, true)) context_.scope->spawn("weights", fetch());
  }
  while (!holds(version)) {
    if (failed_ && failed_->version >= version) co_return core::fail(failed_->error);
    co_await changed_.wait(async::Deadline::none());
  }
  co_return Ack{};
}

// Waits forever. The end of the role unwinds this coroutine, which breaks off a fetch under way.
async::task<void> WeightFollower::close_at_end() {
  const core::AtExit close([this] { subscriber_->close(); });
  for (;;)
    co_await changed_.wait(async::Deadline::none());
}

// Random, so that receivers whose connections ended together do not come back together.
core::Duration WeightFollower::pause_before(core::Version version, std::uint64_t tries) const {
  const std::size_t name = std::hash<std::string>()(context_.transport->identity().self);
  return core::Jitter(core::derive_seed(name, version, tries)).of(actors::limits::kOverloadBackoff);
}

async::task<void> WeightFollower::fetch() {
  std::uint64_t tries = 0;
  while (wanted_ && !holds(wanted_->version)) {
    if (intake_) {  // first finish the weights that are being packed
      co_await changed_.wait(async::Deadline::none());
      continue;
    }
    const UpdateWeights target = *wanted_;
    auto job = [subscriber = subscriber_, target] {
      return subscriber->fetch(target.version, target.source, weights::limits::kWeightStall);
    };
    auto fetched = co_await fetch_thread_.run(std::move(job));
    if (fetched) {
      intake_ = std::move(*fetched);
      kv_ = target.recompute_kv ? engine::KvAction::kRecompute : engine::KvAction::kKeep;
      arrived_();
      tries = 0;
    } else if (wanted_->version == target.version) {
      if (passes(fetched.error().code) && ++tries < limits::kFetchTries_max) {
        co_await async::sleep_for(*context_.timers, pause_before(target.version, tries));
      } else {
        give_up(target.version, fetched.error());
      }
    }
  }
  wanted_.reset();
  fetching_ = false;
}

void WeightFollower::give_up(core::Version version, const core::Error& error) {
  core::Error failure = error.within("weights of version " + std::to_string(version));
  // The caller would take kPeerLost or kClosed for the loss of this role.
  if (failure.code == core::ErrorCode::kPeerLost || failure.code == core::ErrorCode::kClosed) {
    failure.code = core::ErrorCode::kDeadline;
  }
  failed_ = Failed{version, std::move(failure)};
  wanted_.reset();
  changed_.notify_all();
}

void WeightFollower::swapped(core::Version version) {
  intake_.reset();
  version_ = version;
  changed_.notify_all();
}

void WeightFollower::broken(const core::Error& error) {
  const core::Version version = intake_->version();
  intake_.reset();
  // With kPeerLost the publisher needed the memory: fetch again.
  if (error.code != core::ErrorCode::kPeerLost && wanted_ && wanted_->version <= version) {
    give_up(version, error);
  } else {
    changed_.notify_all();  // `fetch` goes on with the newest that is wanted
  }
}

}  // namespace troupe::actors::generator
