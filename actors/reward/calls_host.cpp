#include "actors/reward/calls_host.hpp"

namespace troupe::actors::reward {
namespace {

async::task<void> begin_calls(RewardCalls* calls, RoleContext context) {
  calls->begin(context);
  co_return;
}

// The calls go here, since connections that they keep would hold up the end of the threads.
async::task<void> end_calls(async::Scope* scope, std::unique_ptr<RewardCalls>* calls) {
  scope->cancel();
  (void)co_await scope->join();
  calls->reset();
}

}  // namespace

CallsHost::CallsHost(std::unique_ptr<RewardCalls> calls)
    : calls_(std::move(calls)), scope_(io_.make_strand()) {
  RoleContext context;
  context.scope = &scope_;
  context.device = &device_;
  context.timers = &timers_;
  run(begin_calls(calls_.get(), std::move(context)));
}

CallsHost::~CallsHost() {
  run(end_calls(&scope_, &calls_));
  io_.join();
}

}  // namespace troupe::actors::reward
