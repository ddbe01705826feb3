#include "runtime/learn/rl/update_context.hpp"

#include "runtime/core/check.hpp"
#include "runtime/experience/episodes.hpp"

namespace troupe::learn {
namespace {

template <class Value>
void append(std::vector<double>& to, const std::vector<Value>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// a = (v_p - v_mu) / (v_now - v_mu) of a3po: 1 at the update's first step, 0 for a token of the
// current weights or of the update's start.
double anchor_share(core::Version made_by, core::Version start, core::Version now) {
  if (now <= made_by) return 0;
  return static_cast<double>(start - made_by) / static_cast<double>(now - made_by);
}

// For each sample the drawn tokens of its episode.
std::vector<std::size_t> episode_tokens(const experience::Group& group) {
  std::vector<std::size_t> lengths;
  for (const experience::Episode& episode : experience::episodes_of(group.samples))
    lengths.resize(episode.end, experience::tokens_of(group.samples, episode));
  return lengths;
}

bool begins_episode(const experience::Group& group, std::size_t sample) {
  const auto& samples = group.samples;
  return samples[sample].episode == 0 || samples[sample].episode != samples[sample - 1].episode;
}

}  // namespace

bool start_needed(const AlgoSettings& algo) {
  return algo.own_advantage || algo.kl_in_reward() ||
         (algo.kl.init_coef != 0 && algo.kl.target > 0) || algo.advantage.estimator->reads_start ||
         algo.correction.type->masks_update;
}

AnchorSource anchor_source(Chosen<Objective> objective,
                           bool on_policy,
                           std::int64_t optimiser_steps,
                           bool start_needed) {
  if (on_policy || objective->anchor == Anchor::kBehaviour) return AnchorSource::kBehaviour;
  if (objective->anchor == Anchor::kInterpolated) return AnchorSource::kInterpolated;
  return optimiser_steps == 1 && !start_needed ? AnchorSource::kCurrent : AnchorSource::kScored;
}

bool scores_start(const AlgoSettings& algo, bool on_policy, std::int64_t optimiser_steps) {
  const bool first = start_needed(algo);
  return anchor_source(algo.objective, on_policy, optimiser_steps, first) ==
             AnchorSource::kScored ||
         (first && !on_policy);
}

TokenTable<double> update_mask(const std::vector<experience::Group>& groups,
                               const TokenTable<float>& scored,
                               double tau) {
  std::vector<double> log_rho;
  const auto order = by_ticket(groups);
  for (const std::size_t g : order) {
    for (std::size_t i = 0; i < groups[g].samples.size(); ++i) {
      append(log_rho, start_log_ratios(scored, groups, g, i, groups[g].samples[i].behaviour));
    }
  }
  const std::vector<double> keep = second_moment_mask(log_rho, tau);
  TokenTable<double> table(groups.size());
  auto next = keep.begin();
  for (const std::size_t g : order) {
    for (const experience::Trajectory& sample : groups[g].samples) {
      const auto count = static_cast<std::ptrdiff_t>(sample.tokens.size());
      table[g].emplace_back(next, next + count);
      next += count;
    }
  }
  return table;
}

SampleRows sample_rows(const std::vector<experience::Group>& groups, const MicroBatch& micro) {
  SampleRows result;
  for (const GroupPart& part : micro.parts) {
    const experience::Group& group = groups[part.group];
    model::SampleGroup item;
    item.prompt = group.prompt;
    for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
      const experience::Trajectory& sample = group.samples[i];
      if (!experience::has_context(sample)) {
        item.responses.emplace_back(sample.tokens);
        item.targets.emplace_back();
        continue;
      }
      // A row's lists stay where they are when the vector of rows grows.
      const experience::Row& row = result.rows.emplace_back(experience::row_of(sample));
      item.responses.emplace_back(row.ids);
      item.targets.emplace_back(row.drawn);
    }
    result.groups.push_back(std::move(item));
  }
  return result;
}

core::Result<void> plan_micro_batch(const std::vector<experience::Group>& groups,
                                    const MicroBatch& micro,
                                    const model::ModelSpec& spec,
                                    core::TeamRunner& team,
                                    model::GroupPlan& out) {
  const SampleRows rows = sample_rows(groups, micro);
  TROUPE_TRY(model::build_group_plan(rows.groups, spec, team.size(), out));
  out.plan.place(team.memory());
  TROUPE_CHECK(out.plan.rows() == micro.rows && out.targets.size() == micro.tokens,
               "the model's plan has the rows and tokens of the micro-batch");
  return {};
}

TokenBatch token_batch(const AlgoSettings& algo,
                       const UpdateContext& update,
                       const MicroBatch& micro,
                       core::Version now) {
  TokenBatch batch;
  const UpdateCounts counts = update.plan.counts();
  if (update.pairs > 0) {
    batch.pair_weight = counts.mini_batches / static_cast<double>(update.pairs);
  }
  for (const GroupPart& part : micro.parts) {
    const std::vector<std::size_t> lengths = episode_tokens(update.groups[part.group]);
    for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
      const experience::Trajectory& sample = update.groups[part.group].samples[i];
      const std::size_t count = sample.tokens.size();
      const double weight =
          algo.reducer->weight(counts, static_cast<double>(lengths[i]), algo.reducer_tokens());
      append(batch.advantage, update.advantages[part.group][i]);
      batch.weight.insert(batch.weight.end(), count, weight);
      if (!update.token_weights.empty()) {
        const std::vector<double>& own = update.token_weights[part.group][i];
        for (std::size_t t = 0; t < count; ++t)
          batch.weight[batch.weight.size() - count + t] *= own[t];
      }
      append(batch.behaviour, sample.behaviour);
      if (algo.needs_reference()) append(batch.reference, sample.reference);
      if (update.anchor == AnchorSource::kBehaviour) append(batch.anchor, sample.behaviour);
      if (update.anchor == AnchorSource::kScored)
        append(batch.anchor, update.scored[part.group][i]);
      if (update.anchor == AnchorSource::kInterpolated) {
        for (const core::Version made_by : sample.versions)
          batch.anchor_share.push_back(anchor_share(made_by, update.start, now));
      }
      if (!update.keep.empty()) append(batch.keep, update.keep[part.group][i]);
      // A pair compares episodes: all that was drawn in one against all that was in the other.
      const bool goes_on = algo.objective->pairs && i + 1 < part.sample_end &&
                           !begins_episode(update.groups[part.group], i + 1);
      if (!goes_on) batch.sample_ends.push_back(batch.size());
    }
  }
  return batch;
}

void scatter_scored(const std::vector<experience::Group>& groups,
                    const MicroBatch& micro,
                    const std::vector<float>& logprobs,
                    TokenTable<float>& scored) {
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
