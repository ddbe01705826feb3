#include "runtime/learn/rl/value_loss.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/advantage/advantage.hpp"
#include "runtime/learn/torch/tensors.hpp"

#include <limits>

namespace troupe::learn {
namespace {

double variance(std::span<const double> values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values)
    sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

}  // namespace

at::Tensor value_loss(double clip,
                      const ValueBatch& batch,
                      const at::Tensor& values,
                      ValueStats& stats) {
  const auto v = values.to(at::kDouble);
  TROUPE_CHECK(v.dim() == 1 && v.numel() == static_cast<std::int64_t>(batch.returns.size()) &&
                   batch.old.size() == batch.returns.size(),
               "one value, one old value and one return per token");
  const auto returns = tensor_of(batch.returns);
  auto squares = (v - returns).square();
  stats.tokens += v.numel();
  if (clip > 0) {
    const auto old = tensor_of(batch.old);
    const auto held = (old + (v - old).clamp(-clip, clip) - returns).square();
    stats.clipped += held.detach().gt(squares.detach()).sum().item<std::int64_t>();
    squares = at::max(squares, held);
  }
  return 0.5 * batch.weight * squares.sum();
}

double explained_variance(std::span<const double> values, std::span<const double> returns) {
  TROUPE_CHECK(values.size() == returns.size(), "one value per return");
  const double spread = returns.empty() ? 0 : variance(returns);
  if (spread == 0) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> errors;
  for (std::size_t i = 0; i < values.size(); ++i)
    errors.push_back(returns[i] - values[i]);
  return 1 - variance(errors) / spread;
}

}  // namespace troupe::learn
