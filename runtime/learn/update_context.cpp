// From groups and plans to flat lists of numbers.
#include "runtime/learn/update_context.hpp"

#include "runtime/core/check.hpp"

namespace troupe::learn {
namespace {

void append(std::vector<double>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

AnchorSource anchor_source(bool on_policy, std::int64_t optimiser_steps) {
  if (on_policy) return AnchorSource::kBehaviour;
  return optimiser_steps == 1 ? AnchorSource::kCurrent : AnchorSource::kScored;
}

std::vector<model::SampleGroup> sample_groups(const std::vector<TrainGroup>& groups,
                                              const MicroBatch& micro) {
  std::vector<model::SampleGroup> result;
  for (const GroupPart& part : micro.parts) {
    const TrainGroup& group = groups[part.group];
    model::SampleGroup item;
    item.prompt = group.prompt;
    for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
      item.responses.emplace_back(group.samples[i].tokens);
    }
    result.push_back(std::move(item));
  }
  return result;
}

TokenBatch token_batch(const AlgoSettings& algo,
                       const UpdateContext& update,
                       const MicroBatch& micro) {
  TokenBatch batch;
  for (const GroupPart& part : micro.parts) {
    for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
      const TrainSample& sample = update.groups[part.group].samples[i];
      const std::size_t count = sample.tokens.size();
      const double weight =
          token_weight(algo.reducer, static_cast<std::int64_t>(update.plan.mini_batches.size()),
                       update.plan.tokens, update.plan.samples, static_cast<std::int64_t>(count));
      batch.advantage.insert(batch.advantage.end(), count, update.advantages[part.group][i]);
      batch.weight.insert(batch.weight.end(), count, weight);
      append(batch.behaviour, sample.behaviour);
      if (algo.kl_coef != 0) append(batch.reference, sample.reference);
      if (update.anchor == AnchorSource::kBehaviour) append(batch.anchor, sample.behaviour);
      if (update.anchor == AnchorSource::kScored)
        append(batch.anchor, update.scored[part.group][i]);
    }
  }
  return batch;
}

void scatter_scored(const std::vector<TrainGroup>& groups,
                    const MicroBatch& micro,
                    const std::vector<float>& logprobs,
                    std::vector<std::vector<std::vector<float>>>& scored) {
  auto next = logprobs.begin();
  for (const GroupPart& part : micro.parts) {
    scored[part.group].resize(groups[part.group].samples.size());
    for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
      const auto count = static_cast<std::ptrdiff_t>(groups[part.group].samples[i].tokens.size());
      scored[part.group][i].assign(next, next + count);
      next += count;
    }
  }
  TROUPE_CHECK(next == logprobs.end(), "one log-prob per token of the micro-batch");
}

}  // namespace troupe::learn
