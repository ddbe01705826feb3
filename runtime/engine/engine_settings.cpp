#include "runtime/engine/engine_settings.hpp"

#include "runtime/engine/group.hpp"

#include <algorithm>
#include <string>

namespace troupe::engine {

using std::to_string;

namespace {
constexpr std::uint64_t kBlocks_max = 1ull << 26;  // slot numbers fit into 32 bits
}

std::uint64_t block_bytes(const model::ModelSpec& spec, kernels::KvDtype kv) {
  return static_cast<std::uint64_t>(spec.layers * 2 * spec.kv_width() * kBlockTokens *
                                    kernels::bytes_of(kv));
}

std::uint64_t blocks_of(const model::ModelSpec& spec,
                        kernels::KvDtype kv,
                        const EngineLimits& limits) {
  if (limits.kv_blocks > 0)
    return std::min(static_cast<std::uint64_t>(limits.kv_blocks), kBlocks_max);
  const std::int64_t context = limits.context == 0 ? spec.context : limits.context;
  const auto useful = static_cast<std::uint64_t>(limits.max_num_seqs) *
                      static_cast<std::uint64_t>(blocks_for(context));
  return std::min({limits.kv_cache_gb.bytes / block_bytes(spec, kv), useful, kBlocks_max});
}

core::Result<EngineSettings> settings_for(const model::ModelSpec& spec,
                                          kernels::KvDtype kv,
                                          const EngineLimits& limits) {
  EngineSettings settings;
  const std::int64_t context = limits.context == 0 ? spec.context : limits.context;
  if (context < 1 || context > spec.context) {
    return fail(ErrorCode::kInvalidArgument, "the engine's context is " + to_string(context),
                "the model has positions for " + to_string(spec.context));
  }
  if (limits.max_num_seqs < 1 || limits.max_num_batched_tokens < 1) {
    return fail(ErrorCode::kInvalidArgument,
                "max_num_seqs and max_num_batched_tokens must be at least 1",
                "they are " + to_string(limits.max_num_seqs) + " and " +
                    to_string(limits.max_num_batched_tokens));
  }
  const std::uint64_t blocks = blocks_of(spec, kv, limits);
  if (blocks == 0) {
    return fail(ErrorCode::kResources,
                to_string(limits.kv_cache_gb.bytes) +
                    " bytes for keys and values do not hold one block of " +
                    to_string(block_bytes(spec, kv)),
                kMoreCache);
  }
  settings.blocks = static_cast<std::int32_t>(blocks);
  settings.context = static_cast<std::int32_t>(context);
  settings.sequences_max = limits.max_num_seqs;
  settings.step_tokens_max = limits.max_num_batched_tokens;
  settings.prefix_cache = limits.enable_prefix_caching;
  const std::int64_t window = spec.window_of_all();
  if (window < context) settings.window = static_cast<std::int32_t>(window);
  return settings;
}

}  // namespace troupe::engine
