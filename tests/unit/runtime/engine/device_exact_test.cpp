// Exactness of an engine on a device over thousands of sampled tokens, in both classes of
// arithmetic: with `bf16` the samples are those of the host's engine, and the host's scoring
// forward computes every log-prob again; with `bf16-compute` the device's does. Prompts share
// beginnings and are longer than a step, blocks are scarce, and weights change while samples run.
// TROUPE_EXACT_TOKENS: how many tokens, instead of 2,000. On the emulated device unless
// TROUPE_CUDA_LIBRARY names another library; it runs in one order of threads, since it is long.
#include "runtime/model/score.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <set>
#include <string>

namespace troupe::engine {
namespace {

using kernels::PanelDtype;

constexpr std::int32_t kStepTokens = 24;
constexpr std::int64_t kScoredRows = 400;  // of one scoring forward
constexpr std::uint64_t kSwaps = 6;

std::int64_t tokens_wanted() {
  const char* const set = std::getenv("TROUPE_EXACT_TOKENS");
  return set == nullptr ? 2000 : std::atoll(set);
}

// Prompts begin alike in three families; samplers, reports and temperatures of all kinds.
GroupRequest exact_request(std::uint64_t id) {
  core::Rng rng(id, 31), family(id % 3, 32);
  std::vector<std::int32_t> prompt = random_prompt(family, rng.next_below(40));
  for (const std::int32_t token : random_prompt(rng, 1 + rng.next_below(20)))
    prompt.push_back(token);
  GroupRequest request =
      request_of(id, std::move(prompt), static_cast<std::int32_t>(1 + rng.next_below(3)),
                 static_cast<std::int32_t>(6 + rng.next_below(30)));
  SamplingParams& params = request.sampling;
  const float temperatures[] = {1.0f, 0.7f, 1.0f, 1.5f, 0.0f};
  params.temperature = temperatures[id % 5];
  if (id % 4 == 1) params.top_k = 20;
  if (id % 4 == 2) params.top_p = 0.9f;
  if (id % 6 == 3) params.repetition_penalty = 1.2f;
  if (id % 6 == 4) params.min_p = 0.02f;
  if (id % 7 == 5) params.top_logprobs = 3;
  return request;
}

struct ExactRun {
  std::map<std::uint64_t, GroupRequest> requests;
  Samples samples;
  EngineCounters counters;
  std::int64_t tokens = 0, chunked = 0, swaps = 0;
};

// Samples `tokens` tokens or a few more. The two sets of weights take turns, the first one first.
void run_exact(Engine& engine,
               const std::vector<Weights>& sets,
               std::int64_t tokens,
               ExactRun& out) {
  std::uint64_t next_swap = static_cast<std::uint64_t>(tokens) / kSwaps;
  std::int64_t planned = 0;
  while (planned < tokens || !engine.idle()) {
    while (planned < tokens && engine.counters().waiting_groups < 3) {
      const GroupRequest request = exact_request(out.requests.size() + 1);
      ASSERT_TRUE(engine.submit(request));
      planned += std::int64_t{request.samples} * request.sampling.max_new_tokens;
      if (std::ssize(request.prompt) > kStepTokens) ++out.chunked;
      out.requests.emplace(request.id.value, request);
    }
    ASSERT_NO_FATAL_FAILURE(step_into(engine, out.samples));
    if (engine.counters().decode_tokens < next_swap) continue;
    ASSERT_TRUE(
        engine.set_weights(sets[static_cast<std::size_t>(++out.swaps % 2)], KvAction::kRecompute));
    next_swap += static_cast<std::uint64_t>(tokens) / kSwaps;
  }
  out.counters = engine.counters();
  for (const auto& [key, sample] : out.samples)
    out.tokens += std::ssize(sample.tokens);
}

// Scores samples of one temperature with one set of weights, and counts the tokens that these
// weights drew and, of those, the log-probs that differ in a bit.
class Rescored {
 public:
  Rescored(core::TeamRunner& team, const Weights& weights, float temperature)
      : team_(team), weights_(weights), temperature_(temperature) {}

  void add(const std::vector<std::int32_t>& prompt, const Sample& sample) {
    groups_.push_back({prompt, {sample.tokens}});
    samples_.push_back(&sample);
    rows_ += model::rows_of(groups_.back());
    if (rows_ >= kScoredRows) finish();
  }
  void finish() {
    if (groups_.empty()) return;
    ASSERT_TRUE(model::build_group_plan(groups_, weights_->spec(), team_.size(), plan_));
    plan_.plan.place(team_.memory());
    std::vector<float> logprobs(static_cast<std::size_t>(plan_.targets.size()));
    model::score_logprobs(team_, *weights_, plan_.plan, plan_.targets, temperature_, scratch_,
                          logprobs);
    std::size_t at = 0;
    for (const Sample* sample : samples_) {
      for (std::size_t i = 0; i < sample->tokens.size(); ++i, ++at) {
        if (sample->versions[i] != weights_->version()) continue;
        ++tokens;
        differing += std::bit_cast<std::uint32_t>(sample->logprobs[i]) !=
                     std::bit_cast<std::uint32_t>(logprobs[at]);
      }
    }
    groups_.clear();
    samples_.clear();
    rows_ = 0;
  }

