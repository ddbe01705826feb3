// The shell of the reward role.
#include "actors/reward/reward_role.hpp"

namespace troupe::actors {

RewardRole::RewardRole(RoleContext context,
                       std::unique_ptr<RewardSource> source,
                       RewardRoleOptions options)
    : context_(std::move(context)), source_(std::move(source)), options_(options) {}

async::task<core::Result<Scores>> RewardRole::on(Score request) {
  std::vector<RewardItem> items;
  for (ScoreItem& item : request.items) {
    items.push_back({std::move(item.prompt), std::move(item.response), std::move(item.label),
                     std::move(item.columns)});
  }
  auto source = source_;
  auto tries = std::make_shared<RewardTries>();
  auto job = [source, items, tries, deadline = options_.deadline, activity = context_.activity]() {
    const MaybeBusy guard(activity, "score");
    return score_with_retries(*source, items, deadline, *tries);
  };
  auto scores = co_await context_.device->run(std::move(job));
  tries_.calls += tries->calls;
  tries_.hangs += tries->hangs;
  tries_.deaths += tries->deaths;
  if (!scores) {
    ++failed_batches_;
    co_return scores.failure();
  }
  Scores reply;
  for (RewardScore& score : *scores) {
    ++(score.value ? scored_ : missing_);
    reply.values.push_back(score.value);
    reply.causes.push_back(std::move(score.cause));
  }
  co_return reply;
}

wire::Amounts RewardRole::amounts() const {
  wire::Amounts amounts;
  const auto add = [&](const char* name, std::uint64_t value) {
    amounts.emplace_back(name, static_cast<double>(value));
  };
  add("scored", scored_);
  add("missing", missing_);
  add("failed_batches", failed_batches_);
  add("calls", tries_.calls);
  add("hangs", tries_.hangs);
  add("worker_deaths", tries_.deaths);
  return amounts;
}

}  // namespace troupe::actors
