// Attention and its gradient in double, dense and straight from the formulas: what the kernels are
// held against. One query row and head at a time over an AttentionCase.
#pragma once

#include "tests/unit/kernels/attention_case.hpp"

namespace troupe::kernels::test {

struct DenseRow {
  std::int64_t row = 0, head = 0, kv_head = 0;
  std::int64_t from = 0, keys = 0;  // the row sees [from, keys)
  std::vector<double> p;            // weights of these keys
  std::vector<double> slope;        // of the soft cap: 1 - tanh^2, or 1
  std::vector<double> out;
  double lse = 0.0;
};

inline DenseRow dense_row(const AttentionCase& c,
                          const Segment& segment,
                          std::int64_t i,
                          std::int64_t head) {
  DenseRow r;
  const std::int64_t dim = c.shape.head_dim;
  r.row = segment.first_row + i;
  r.head = head;
  r.kv_head = head / (c.shape.heads / c.shape.kv_heads);
  r.keys = segment.first_position + i + 1;
  if (c.variant.window > 0) r.from = std::max<std::int64_t>(0, r.keys - c.variant.window);
  r.out.assign(static_cast<std::size_t>(dim), 0.0);
  const auto cap = static_cast<double>(c.variant.softcap);
  double total = 0.0;
  for (std::int64_t key = r.from; key < r.keys; ++key) {
    double score = 0.0;
    for (std::int64_t d = 0; d < dim; ++d)
      score += static_cast<double>(c.q[r.row * c.ldq() + head * dim + d]) *
               static_cast<double>(c.k_pool[c.k_at(segment, key, r.kv_head, d)]);
    score /= std::sqrt(static_cast<double>(dim));
    const double t = cap > 0.0 ? std::tanh(score / cap) : 0.0;
    r.slope.push_back(1.0 - t * t);
    r.p.push_back(std::exp(cap > 0.0 ? cap * t : score));
    total += r.p.back();
  }
  for (std::int64_t key = r.from; key < r.keys; ++key) {
    double& p = r.p[static_cast<std::size_t>(key - r.from)];
    p /= total;
    for (std::int64_t d = 0; d < dim; ++d)
      r.out[static_cast<std::size_t>(d)] +=
          p * static_cast<double>(c.v_pool[c.v_at(segment, key, r.kv_head, d)]);
  }
  r.lse = std::log(total);
  return r;
}

// Calls f(segment, row) for every query row and head of the case.
template <class Function>
void each_dense_row(const AttentionCase& c, Function&& f) {
  for (const Segment& segment : c.segments)
    for (std::int64_t i = 0; i < segment.rows; ++i)
      for (std::int64_t head = 0; head < c.shape.heads; ++head)
        f(segment, dense_row(c, segment, i, head));
}

// sum of dout * out over all rows: the loss whose gradients attention_backward gives.
inline double dense_loss(const AttentionCase& c, const Guarded& dout) {
  double loss = 0.0;
  each_dense_row(c, [&](const Segment&, const DenseRow& r) {
    for (std::int64_t d = 0; d < c.shape.head_dim; ++d)
      loss += r.out[static_cast<std::size_t>(d)] *
              static_cast<double>(dout[r.row * c.ldo() + r.head * c.shape.head_dim + d]);
  });
  return loss;
}

// The gradients by the chain rule, in the layouts of the kernel; dk and dv start from 0.25.
struct DenseGradients {
  DenseGradients(const AttentionCase& c, const Guarded& dout)
      : dq(static_cast<std::size_t>(c.rows * c.ldq()), 0.0),
        dk(static_cast<std::size_t>(c.k_pool.size()), 0.25),
        dv(static_cast<std::size_t>(c.v_pool.size()), 0.25) {
    each_dense_row(c, [&](const Segment& segment, const DenseRow& r) { add(c, dout, segment, r); });
  }

  void add(const AttentionCase& c, const Guarded& dout, const Segment& segment, const DenseRow& r) {
    const std::int64_t dim = c.shape.head_dim;
    const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
    const float* grad = dout.data() + r.row * c.ldo() + r.head * dim;
    const std::int64_t q_at = r.row * c.ldq() + r.head * dim;
    double mean = 0.0;
    for (std::int64_t d = 0; d < dim; ++d)
      mean += static_cast<double>(grad[d]) * r.out[static_cast<std::size_t>(d)];
    for (std::int64_t key = r.from; key < r.keys; ++key) {
      const auto at = static_cast<std::size_t>(key - r.from);
      double dp = 0.0;
      for (std::int64_t d = 0; d < dim; ++d)
        dp += static_cast<double>(grad[d]) *
              static_cast<double>(c.v_pool[c.v_at(segment, key, r.kv_head, d)]);
      const double ds = r.p[at] * (dp - mean) * r.slope[at] * scale;
      for (std::int64_t d = 0; d < dim; ++d) {
        const auto k = static_cast<std::size_t>(c.k_at(segment, key, r.kv_head, d));
        dq[static_cast<std::size_t>(q_at + d)] +=
            ds * static_cast<double>(c.k_pool[c.k_at(segment, key, r.kv_head, d)]);
        dk[k] += ds * static_cast<double>(c.q[q_at + d]);
        dv[static_cast<std::size_t>(c.v_at(segment, key, r.kv_head, d))] +=
            r.p[at] * static_cast<double>(grad[d]);
      }
    }
  }
  std::vector<double> dq, dk, dv;
};

}  // namespace troupe::kernels::test
