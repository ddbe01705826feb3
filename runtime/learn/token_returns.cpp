#include "runtime/learn/token_returns.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/off_policy.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

// Indices of the policy's tokens, last first.
std::vector<std::size_t> backwards(std::size_t count, std::span<const std::uint8_t> policy) {
  TROUPE_CHECK(policy.empty() || policy.size() == count, "one mask entry per token");
  std::vector<std::size_t> order;
  order.reserve(count);
  for (std::size_t i = count; i-- > 0;) {
    if (policy.empty() || policy[i] != 0) order.push_back(i);
  }
  return order;
}

// One recursion for both: the trace is e = target - V, and gae's advantage is its own trace.
TokenReturns trace(std::span<const double> rewards,
                   std::span<const double> values,
                   std::span<const double> log_w,
                   std::span<const std::uint8_t> policy,
                   const VtraceSettings& s) {
  const std::size_t count = rewards.size();
  TROUPE_CHECK(values.size() == count, "one value per token");
  TokenReturns result{std::vector<double>(count), std::vector<double>(count)};
  double value_next = 0, trace_next = 0;
  for (const std::size_t t : backwards(count, policy)) {
    const double w =
        log_w.empty() ? 1.0 : std::exp(std::clamp(log_w[t], -kLogRatioMax, kLogRatioMax));
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
                 std::span<const std::uint8_t> policy,
                 double gamma,
                 double lambda) {
  return trace(rewards, values, {}, policy, {gamma, lambda, 1, 1});
}

TokenReturns vtrace(std::span<const double> rewards,
                    std::span<const double> values,
                    std::span<const double> log_w,
                    std::span<const std::uint8_t> policy,
                    const VtraceSettings& settings) {
  TROUPE_CHECK(log_w.size() == rewards.size(), "one weight per token");
  return trace(rewards, values, log_w, policy, settings);
}

std::vector<double> rewards_to_go(std::span<const double> rewards,
                                  std::span<const std::uint8_t> policy,
                                  double gamma) {
  std::vector<double> result(rewards.size());
  double next = 0;
  for (const std::size_t t : backwards(rewards.size(), policy)) {
    next = rewards[t] + gamma * next;
    result[t] = next;
  }
  return result;
}

}  // namespace troupe::learn
