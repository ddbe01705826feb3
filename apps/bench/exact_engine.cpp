#include "apps/bench/exact_engine.hpp"

#include "apps/bench/figures.hpp"
#include "apps/bench/workload.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace troupe::bench {
namespace {

constexpr std::int64_t kScorerRows = 384;
constexpr std::int64_t kContext_min = 4;
constexpr float kOtherScale = 0.97f;
constexpr std::uint64_t kRoundStream = 0x65786163;  // keeps these seeds apart from a run's

constexpr std::int64_t kResponse_max = 96;
constexpr std::int64_t kResponse_max_least = 17;  // crosses into a second KV block
constexpr std::int64_t kContext_max = 256;        // positions used of a longer context

engine::SamplingParams sampling(float temperature,
                                std::int32_t top_k = 0,
                                float top_p = 1.0f,
                                float min_p = 0.0f) {
  engine::SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  return params;
}

engine::SamplingParams without_end(float temperature) {
  engine::SamplingParams params = sampling(temperature);
  params.ignore_eos = true;
  return params;
}

struct Round {
  std::int32_t batch = 1;        // samples that run at once
  std::int32_t step_tokens = 1;  // rows of one step, so the longest chunk of a prompt
  std::int32_t threads = 1;
  std::int32_t samples_max = 1;  // of a group: 1 .. samples_max
  std::int32_t prompt_min = 1, prompt_max = 1;
  engine::SamplingParams sampling;  // max_new_tokens is set group by group
  bool scarce_blocks = false;       // too few KV blocks for the batch: samples are preempted
  std::int32_t event_tokens = 0;    // an event every that many sampled tokens; 0 = never
  bool shared_prefixes = false;     // prompts share prefixes
  std::int64_t weight = 1;          // share of the tokens, over the sum of all weights
};

struct RoundInputs {
  const TwoWeights& two;
  core::TeamRunner& team;  // of round.threads members
  std::uint64_t seed = 0;  // of this round
  std::int64_t tokens = 0;
};

// One round: submits groups while the token budget lasts, steps the engine, adds finished samples
// to the transcript. Samples exactly `inputs.tokens` response tokens.
class RoundRun {
 public:
  RoundRun(const Round& round, const RoundInputs& inputs, Transcript& out, Coverage& coverage)
      : round_(round),
        inputs_(inputs),
        spec_(inputs.two.weights->spec()),
        transcript_(out),
        coverage_(coverage),
        rng_(inputs.seed),
        unplanned_(inputs.tokens) {
    const std::int64_t context = std::min(spec_.context, kContext_max);
    prompt_max_ = static_cast<std::int32_t>(std::min<std::int64_t>(round.prompt_max, context / 2));
    prompt_min_ = std::min(round.prompt_min, prompt_max_);
    // Responses have 1 .. response_max_ tokens, half of it on average. At 3/2 of tokens / batch
    // even a short round has a third more samples than its batch holds.
    const std::int64_t wave = std::max(kResponse_max_least, 3 * inputs.tokens / (2 * round.batch));
    response_max_ =
        static_cast<std::int32_t>(std::min({wave, kResponse_max, context - prompt_max_}));
  }

  core::Result<void> run() {
    TROUPE_TRY_ASSIGN(engine, engine::Engine::create(inputs_.two.weights, limits(), spec_.eos,
                                                     nullptr, inputs_.team));
    engine::EngineDriver driver(std::move(engine), inputs_.team);
    const auto counters = [&driver] { return driver.engine()->counters(); };
    ExactEvents events(driver, inputs_.two, inputs_.seed, coverage_.events);
    Coverage::Range running;
    std::uint64_t next_event = event_tokens();
    while (unplanned_ > 0 || !driver.idle()) {
      while (unplanned_ > 0 && counters().waiting_groups < 2)
        TROUPE_TRY(driver.submit(next_request()));
      TROUPE_TRY_ASSIGN(finished, driver.step());
      running.add(counters().running_sequences + std::ssize(finished));
      for (engine::Sample& sample : finished)
        TROUPE_TRY(take(std::move(sample)));
      if (round_.event_tokens == 0 || counters().decode_tokens < next_event) continue;
      TROUPE_TRY(events.next(live_));
      next_event = counters().decode_tokens + event_tokens();
    }
    coverage_.batch.add(running.max);
    coverage_.step_tokens.add(round_.step_tokens);
    coverage_.threads.add(inputs_.team.size());
    coverage_.steps += counters().steps;
    coverage_.preempted += counters().preempted;
    coverage_.prefix_hit_tokens += counters().prefix_hit_tokens;
    coverage_.evicted_blocks += counters().evicted;
    return {};
  }

