#include "actors/reward/reward_role.hpp"

#include "actors/reward/queued_reward.hpp"
#include "runtime/core/at_exit.hpp"

namespace troupe::actors::reward {

RewardRole::RewardRole(RoleContext context,
                       std::unique_ptr<RewardCalls> calls,
                       core::Duration deadline)
    : context_(std::move(context)), calls_(std::move(calls)), deadline_(deadline) {
  calls_->begin(context_);
}

RewardRole::RewardRole(RoleContext context,
                       std::unique_ptr<RewardSource> source,
                       core::Duration deadline)
    : RewardRole(std::move(context), make_queued_reward(std::move(source)), deadline) {}

async::task<core::Result<RewardReads>> RewardRole::on(IntroduceReward) {
  co_return calls_->reads();
}

async::task<core::Result<Scores>> RewardRole::on(Score request) {
  Scores reply;
  if (const RewardReads reads = calls_->reads(); !request.sent.cover(reads)) {
    co_return core::fail(core::ErrorCode::kPeerLost,
                         "it was replaced by one that reads " + reads.text());
  }
  const auto tries = std::make_shared<RewardTries>();
  ++open_;
  const core::AtExit count([this, tries] {
    --open_;
    tries_.add(*tries);
  });
  std::vector<RewardGroup> groups(1, std::move(request.group));
  auto scores = co_await score_with_retries(calls_.get(), std::move(groups), deadline_, tries);
  if (!scores) {
    if (scores.error().code != core::ErrorCode::kPeerLost) ++failed_batches_;
    co_return scores.failure();
  }
  reply.modules = calls_->take_modules();
  for (RewardScore& score : *scores) {
    ++(score.value ? scored_ : missing_);
    reply.values.push_back(score.value);
    reply.causes.push_back(std::move(score.cause));
    reply.extras.push_back(std::move(score.extra));
    reply.steps.push_back(std::move(score.steps));
  }
  co_return reply;
}

wire::Amounts RewardRole::amounts() const {
  wire::Amounts amounts = {{"scored", static_cast<double>(scored_)},
                           {"missing", static_cast<double>(missing_)},
                           {"open", static_cast<double>(open_)},
                           {"failed_batches", static_cast<double>(failed_batches_)},
                           {"calls", static_cast<double>(tries_.calls)},
                           {"hangs", static_cast<double>(tries_.hangs)},
                           {"worker_deaths", static_cast<double>(tries_.deaths)},
                           {"away", static_cast<double>(tries_.away)}};
  for (auto& amount : calls_->amounts())
    amounts.push_back(std::move(amount));
  return amounts;
}

}  // namespace troupe::actors::reward
