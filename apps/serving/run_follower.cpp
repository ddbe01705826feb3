#include "apps/serving/run_follower.hpp"

#include "actors/company/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/messages_node.hpp"
#include "runtime/async/run_on.hpp"

#include <utility>

namespace troupe::serving {

RunFollower::RunFollower(EnginePump& pump,
                         std::shared_ptr<weights::WeightSubscriber> subscriber,
                         async::DeviceQueue& fetch_thread,
                         std::function<void(const std::string&)> note,
                         std::function<void()> current,
                         actors::RoleContext context)
    : pump_(pump),
      note_(std::move(note)),
      current_(std::move(current)),
      context_(std::move(context)) {
  context_.call_deadline = actors::limits::kNewsWait + actors::company::limits::kFrozenAfter;
  weights_ = std::make_shared<actors::generator::WeightFollower>(
      context_, std::move(subscriber), fetch_thread, [this] { hand_over(); });
}

async::task<core::Result<wire::Frame>> RunFollower::handle(wire::Frame) {
  co_return core::fail(ErrorCode::kUnsupported, "a server of weights takes no requests of the run");
}

async::task<core::Result<void>> RunFollower::run() {
  executor_ = co_await boost::asio::this_coro::executor;
  std::string last;          // the last error reported; empty after a success or a first failure
  std::size_t failures = 0;  // consecutive
  for (;;) {
    auto taken = co_await take_next();
    const std::string complaint = taken ? std::string() : taken.error().message;
    failures = complaint.empty() ? 0 : failures + 1;
    if (failures > 1 && complaint != last) note_(complaint + "; trying again");
    last = failures > 1 ? complaint : std::string();
    // The controller answers only when it has a newer version or a timeout passes, so this loop
    // needs no pause of its own except after a failure.
    if (!taken) co_await async::sleep_for(*context_.timers, actors::limits::kBeatEvery);
  }
}

// Asks the controller for a newer version, and fetches it if there is one.
async::task<core::Result<void>> RunFollower::take_next() {
  actors::AwaitPublished request;
  request.held = weights_->version();
  auto newest = co_await actors::ask(context_, "controller/0", request);
  if (!newest) {
    // Do not report these: kNotFound, the run has published nothing yet; kPeerLost, it has ended.
    core::Error error = newest.error();
    if (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kPeerLost)
      error.message.clear();
    co_return core::fail(std::move(error));
  }
  if (weights_->version() && newest->version <= *weights_->version())
    co_return core::Result<void>();
  actors::UpdateWeights update;
  update.version = newest->version;
  update.source = newest->source;
  update.recompute_kv = true;
  TROUPE_CO_TRY(co_await weights_->update(std::move(update)));
  note_("serving version " + std::to_string(*weights_->version()));
  current_();
  co_return core::Result<void>();
}

// Hands the fetched weights to the pump. The pump reports the outcome on its own strand, perhaps
// after this role is destroyed.
void RunFollower::hand_over() {
  EnginePump::Swapped told = [executor = executor_, follower = std::weak_ptr(weights_)](
                                 const core::Result<core::Version>& outcome) {
    async::post(executor, [follower, outcome] {
      const auto weights = follower.lock();
      if (weights == nullptr) return;
      if (outcome) {
        weights->swapped(*outcome);
      } else {
        weights->broken(outcome.error());
      }
    });
  };
  pump_.take_weights(weights_->intake(), weights_->kv(), std::move(told));
}

}  // namespace troupe::serving
