#include "actors/reward/queued_reward.hpp"

#include "actors/reward/limits.hpp"

#include <deque>
#include <iterator>

namespace troupe::actors::reward {
namespace {

using QueuedAnswer = RewardCalls::Answer;

// A batch that waits for its scores.
struct QueuedBatch {
  std::vector<RewardGroup> groups;
  core::Duration deadline;
  std::shared_ptr<async::Oneshot<QueuedAnswer>> answer =
      std::make_shared<async::Oneshot<QueuedAnswer>>();
};

// One job: the answers of its batches.
std::vector<QueuedAnswer> answers_of(RewardSource& source,
                                     const std::vector<std::shared_ptr<QueuedBatch>>& batches) {
  std::vector<QueuedAnswer> answers;
  std::vector<RewardGroup> all;
  for (const auto& batch : batches)
    all.insert(all.end(), batch->groups.begin(), batch->groups.end());
  auto joined = source.score(all, batches.front()->deadline);
  if (batches.size() == 1) {
    answers.push_back(std::move(joined));
    return answers;
  }
  const bool whole = joined && joined->size() == samples_in(all);
  auto next = whole ? joined->begin() : std::vector<RewardScore>::iterator();
  for (const auto& batch : batches) {
    if (!whole) {
      answers.push_back(source.score(batch->groups, batch->deadline));
      continue;
    }
    const auto end = next + static_cast<std::ptrdiff_t>(samples_in(batch->groups));
    answers.emplace_back(
        std::vector<RewardScore>(std::make_move_iterator(next), std::make_move_iterator(end)));
    next = end;
  }
  return answers;
}

class QueuedReward final : public RewardCalls {
 public:
  explicit QueuedReward(std::unique_ptr<RewardSource> source) : source_(std::move(source)) {}

  std::string name() const override { return source_->name(); }
  RewardReads reads() const override { return source_->reads(); }
  void begin(const RoleContext& context) override { context_ = context; }

  async::task<Answer> score(std::vector<RewardGroup> groups, core::Duration deadline) override {
    auto batch = std::make_shared<QueuedBatch>();
    batch->groups = std::move(groups);
    batch->deadline = deadline;
    waiting_.push_back(batch);
    if (!working_) {
      working_ = true;
      context_.scope->spawn("score", work());
    }
    co_return co_await async::Oneshot<Answer>::take(batch->answer);
  }

  wire::Amounts amounts() const override {
    return {{"batches", static_cast<double>(batches_)}, {"jobs", static_cast<double>(jobs_)}};
  }

 private:
  std::vector<std::shared_ptr<QueuedBatch>> take() {
    std::vector<std::shared_ptr<QueuedBatch>> taken;
    std::size_t groups = 0;
    while (!waiting_.empty()) {
      groups += waiting_.front()->groups.size();
      if (!taken.empty() && groups > limits::kRewardJob_groups_max) break;
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return taken;
  }

  // Runs jobs as long as batches wait.
  async::task<void> work() {
    while (!waiting_.empty()) {
      auto batches = take();
      batches_ += batches.size();
      ++jobs_;
      auto job = [source = source_, batches,
                  activity = context_.activity]() -> core::Result<std::vector<Answer>> {
        const core::Activity::Busy guard(activity, "score");
        return answers_of(*source, batches);
      };
      auto answers = co_await context_.device->run(std::move(job));
      for (std::size_t i = 0; i < batches.size(); ++i)
        batches[i]->answer->set(answers ? std::move((*answers)[i]) : Answer(answers.failure()));
    }
    working_ = false;
  }

  const std::shared_ptr<RewardSource> source_;  // used by jobs alone, but for its name and reads
  RoleContext context_;
  std::deque<std::shared_ptr<QueuedBatch>> waiting_;
  bool working_ = false;
  std::uint64_t batches_ = 0, jobs_ = 0;
};

}  // namespace

std::unique_ptr<RewardCalls> make_queued_reward(std::unique_ptr<RewardSource> source) {
  return std::make_unique<QueuedReward>(std::move(source));
}

}  // namespace troupe::actors::reward