 private:
  std::uint64_t event_tokens() const { return static_cast<std::uint64_t>(round_.event_tokens); }

  engine::EngineLimits limits() const {
    engine::EngineLimits limits;
    limits.context = prompt_max_ + response_max_;
    limits.max_num_seqs = round_.batch;
    limits.max_num_batched_tokens = round_.step_tokens;
    if (round_.scarce_blocks) {
      const std::int64_t longest = (limits.context + 15) / 16;
      const std::int64_t to_enter = prompt_max_ / 16 + round_.samples_max;
      limits.kv_blocks = std::max({longest, to_enter, std::int64_t{round_.batch} * 3 / 2});
    }
    return limits;
  }

  std::int32_t below(std::int64_t bound) {
    return static_cast<std::int32_t>(rng_.next_below(static_cast<std::uint64_t>(bound)));
  }

  // Never plans more tokens than are left; `take` gives back what a sample did not use.
  engine::GroupRequest next_request() {
    engine::GroupRequest request;
    request.id.value = ++groups_;
    request.seed = core::derive_seed(inputs_.seed, groups_);
    const std::int32_t length = prompt_min_ + below(prompt_max_ - prompt_min_ + 1);
    request.prompt = prompt_of(length);
    request.samples = 1 + below(std::min<std::int64_t>(round_.samples_max, unplanned_));
    request.sampling = round_.sampling;
    request.sampling.max_new_tokens =
        1 + below(std::min<std::int64_t>(response_max_, unplanned_ / request.samples));
    unplanned_ -= std::int64_t{request.samples} * request.sampling.max_new_tokens;

    TranscriptGroup group;
    group.temperature = round_.sampling.temperature > 0 ? round_.sampling.temperature : 1.0f;
    coverage_.temperatures.insert(group.temperature);
    group.threads = inputs_.team.size();
    group.prompt = request.prompt;
    group.samples.resize(static_cast<std::size_t>(request.samples));
    live_[groups_] = {transcript_.groups.size(), request.samples, 0, request};
    coverage_.chunked_prompts += length > round_.step_tokens ? 1 : 0;
    transcript_.groups.push_back(std::move(group));
    coverage_.samples_per_group.add(request.samples);
    coverage_.prompt_tokens.add(length);
    return request;
  }

  // With shared prefixes: the beginning of one of three prompts, then tokens of its own.
  std::vector<std::int32_t> prompt_of(std::int32_t length) {
    const std::int32_t shared = round_.shared_prefixes ? below(length + 1) : 0;
    core::Rng family(inputs_.seed, 1 + static_cast<std::uint64_t>(below(3)));
    return random_prompt(family, shared, rng_, length, spec_.vocab);
  }

  // A sample of a resubmitted group may be in the transcript already; then both must be equal.
  core::Result<void> take(engine::Sample sample) {
    const auto at = live_.find(sample.group.value);
    LiveGroup& live = at->second;
    TranscriptSample& to =
        transcript_.groups[live.place].samples[static_cast<std::size_t>(sample.index)];
    const std::int32_t planned = live.request.sampling.max_new_tokens;
    if (--live.left == 0) live_.erase(at);
    if (!to.tokens.empty()) return same_again(to, sample);
    unplanned_ += planned - std::ssize(sample.tokens);
    coverage_.response_tokens.add(std::ssize(sample.tokens));
    to.tokens = std::move(sample.tokens);
    to.logprobs = std::move(sample.logprobs);
    return {};
  }

  static core::Result<void> same_again(const TranscriptSample& first, const engine::Sample& again) {
    const bool same =
        first.tokens == again.tokens && std::memcmp(first.logprobs.data(), again.logprobs.data(),
                                                    first.logprobs.size() * sizeof(float)) == 0;
    if (same) return {};
    return core::fail(core::ErrorCode::kNumeric,
                      "exact: sample " + std::to_string(again.index) + " of group " +
                          std::to_string(again.group.value) +
                          " came out otherwise when it was asked for again");
  }

