#include "runtime/engine/cache_fit.hpp"

#include "runtime/engine/engine_settings.hpp"
#include "runtime/engine/group.hpp"

#include <algorithm>

namespace troupe::engine {
namespace {

KvWindow window_of(const model::ModelSpec& spec, const EngineLimits& limits) {
  const std::int64_t context = limits.context == 0 ? spec.context : limits.context;
  const std::int64_t tokens = spec.window_of_all();
  KvWindow window;
  if (tokens < context) window.tokens = static_cast<std::int32_t>(tokens);
  window.step_rows = limits.max_num_batched_tokens;
  return window;
}

}  // namespace

CacheFit cache_fit(const model::ModelSpec& spec,
                   kernels::KvDtype kv,
                   const EngineLimits& limits,
                   const GroupSize& group) {
  const KvWindow window = window_of(spec, limits);
  CacheFit fit;
  fit.block_bytes = block_bytes(spec, kv);
  fit.blocks = static_cast<std::int64_t>(blocks_of(spec, kv, limits));
  fit.wanted = blocks_wanted(group.prompt, group.samples, group.new_tokens, window);
  if (!fit.fits()) return fit;
  const std::int64_t shared = group.prompt / kBlockTokens;
  const std::int64_t whole = blocks_for(group.prompt + group.new_tokens - 1);
  const std::int64_t held = window.any() ? std::min<std::int64_t>(whole, window.held_max()) : whole;
  const std::int64_t own = std::max<std::int64_t>(held - shared, 1);
  const std::int64_t of_group = shared + group.samples * own;
  const std::int64_t left = fit.blocks % of_group - shared;
  fit.at_once = fit.blocks / of_group * group.samples +
                std::min(std::max<std::int64_t>(left, 0) / own, group.samples);
  fit.at_once = std::clamp<std::int64_t>(fit.at_once, 1, limits.max_num_seqs);
  return fit;
}

std::int64_t longest_sample(const model::ModelSpec& spec,
                            kernels::KvDtype kv,
                            const EngineLimits& limits,
                            std::int64_t context) {
  const auto holds = [&](std::int64_t tokens) {
    return cache_fit(spec, kv, limits, {tokens - 1, 1, 1}).fits();
  };
  if (holds(context)) return context;
  // One block more for the first token of the response than for the positions of the prompt.
  const auto blocks = static_cast<std::int64_t>(blocks_of(spec, kv, limits));
  std::int64_t tokens = std::min(context, blocks * kBlockTokens + 1);
  while (tokens > 1 && !holds(tokens))
    --tokens;
  return tokens;
}

}  // namespace troupe::engine
