#include "apps/session/roles/cache_need.hpp"

#include "apps/session/roles/run_settings.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::session {
namespace {

constexpr double kGiB_bytes = 1024.0 * 1024.0 * 1024.0;

// Three digits, rounded up: at least as many bytes.
std::string gibibytes(std::uint64_t bytes) {
  const double gib = static_cast<double>(bytes) / kGiB_bytes;
  const double unit = std::pow(10.0, std::floor(std::log10(gib)) - 2);
  return core::printed("%.3g", std::ceil(gib / unit) * unit);
}

}  // namespace

engine::GroupSize longest_group(const config::TrainConfig& config,
                                std::uint64_t prompt,
                                std::int64_t samples) {
  return {static_cast<std::int64_t>(prompt), samples, config.rollout.max_new_tokens};
}

bool engines_on_host(const config::TrainConfig& config) {
  return std::none_of(config.rollout.device.begin(), config.rollout.device.end(),
                      [](const config::Device& device) { return device.gpu; });
}

engine::CacheFit cache_fit_of(const config::TrainConfig& config,
                              const model::ModelSpec& spec,
                              const engine::GroupSize& group,
                              bool on_host) {
  return engine::cache_fit(spec, kernels::kv_dtype_of(forward_dtype(config), on_host),
                           engine_limits(config), group);
}

core::Result<void> check_cache(const config::TrainConfig& config,
                               const model::ModelSpec& spec,
                               const engine::GroupSize& group,
                               bool on_host) {
  const engine::CacheFit fit = cache_fit_of(config, spec, group, on_host);
  if (fit.fits()) return {};
  return core::fail(core::ErrorCode::kConfig,
                    core::printed("--rollout.kv_cache_gb %g (", config.rollout.kv_cache_gb) +
                        std::to_string(engine_limits(config).kv_cache_gb.bytes) +
                        " bytes) cannot hold the longest sample: a prompt of " +
                        std::to_string(group.prompt) + " tokens with --rollout.max_new_tokens " +
                        std::to_string(group.new_tokens) + " and " + std::to_string(group.samples) +
                        " samples of it needs " + std::to_string(fit.wanted_bytes()) +
                        " bytes for keys and values",
                    "give --rollout.kv_cache_gb " + gibibytes(fit.wanted_bytes()) +
                        " or more, or ask for shorter responses");
}

}  // namespace troupe::session
