#include "actors/reward/blocking_reward.hpp"

#include "actors/reward/calls_host.hpp"

namespace troupe::actors::reward {
namespace {

class BlockingReward final : public RewardSource {
 public:
  explicit BlockingReward(std::unique_ptr<RewardCalls> calls) : host_(std::move(calls)) {}

  std::string name() const override { return host_.calls().name(); }
  RewardReads reads() const override { return host_.run(reads_of(&host_.calls())); }

  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration deadline) override {
    return host_.run(host_.calls().score(groups, deadline));
  }

 private:
  static async::task<RewardReads> reads_of(RewardCalls* calls) { co_return calls->reads(); }

  mutable CallsHost host_;
};

}  // namespace

std::unique_ptr<RewardSource> make_blocking_reward(std::unique_ptr<RewardCalls> calls) {
  return std::make_unique<BlockingReward>(std::move(calls));
}

}  // namespace troupe::actors::reward
