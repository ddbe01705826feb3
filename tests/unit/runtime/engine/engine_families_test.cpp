// The engine on models of the other families: windows, norms of heads and branches, soft caps,
// fused tensors. Whatever the batch, the chunks and preemption, each sample has the bits of a naive
// generator.
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <string>

namespace troupe::engine {
namespace {

model::ModelSpec mistral_spec() {
  model::ModelSpec spec = model::tiny_spec();
  spec.architecture = "MistralForCausalLM";
  spec.window = 21;
  spec.sliding = {true, true};
  return spec;
}

class EngineFamilies : public testing::TestWithParam<model::ModelSpec> {};

TEST_P(EngineFamilies, SamplesHaveTheBitsOfANaiveGenerator) {
  model::ModelSpec spec = GetParam();
  spec.vocab = tiny_spec().vocab;
  model::ParamStore params(spec);
  model::randomise(params, 4, 0.25f);
  const Weights weights = pack(params, 3);
  std::vector<GroupRequest> requests = varied_requests(11, 5);
  core::Rng rng(5);
  for (std::uint64_t id = 6; id < 12; ++id)  // long enough to run out of blocks together
    requests.push_back(request_of(id, random_prompt(rng, 14 + id), 2, 28));
  const Samples expected = naive_all(*weights, requests);
  core::SerialTeam one;
  model::PairTeam two;
  auto roomy = make_engine(weights, limits_of(16, 64, 200), two);
  expect_same(run_all(*roomy, requests), expected);
  EXPECT_EQ(roomy->counters().preempted, 0u);
  auto chunked = make_engine(weights, limits_of(8, 13, 200), one);
  expect_same(run_all(*chunked, requests), expected);
  auto tight = make_engine(weights, limits_of(64, 96, 12), one);
  expect_same(run_all(*tight, requests), expected);
  EXPECT_GT(tight->counters().preempted, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Specs,
    EngineFamilies,
    testing::Values(mistral_spec(), model::qwen3_spec(), model::phi3_spec(), model::gemma_spec()),
    [](const auto& i) { return i.param.architecture; });

}  // namespace
}  // namespace troupe::engine
