#include "runtime/learn/advantage/token_returns.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/loss/off_policy.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

// The recursion of gae and vtrace, from the last token to the first. A token's trace is its target
// minus V; in gae (all weights 1) it equals the advantage.
TokenReturns trace(std::span<const double> rewards,
                   std::span<const double> values,
                   std::span<const double> log_w,
                   const VtraceSettings& s) {
  const std::size_t count = rewards.size();
  TROUPE_CHECK(values.size() == count, "one value per token");
  TokenReturns result{std::vector<double>(count), std::vector<double>(count)};
  double value_next = 0, trace_next = 0;
  for (std::size_t t = count; t-- > 0;) {
    const double w = log_w.empty() ? 1.0 : bounded_exp(log_w[t]);
    const double step = rewards[t] + s.gamma * value_next - values[t];
    const double carried = s.gamma * s.lambda * trace_next;
    result.advantages[t] = step + carried;
    trace_next = std::min(s.rho_max, w) * step + std::min(s.c_max, w) * carried;
    value_next = values[t];
    result.targets[t] = trace_next + values[t];
  }
  return result;
}

}  // namespace

TokenReturns gae(std::span<const double> rewards,
                 std::span<const double> values,
                 double gamma,
                 double lambda) {
  return trace(rewards, values, {}, {gamma, lambda, 1, 1});
}

TokenReturns vtrace(std::span<const double> rewards,
                    std::span<const double> values,
                    std::span<const double> log_w,
                    const VtraceSettings& settings) {
  TROUPE_CHECK(log_w.size() == rewards.size(), "one weight per token");
  return trace(rewards, values, log_w, settings);
}

std::vector<double> rewards_to_go(std::span<const double> rewards, double gamma) {
  std::vector<double> result(rewards.size());
  double next = 0;
  for (std::size_t t = rewards.size(); t-- > 0;) {
    next = rewards[t] + gamma * next;
    result[t] = next;
  }
  return result;
}

}  // namespace troupe::learn
