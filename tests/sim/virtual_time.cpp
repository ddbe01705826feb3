// The event queue and the loop that empties it.
#include "tests/sim/virtual_time.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>

namespace troupe::cluster::sim {

namespace asio = boost::asio;

namespace {

struct Armed final : async::Timer::State {
  void disarm() override { fire = nullptr; }
  std::function<void()> fire;
};

}  // namespace

async::Executor VirtualThreads::make_strand() {
  return asio::make_strand(context_.get_executor());
}

bool VirtualThreads::run_one() {
  if (frozen_) return false;
  context_.restart();
  return context_.poll_one() > 0;
}

async::Timer VirtualTime::arm(async::Executor executor,
                              core::TimePoint at,
                              std::function<void()> fire) {
  auto state = std::make_shared<Armed>();
  state->fire = std::move(fire);
  schedule(at, [state, executor] {
    if (!state->fire) return;
    asio::post(executor, [state] {
      if (state->fire) std::exchange(state->fire, nullptr)();
    });
  });
  return async::Timer(state);
}

void VirtualTime::schedule(core::TimePoint at, std::function<void()> event) {
  events_.emplace(std::pair(std::max(at, now()), sequence_++), std::move(event));
}

std::shared_ptr<VirtualThreads> VirtualTime::make_threads() {
  threads_.push_back(std::make_shared<VirtualThreads>());
  return threads_.back();
}

core::Duration VirtualTime::run_job(const std::function<void()>& job) {
  const core::Duration before = std::exchange(passed_, core::Duration::zero());
  job();
  return std::exchange(passed_, before);
}

bool VirtualTime::run_handler() {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const auto& threads) { return threads->run_one(); });
}

bool VirtualTime::run_until(core::TimePoint end, std::uint64_t steps_max) {
  for (const std::uint64_t last = steps_ + steps_max; steps_ < last; ++steps_) {
    if (run_handler()) continue;
    if (events_.empty() || events_.begin()->first.first > end) return true;
    auto first = events_.extract(events_.begin());
    now_ = first.key().first;
    first.mapped()();
  }
  return false;
}

bool VirtualTime::run_until_quiet(std::uint64_t steps_max) {
  return run_until(core::TimePoint::max(), steps_max);
}

bool VirtualTime::run_for(core::Duration span, std::uint64_t steps_max) {
  const core::TimePoint end = now_ + span;
  const bool done = run_until(end, steps_max);
  if (done) now_ = end;
  return done;
}

}  // namespace troupe::cluster::sim
