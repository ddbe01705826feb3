#include "actors/reference/reference_role.hpp"

#include "runtime/cluster/limits.hpp"

namespace troupe::actors::reference {
namespace {

std::int64_t rows_of(const ScoreLogprobs& request) {
  std::int64_t rows = static_cast<std::int64_t>(request.prompt.size());
  for (const auto& response : request.responses) {
    rows += static_cast<std::int64_t>(response.size());
  }
  return rows;
}

}  // namespace

ReferenceRole::ReferenceRole(RoleContext context,
                             std::shared_ptr<const model::PackedWeights> weights,
                             std::int64_t micro_rows_max)
    : context_(std::move(context)),
      weights_(std::move(weights)),
      micro_rows_max_(micro_rows_max),
      scratch_(std::make_shared<model::ScoreScratch>()) {}

async::task<core::Result<Logprobs>> ReferenceRole::on(ScoreLogprobs request) {
  if (pending_.size() >= cluster::limits::kRoleInbox_frames_max) {
    co_return core::fail(core::ErrorCode::kOverloaded, "the reference has too many groups waiting");
  }
  auto pending = std::make_shared<Pending>();
  pending->request = std::move(request);
  pending->answer = std::make_shared<async::Oneshot<core::Result<Logprobs>>>();
  pending_.push_back(pending);
  if (!working_) {
    working_ = true;
    context_.scope->spawn("score", work());
  }
  co_return co_await async::Oneshot<core::Result<Logprobs>>::take(pending->answer);
}

ReferenceRole::Batch ReferenceRole::take_batch() {
  Batch batch;
  std::int64_t rows = 0;
  while (!pending_.empty()) {
    const auto& next = pending_.front()->request;
    const bool fits = rows + rows_of(next) <= micro_rows_max_ &&
                      (batch.empty() || batch[0]->request.temperature == next.temperature);
    if (!batch.empty() && !fits) break;
    rows += rows_of(next);
    batch.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  return batch;
}

async::task<void> ReferenceRole::work() {
  while (!pending_.empty()) {
    Batch batch = take_batch();
    auto job = [weights = weights_, scratch = scratch_, team = context_.team, batch,
                activity = context_.activity]() {
      const core::Activity::Busy guard(activity, "score");
      return score(*weights, *team, *scratch, batch);
    };
    auto scored = co_await context_.device->run(std::move(job));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i]->answer->set(scored ? core::Result<Logprobs>(std::move((*scored)[i]))
                                   : scored.failure());
    }
  }
  working_ = false;
}

core::Result<std::vector<Logprobs>> ReferenceRole::score(const model::PackedWeights& weights,
                                                         core::TeamRunner& team,
                                                         model::ScoreScratch& scratch,
                                                         const Batch& batch) {
  std::vector<model::SampleGroup> groups;
  for (const auto& pending : batch) {
    model::SampleGroup group;
    group.prompt = pending->request.prompt;
    for (const auto& response : pending->request.responses)
      group.responses.push_back(response);
    for (const auto& targets : pending->request.targets)
      group.targets.push_back(targets);
    groups.push_back(std::move(group));
  }
  model::GroupPlan plan;
  TROUPE_TRY(model::build_group_plan(groups, weights.spec(), team.size(), plan));
  plan.plan.place(team.memory());
  std::vector<float> flat(static_cast<std::size_t>(plan.targets.size()));
  model::score_logprobs(team, weights, plan.plan, plan.targets, batch[0]->request.temperature,
                        scratch, flat);
  std::vector<Logprobs> result;
  auto next = flat.begin();
  for (const auto& pending : batch) {
    Logprobs logprobs;
    for (std::size_t i = 0; i < pending->request.responses.size(); ++i) {
      const auto end = next + static_cast<std::ptrdiff_t>(pending->request.wanted(i));
      logprobs.samples.emplace_back(next, end);
      next = end;
    }
    result.push_back(std::move(logprobs));
  }
  return result;
}

}  // namespace troupe::actors::reference
