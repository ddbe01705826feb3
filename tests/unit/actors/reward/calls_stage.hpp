// Makes many calls of a reward at a time, as the reward role does.
#pragma once

#include "actors/reward/calls_host.hpp"
#include "actors/reward/reward_retries.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::reward {

class CallsStage {
 public:
  explicit CallsStage(std::unique_ptr<RewardCalls> calls) : host_(std::move(calls)) {}

  // All batches at the same time, each with its retries; the answers in their order.
  std::vector<RewardCalls::Answer> score(const std::vector<RewardGroup>& groups,
                                         core::Duration deadline) {
    std::vector<RewardCalls::Answer> answers(groups.size(),
                                             core::fail(core::ErrorCode::kInternal, "not called"));
    host_.run(score_all(this, groups, deadline, &answers));
    return answers;
  }

  double amount(const std::string& name) {
    const wire::Amounts amounts = host_.run(amounts_of(&host_.calls()));
    const double* const found = wire::find_amount(amounts, name);
    return found == nullptr ? -1 : *found;
  }
  std::string modules() { return host_.run(modules_of(&host_.calls())); }
  RewardTries tries;

 private:
  static async::task<std::string> modules_of(RewardCalls* calls) {
    co_return calls->take_modules();
  }
  static async::task<wire::Amounts> amounts_of(RewardCalls* calls) { co_return calls->amounts(); }
  static async::task<void> score_all(CallsStage* self,
                                     std::vector<RewardGroup> groups,
                                     core::Duration deadline,
                                     std::vector<RewardCalls::Answer>* answers) {
    std::vector<async::task<core::Result<void>>> tasks;
    for (std::size_t i = 0; i < groups.size(); ++i)
      tasks.push_back(score_one(self, groups[i], deadline, &(*answers)[i]));
    (void)co_await async::all(std::move(tasks));
  }
  static async::task<core::Result<void>> score_one(CallsStage* self,
                                                   RewardGroup group,
                                                   core::Duration deadline,
                                                   RewardCalls::Answer* out) {
    auto tries = std::make_shared<RewardTries>();
    std::vector<RewardGroup> groups(1, std::move(group));
    auto answer =
        co_await score_with_retries(&self->host_.calls(), std::move(groups), deadline, tries);
    *out = std::move(answer);
    self->tries.add(*tries);
    co_return core::Result<void>();
  }

  CallsHost host_;
};

}  // namespace troupe::actors::reward
