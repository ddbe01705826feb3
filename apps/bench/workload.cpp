#include "apps/bench/workload.hpp"

namespace troupe::bench {

std::vector<std::int32_t> random_tokens(core::Rng& rng, std::int64_t count, std::int64_t vocab) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(rng.next_below(static_cast<std::uint64_t>(vocab))));
  return tokens;
}

std::vector<std::int32_t> random_prompt(core::Rng& family,
                                        std::int64_t shared,
                                        core::Rng& own,
                                        std::int64_t length,
                                        std::int64_t vocab) {
  std::vector<std::int32_t> prompt = random_tokens(family, shared, vocab);
  const std::vector<std::int32_t> rest = random_tokens(own, length - shared, vocab);
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  return prompt;
}

std::shared_ptr<const model::PackedWeights> packed_weights(const model::ParamStore& params,
                                                           core::Version version,
                                                           core::TeamRunner& team,
                                                           kernels::PanelDtype dtype) {
  auto packed = std::make_shared<model::PackedWeights>(params.spec(), dtype, team.memory());
  team.run([&](core::Team member) { packed->fill(member, params, version); });
  return packed;
}

}  // namespace troupe::bench
