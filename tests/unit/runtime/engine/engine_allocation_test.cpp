// A decode step in its steady state takes nothing from the heap: every operator new of the test
// binary is counted.
#include "runtime/async/cpu_pool.hpp"
#include "runtime/core/checked_change.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace troupe::engine {
namespace {

Weights weights_with_experts() {
  model::ModelSpec spec = tiny_spec();
  spec.moe.experts = 6;
  spec.moe.experts_per_token = 2;
  spec.moe.ffn = 24;
  spec.moe.shared_ffn = 20;
  model::ParamStore params(spec);
  model::randomise(params, 5, 0.25f);
  return pack(params, 3);
}

std::uint64_t allocations_of_steady_steps(core::TeamRunner& team,
                                          const SamplingParams& sampling,
                                          Weights weights = tiny_weights()) {
  auto engine = make_engine(std::move(weights), limits_of(64, 128, 2000), team);
  core::Rng rng(1);
  for (std::uint64_t id = 1; id <= 8; ++id) {
    GroupRequest request = request_of(id, random_prompt(rng, 10 + 3 * id), 4);
    request.sampling = sampling;
    request.sampling.max_new_tokens = 200;
    EXPECT_TRUE(engine->submit(request));
  }
  Samples samples;
  while (engine->counters().decode_tokens < 32u * 5)
    step_into(*engine, samples);
  core::check_invariants(false);  // a check looks at all there is
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 60; ++i) {
    const auto finished = engine->step();
    if (!finished || !finished->empty()) ADD_FAILURE() << "not a steady step";
  }
  return allocations.load() - before;
}

TEST(EngineAllocation, SteadyDecodeStepsTakeNothingFromTheHeap) {
  SamplingParams plain, greedy, cut, penalised, told;
  greedy.temperature = 0.0f;
  cut.top_k = 50;
  cut.top_p = 0.9f;
  penalised.repetition_penalty = 1.2f;
  penalised.frequency_penalty = 0.5f;
  penalised.logit_bias = {{5, 1.0f}, {900, -2.0f}};
  penalised.min_p = 0.001f;
  told.temperature = 0.7f;
  told.entropies = true;
  told.raw_logprobs = true;
  told.top_logprobs = 20;
  core::SerialTeam serial;
  async::CpuPool pool(2);
  for (const SamplingParams& sampling : {plain, greedy, cut, penalised, told}) {
    EXPECT_EQ(allocations_of_steady_steps(serial, sampling), 0u);
    EXPECT_EQ(allocations_of_steady_steps(pool, sampling), 0u);
  }
}

TEST(EngineAllocation, NorDoExperts) {
  SamplingParams plain, routed;
  routed.routed_experts = true;
  async::CpuPool pool(2);
  for (const SamplingParams& sampling : {plain, routed})
    EXPECT_EQ(allocations_of_steady_steps(pool, sampling, weights_with_experts()), 0u);
}

TEST(EngineAllocation, TheCounterCounts) {
  const std::uint64_t before = allocations.load();
  const std::vector<std::string> some(3, std::string(100, 'x'));
  EXPECT_EQ(some.size(), 3u);
  EXPECT_GE(allocations.load() - before, 4u);
}

}  // namespace
}  // namespace troupe::engine