  const Round& round_;
  const RoundInputs& inputs_;
  const model::ModelSpec& spec_;
  Transcript& transcript_;
  Coverage& coverage_;
  core::Rng rng_;
  std::int32_t prompt_min_ = 1, prompt_max_ = 1, response_max_ = 1;
  std::int64_t unplanned_;
  std::uint64_t groups_ = 0;
  std::map<std::uint64_t, LiveGroup> live_;  // by group id
};

// Columns: batch, rows of a step, threads, group size, least and greatest prompt length, sampler,
// scarce blocks, tokens between events, shared prefixes, weight. Some batches are smaller and some
// larger than the rows of a step; some prompts end around the edges of KV blocks (16 tokens) and
// attention blocks (64).
std::span<const Round> exact_rounds() {
  static const Round kRounds[] = {
      {1, 1, 1, 1, 1, 9, sampling(1.0f), false, 0, false, 2},
      {1, 512, 2, 1, 20, 100, sampling(0.7f), false, 30, true, 2},
      {1, 5, 2, 1, 60, 70, sampling(0.0f), false, 0, true, 1},
      {2, 3, 1, 2, 1, 40, sampling(1.0f), false, 25, false, 2},
      {3, 7, 2, 3, 15, 17, sampling(1.5f), false, 0, true, 2},
      {4, 16, 1, 4, 16, 16, without_end(1.0f), true, 40, true, 4},
      {8, 64, 2, 8, 1, 40, sampling(1.0f), true, 0, false, 6},
      {8, 33, 1, 5, 30, 66, sampling(0.7f, 20), true, 60, true, 6},
      {16, 128, 2, 8, 60, 120, sampling(1.0f), false, 0, true, 8},
      {23, 17, 1, 4, 1, 30, sampling(1.0f, 0, 0.9f, 0.02f), false, 150, false, 8},
      {32, 256, 2, 8, 1, 100, sampling(1.5f), false, 150, true, 10},
      {48, 40, 1, 6, 40, 50, without_end(1.0f), true, 0, false, 8},
      {64, 512, 2, 8, 1, 90, sampling(1.0f), false, 0, false, 20},
      {64, 100, 1, 4, 8, 33, sampling(0.7f), true, 400, true, 12},
      {64, 64, 2, 1, 1, 24, without_end(1.0f), false, 400, true, 9},
  };
  return kRounds;
}

}  // namespace

core::Result<TwoWeights> load_two_weights(const std::filesystem::path& folder,
                                          kernels::PanelDtype dtype,
                                          core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(params, model::load_model(folder));
  if (params->spec().context < kContext_min) {
    return core::fail(core::ErrorCode::kData, folder.string() + ": a context of " +
                                                  std::to_string(params->spec().context) +
                                                  " positions is too short for this benchmark");
  }
  TwoWeights two;
  two.weights = packed_weights(*params, 0, team, dtype);
  for (std::int64_t i = 0; i < params->size(); ++i)
    params->data()[i] *= kOtherScale;
  two.other = packed_weights(*params, 1, team, dtype);
  return two;
}

namespace {

core::Result<Difference> check_with_scorer(const EngineSide& side,
                                           const model::PackedWeights& weights,
                                           core::TeamRunner& team) {
  Difference difference;
  model::ScoreScratch scratch;
  model::GroupPlan plan;
  const std::int64_t limits[] = {kScorerRows};
  for (const float temperature : side.coverage.temperatures) {
    std::vector<const TranscriptGroup*> groups;
    for (const TranscriptGroup& group : side.transcript.groups) {
      if (group.temperature == temperature) groups.push_back(&group);
    }
    for (const PartBatch& batch : pack_parts(whole_groups(groups), limits)) {
      TROUPE_TRY(model::build_group_plan(model_groups(batch), weights.spec(), team.size(), plan));
      plan.plan.place(team.memory());
      std::vector<float> logprobs(static_cast<std::size_t>(plan.targets.size()));
      model::score_logprobs(team, weights, plan.plan, plan.targets, temperature, scratch, logprobs);
      difference.add(compare(batch, logprobs));
    }
  }
  return difference;
}

}  // namespace

core::Result<EngineSide> run_engine_side(const std::filesystem::path& model,
                                         const ExactPlace& place,
                                         std::int64_t tokens,
                                         std::uint64_t seed) {
  TROUPE_TRY_ASSIGN(teams, ExactTeams::open(place));
  TROUPE_TRY_ASSIGN(two, load_two_weights(model, place.dtype, teams.wide()));
  EngineSide side;
  side.isa = teams.isa();
  const auto rounds = exact_rounds();
  std::int64_t weights = 0;
  for (const Round& round : rounds)
    weights += round.weight;
  std::int64_t weights_before = 0, planned = 0;
  Stopwatch watch;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    weights_before += rounds[i].weight;
    const std::int64_t share = tokens * weights_before / weights - planned;
    if (share == 0) continue;
    planned += share;
    core::TeamRunner& team = rounds[i].threads > 1 ? teams.wide() : teams.narrow();
    const RoundInputs inputs{two, team, core::derive_seed(seed, kRoundStream, i), share};
    TROUPE_TRY(RoundRun(rounds[i], inputs, side.transcript, side.coverage).run());
    ++side.rounds;
  }
  side.engine_s = watch.lap();
  TROUPE_TRY_SET(side.scorer, check_with_scorer(side, *two.weights, teams.wide()));
  side.scorer_s = watch.lap();
  return side;
}

}  // namespace troupe::bench
