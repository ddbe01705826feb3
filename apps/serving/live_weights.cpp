// One question at a time, answered when there is something new; then a fetch.
#include "apps/serving/live_weights.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/messages_node.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/weights/limits.hpp"

#include <utility>

namespace troupe::app {

LiveWeights::LiveWeights(EnginePump& pump,
                         std::shared_ptr<weights::WeightSubscriber> subscriber,
                         std::function<void(const std::string&)> note)
    : pump_(pump), subscriber_(std::move(subscriber)), note_(std::move(note)) {}

async::task<void> LiveWeights::follow(LiveWeights* self, actors::RoleContext context) {
  context.call_deadline = actors::limits::kNewsWait + actors::limits::kFrozenAfter;
  for (;;) {
    actors::AwaitPublished request;
    request.held = self->held_;
    auto newest = co_await actors::ask(context, "controller/0", request);
    std::string complaint;
    if (!newest) {
      // A run that has published nothing so far is no trouble, and a controller that is gone is the
      // run's end.
      const core::ErrorCode code = newest.error().code;
      const bool trouble = code != core::ErrorCode::kNotFound && code != core::ErrorCode::kPeerLost;
      if (trouble) complaint = newest.error().message;
    } else if (!self->held_ || newest->version > *self->held_) {
      const actors::WeightSource& at = newest->source;
      weights::WeightLocation location{at.host_id, at.socket, at.tcp_host, at.tcp_port, at.key};
      auto taking = take(self, newest->version, std::move(location));
      auto taken = co_await std::move(taking);
      if (taken) {
        self->held_ = *taken;
        self->note_("serving version " + std::to_string(*taken));
      } else {
        complaint = taken.error().message;
      }
    }
    self->failures_ = complaint.empty() ? 0 : self->failures_ + 1;
    if (self->failures_ > 1 && complaint != self->last_) self->note_(complaint + "; trying again");
    self->last_ = self->failures_ > 1 ? complaint : std::string();
    // Without an answer, and after a version that could not be had; news are waited for there.
    if (!newest || !complaint.empty()) {
      co_await async::sleep_for(*context.timers, actors::limits::kBeatEvery);
    }
  }
}

async::task<core::Result<core::Version>> LiveWeights::take(LiveWeights* self,
                                                           core::Version version,
                                                           weights::WeightLocation location) {
  auto subscriber = self->subscriber_;
  auto job = [subscriber, location, version] {
    return subscriber->fetch(version, location, weights::limits::kWeightStall);
  };
  auto fetched = co_await self->fetch_.run(std::move(job));
  if (!fetched) co_return fetched.failure();
  auto swapped = std::make_shared<async::Oneshot<core::Result<core::Version>>>();
  auto executor = co_await boost::asio::this_coro::executor;
  EnginePump::Swapped told = [swapped, executor](core::Result<core::Version> outcome) {
    async::post(executor, [swapped, outcome] { swapped->set(outcome); });
  };
  self->pump_.take_weights(std::move(*fetched), engine::KvAction::kRecompute, std::move(told));
  auto outcome = co_await async::Oneshot<core::Result<core::Version>>::take(swapped);
  co_return outcome;
}

}  // namespace troupe::app
