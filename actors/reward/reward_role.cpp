#include "actors/reward/reward_role.hpp"

namespace troupe::actors {

async::task<core::Result<Scores>> RewardRole::on(Score request) {
  const auto wanted = std::make_shared<RewardReads>();
  const auto tries = std::make_shared<RewardTries>();
  const RewardReads sent = request.sent;
  auto job = [source = source_, request = std::move(request), tries, wanted, deadline = deadline_,
              activity = context_.activity]() -> core::Result<std::vector<RewardScore>> {
    const core::Activity::Busy guard(activity, "score");
    *wanted = source->reads();
    if (!request.sent.cover(*wanted)) return std::vector<RewardScore>();
    return score_with_retries(*source, {request.group}, deadline, *tries);
  };
  auto scores = co_await context_.device->run(std::move(job));
  tries_.calls += tries->calls;
  tries_.hangs += tries->hangs;
  tries_.deaths += tries->deaths;
  tries_.away += tries->away;
  if (!scores) {
    if (scores.error().code != core::ErrorCode::kPeerLost) ++failed_batches_;
    co_return scores.failure();
  }
  Scores reply;
  if (!sent.cover(*wanted)) {
    reply.wanted = *wanted;
    co_return reply;
  }
  for (RewardScore& score : *scores) {
    ++(score.value ? scored_ : missing_);
    reply.values.push_back(score.value);
    reply.causes.push_back(std::move(score.cause));
    reply.extras.push_back(std::move(score.extra));
  }
  co_return reply;
}

wire::Amounts RewardRole::amounts() const {
  return {{"scored", static_cast<double>(scored_)},
          {"missing", static_cast<double>(missing_)},
          {"failed_batches", static_cast<double>(failed_batches_)},
          {"calls", static_cast<double>(tries_.calls)},
          {"hangs", static_cast<double>(tries_.hangs)},
          {"worker_deaths", static_cast<double>(tries_.deaths)},
          {"away", static_cast<double>(tries_.away)}};
}

}  // namespace troupe::actors
