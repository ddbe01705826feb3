// The shell of the reward role.
#include "actors/reward/reward_role.hpp"

#include "runtime/core/limits.hpp"

namespace troupe::actors {
namespace {

core::Result<std::vector<RewardScore>> score_with_retries(RewardSource& source,
                                                          const std::vector<RewardItem>& items) {
  core::Error last;
  for (std::uint64_t attempt = 0; attempt <= core::limits::kRewardRetries_max; ++attempt) {
    auto scores = source.score(items, core::limits::kRewardDeadline);
    if (scores && scores->size() == items.size()) return scores;
    if (scores) {
      last = {core::ErrorCode::kData, "reward " + source.name() + " gave " +
                                          std::to_string(scores->size()) + " scores for " +
                                          std::to_string(items.size()) + " samples"};
    } else {
      last = scores.error();
    }
  }
  return core::fail(last);
}

}  // namespace

RewardRole::RewardRole(RoleContext context, std::unique_ptr<RewardSource> source)
    : context_(std::move(context)), source_(std::move(source)) {}

async::task<core::Result<Scores>> RewardRole::on(Score request) {
  std::vector<RewardItem> items;
  for (ScoreItem& item : request.items) {
    items.push_back({std::move(item.prompt), std::move(item.response), std::move(item.label),
                     std::move(item.columns)});
  }
  auto source = source_;
  auto job = [source, items]() { return score_with_retries(*source, items); };
  auto scores = co_await context_.device->run(std::move(job));
  if (!scores) co_return scores.failure();
  Scores reply;
  for (RewardScore& score : *scores) {
    reply.values.push_back(score.value);
    reply.causes.push_back(std::move(score.cause));
  }
  co_return reply;
}

}  // namespace troupe::actors
