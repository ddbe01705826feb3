// AdamW, SGD, sums of squares (for gradient norms) and the check for non-finite numbers, one
// element at a time. Also the probes that measure the machine, in plain C++.
#pragma once

#include "kernels/reference/lanes.hpp"
#include "kernels/shapes.hpp"

#include <cmath>
#include <limits>

namespace troupe::kernels::reference {
namespace {

void adamw(const AdamW& a, Range elements) {
  const float decay = a.lr * a.weight_decay;
  for (std::int64_t i = elements.begin; i < elements.end; ++i) {
    const float grad = a.grad[i] * a.grad_scale;
    const float m = std::fma(a.beta1, a.m[i], (1.0f - a.beta1) * grad);
    const float v = std::fma(a.beta2, a.v[i], ((1.0f - a.beta2) * grad) * grad);
    const float denominator = std::sqrt(v / a.correction2) + a.eps;
    const float step = (a.lr * (m / a.correction1)) / denominator;
    const float decayed = std::fma(-decay, a.param[i], a.param[i]);
    a.m[i] = m;
    a.v[i] = v;
    a.param[i] = decayed - step;
  }
}

void sgd(const Sgd& s, Range elements) {
  for (std::int64_t i = elements.begin; i < elements.end; ++i) {
    const float grad = std::fma(s.weight_decay, s.param[i], s.grad[i] * s.grad_scale);
    const float m = s.m != nullptr ? std::fma(s.momentum, s.m[i], grad) : grad;
    if (s.m != nullptr) s.m[i] = m;
    s.param[i] = std::fma(-s.lr, m, s.param[i]);
  }
}

double sum_squares_of(const float* x, std::int64_t count) {
  LaneSum<double> squares;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(x[i]);
    squares[i] = squares[i] + value * value;  // the square of an f32 is exact in double
  }
  return squares.total();
}

bool all_finite(const float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!(std::fabs(x[i]) <= std::numeric_limits<float>::max())) return false;
  return true;
}

double fma_probe(std::int64_t rounds, float* sink) {
  float chain = *sink;
  for (std::int64_t i = 0; i < rounds; ++i)
    chain = std::fma(chain, 0.5f, 1.0f);
  *sink = chain;
  return 2.0 * static_cast<double>(rounds);
}

float read_probe(const float* x, std::int64_t count) {
  LaneSum<float> total;
  for (std::int64_t i = 0; i < count; ++i)
    total[i] = total[i] + x[i];
  return total.total();
}

}  // namespace
}  // namespace troupe::kernels::reference
