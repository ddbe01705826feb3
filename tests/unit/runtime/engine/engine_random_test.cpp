// Engines under random events (cuts and second tries, pauses in three modes, sleep, weights packed
// again, preemption, prompts that share their beginnings) say bit for bit what an engine without a
// prefix cache says that is left alone; and no block is lost.
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

model::ModelSpec micro_spec() {
  model::ModelSpec spec = tiny_spec();
  spec.layers = 1;
  spec.hidden = 16;
  spec.heads = 2;
  spec.kv_heads = 1;
  spec.head_dim = 8;
  spec.ffn = 16;
  spec.vocab = 40;
  spec.context = 128;
  return spec;
}

Weights micro_weights() {
  model::ParamStore params(micro_spec());
  model::randomise(params, 11, 0.4f);
  return pack(params, 3);
}

class RandomRun {
 public:
  RandomRun(std::uint64_t seed, const Weights& weights, const Weights& twin)
      : rng_(seed), weights_{weights, twin} {
    limits_.max_num_seqs = static_cast<std::int32_t>(2 + rng_.next_below(8));
    limits_.max_num_batched_tokens = static_cast<std::int32_t>(1 + rng_.next_below(60));
    limits_.kv_blocks = static_cast<std::int64_t>(8 + rng_.next_below(16));
    for (std::uint64_t id = 1; id <= 10; ++id)
      requests_.push_back(next_request(id));
  }

  void run(EngineCounters& sum) {
    engine_ = make_engine(weights_[0], limits_, team_, {5});
    while ((submitted_ < requests_.size() || !engine_->idle()) && !testing::Test::HasFailure()) {
      event();
    }
    expect_same(samples_, plain());
    const EngineCounters counters = engine_->counters();
    EXPECT_EQ(counters.free_blocks, limits_.kv_blocks);
    EXPECT_EQ(counters.running_sequences, 0);
    sum.prefix_hit_tokens += counters.prefix_hit_tokens;
    sum.preempted += counters.preempted;
    sum.aborted += counters.aborted;
    sum.evicted += counters.evicted;
  }

 private:
  GroupRequest next_request(std::uint64_t id) {
    const std::uint64_t length = 1 + rng_.next_below(60), common = rng_.next_below(length + 1);
    core::Rng family(rng_.next_below(2));
    std::vector<std::int32_t> prompt = random_prompt(family, common, micro_spec().vocab);
    for (const std::int32_t token : random_prompt(rng_, length - common, micro_spec().vocab))
      prompt.push_back(token);
    GroupRequest request = request_of(id, prompt, static_cast<std::int32_t>(1 + rng_.next_below(2)),
                                      static_cast<std::int32_t>(1 + rng_.next_below(40)));
    if (id % 3 == 0) request.sampling.temperature = 0.0f;
    if (id % 4 == 1) request.sampling.top_p = 0.9f;
    request.sampling.ignore_eos = id % 2 == 0;
    return request;
  }

  Samples plain() {
    EngineLimits limits = limits_of(32, 512, 400);
    limits.enable_prefix_caching = false;
    auto engine = make_engine(weights_[0], limits, team_, {5});
    return run_all(*engine, requests_);
  }

  void event() {
    const auto kind = rng_.next_below(26);
    if (kind < 4 && submitted_ < requests_.size()) {
      ASSERT_TRUE(engine_->submit(requests_[submitted_++]));
    } else if (kind == 4) {
      cut_and_try_again();
    } else if (kind == 5) {
      engine_->pause(rng_.next_below(2) == 0 ? PauseMode::kKeep : PauseMode::kRecompute);
      ASSERT_TRUE(engine_->step()->empty());
      ASSERT_TRUE(engine_->resume());
    } else if (kind == 6) {
      turn_ = 1 - turn_;
      ASSERT_TRUE(engine_->set_weights(
          weights_[turn_], rng_.next_below(2) == 0 ? KvAction::kKeep : KvAction::kRecompute));
    } else if (kind == 7 && rng_.next_below(3) == 0) {
      sleep_and_wake();
    } else {
      step_into(*engine_, samples_);
    }
  }

  // What is cut off is a beginning of what the whole group says; then it is asked for again.
  void cut_and_try_again() {
    if (submitted_ == 0) return;
    const GroupRequest& request = requests_[rng_.next_below(submitted_)];
    const std::vector<Sample> cut = engine_->abort(request.id);
    if (cut.empty()) return;
    for (const Sample& sample : cut)
      ASSERT_EQ(samples_.count({request.id.value, sample.index}), 0u);
    for (std::int32_t i = 0; i < request.samples; ++i)
      samples_.erase({request.id.value, i});
    ASSERT_TRUE(engine_->submit(request));
  }

  void sleep_and_wake() {
    const auto part = rng_.next_below(3);
    const SleepParts parts{part != 0, part != 1};
    ASSERT_TRUE(engine_->sleep(parts));
    if (parts.weights) {
      ASSERT_TRUE(engine_->wake({true, false}));
      ASSERT_TRUE(engine_->set_weights(weights_[turn_], KvAction::kRecompute));
    }
    if (parts.kv) {
      ASSERT_TRUE(engine_->wake({false, true}));
    }
  }

  core::Rng rng_;
  const Weights weights_[2];  // the same numbers, packed twice
  std::size_t turn_ = 0;
  core::SerialTeam team_;
  EngineLimits limits_;
  std::vector<GroupRequest> requests_;
  std::size_t submitted_ = 0;
  std::unique_ptr<Engine> engine_;
  Samples samples_;
};

TEST(EngineRandom, EventsChangeNoBit) {
  const Weights weights = micro_weights(), twin = micro_weights();
  EngineCounters sum;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    RandomRun(seed, weights, twin).run(sum);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(sum.prefix_hit_tokens, 10000u);
  EXPECT_GT(sum.preempted, 100u);
  EXPECT_GT(sum.aborted, 100u);
  EXPECT_GT(sum.evicted, 100u);
}

}  // namespace
}  // namespace troupe::engine
