// Converts between vectors of doubles and LibTorch tensors. Include it only in sources of
// runtime/learn that call LibTorch, and in their tests.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// An f64 tensor [values]. Copies, so that a graph owns what it keeps for the backward pass.
inline at::Tensor tensor_of(std::span<const double> values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

// All elements as doubles, detached from the graph.
inline std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
  const double* data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

}  // namespace troupe::learn