  std::int64_t tokens = 0, differing = 0;

 private:
  core::TeamRunner& team_;
  const Weights weights_;
  const float temperature_;
  std::vector<model::SampleGroup> groups_;
  std::vector<const Sample*> samples_;
  std::int64_t rows_ = 0;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

class DeviceExactness : public testing::TestWithParam<PanelDtype> {
 protected:
  void SetUp() override {
    kernels::flush_denormals();
    std::string why;
    device_ = model::make_emulated_team(why);
    if (!device_) GTEST_SKIP() << why;
  }
  std::vector<Weights> two_sets(core::TeamRunner& team) const {
    std::vector<Weights> sets;
    for (const std::uint64_t seed : {1, 2}) {
      model::ParamStore params(tiny_spec());
      model::randomise(params, seed, 0.25f);
      auto packed = std::make_shared<model::PackedWeights>(tiny_spec(), GetParam(), team.memory());
      team.run([&](core::Team member) { packed->fill(member, params, seed); });
      sets.push_back(std::move(packed));
    }
    return sets;
  }
  static EngineLimits scarce() { return limits_of(8, kStepTokens, 14); }

  std::unique_ptr<core::TeamRunner> device_;
  core::SerialTeam host_;
};

INSTANTIATE_TEST_SUITE_P(Classes,
                         DeviceExactness,
                         testing::Values(PanelDtype::kBf16, PanelDtype::kBf16Compute),
                         [](const auto& tested) {
                           return tested.param == PanelDtype::kBf16 ? std::string("Bf16")
                                                                    : std::string("Bf16Compute");
                         });

TEST_P(DeviceExactness, EveryLogprobIsTheScoringForwards) {
  const std::vector<Weights> there = two_sets(*device_);
  ExactRun run;
  {
    auto engine = make_engine(there[0], scarce(), *device_);
    ASSERT_NO_FATAL_FAILURE(run_exact(*engine, there, tokens_wanted(), run));
  }
  EXPECT_GE(run.tokens, tokens_wanted());
  EXPECT_GE(run.swaps, 5);
  EXPECT_GT(run.chunked, 3);
  EXPECT_GT(run.counters.preempted, 3u);
  EXPECT_GT(run.counters.prefix_hit_tokens, 100u);
  EXPECT_GT(run.counters.evicted, 10u);
  EXPECT_GT(run.counters.replayed, 10u);

  core::TeamRunner& scorer = GetParam() == PanelDtype::kBf16 ? host_ : *device_;
  const std::vector<Weights> sets = GetParam() == PanelDtype::kBf16 ? two_sets(host_) : there;
  if (GetParam() == PanelDtype::kBf16) {
    ExactRun on_host;
    auto engine = make_engine(sets[0], scarce(), host_);
    ASSERT_NO_FATAL_FAILURE(run_exact(*engine, sets, tokens_wanted(), on_host));
    expect_same(on_host.samples, run.samples);
    EXPECT_EQ(on_host.counters.preempted, run.counters.preempted);
    EXPECT_EQ(on_host.counters.prefix_hit_tokens, run.counters.prefix_hit_tokens);
  }
  std::int64_t tokens = 0, differing = 0, crossed = 0;
  for (const Weights& weights : sets) {
    for (const float temperature : {1.0f, 0.7f, 1.5f}) {
      Rescored rescored(scorer, weights, temperature);
      for (const auto& [key, sample] : run.samples) {
        const GroupRequest& request = run.requests.at(key.first);
        const float drawn_at = request.sampling.temperature;
        if ((drawn_at > 0.0f ? drawn_at : 1.0f) != temperature) continue;
        const std::set<core::Version> versions(sample.versions.begin(), sample.versions.end());
        if (versions.count(weights->version()) == 0) continue;
        crossed += versions.size() > 1 ? 1 : 0;
        ASSERT_NO_FATAL_FAILURE(rescored.add(request.prompt, sample));
      }
      ASSERT_NO_FATAL_FAILURE(rescored.finish());
      tokens += rescored.tokens;
      differing += rescored.differing;
    }
  }
  EXPECT_EQ(tokens, run.tokens);
  EXPECT_EQ(differing, 0);
  EXPECT_GT(crossed, 5);
}

}  // namespace
}  // namespace troupe::engine
