// AdamW, SGD, sums of squares (for gradient norms) and the check for non-finite numbers, in the
// order of kernels/reference/optimizer.hpp. Also the probes that measure the machine's limits at
// this level.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

void adamw(const AdamW& a, Range elements) {
  const Vec decay = Vec::all(-(a.lr * a.weight_decay));
  for_lanes(elements.size(), [&](std::int64_t offset, auto mask) {
    const std::int64_t i = elements.begin + offset;
    const Vec grad = load(a.grad + i, mask) * Vec::all(a.grad_scale);
    const Vec m = fma(Vec::all(a.beta1), load(a.m + i, mask), Vec::all(1.0f - a.beta1) * grad);
    const Vec v =
        fma(Vec::all(a.beta2), load(a.v + i, mask), (Vec::all(1.0f - a.beta2) * grad) * grad);
    const Vec denominator = sqrt(v / Vec::all(a.correction2)) + Vec::all(a.eps);
    const Vec step = (Vec::all(a.lr) * (m / Vec::all(a.correction1))) / denominator;
    const Vec param = load(a.param + i, mask);
    store(a.m + i, m, mask);
    store(a.v + i, v, mask);
    store(a.param + i, fma(decay, param, param) - step, mask);
  });
}

void sgd(const Sgd& s, Range elements) {
  for_lanes(elements.size(), [&](std::int64_t offset, auto mask) {
    const std::int64_t i = elements.begin + offset;
    const Vec param = load(s.param + i, mask);
    const Vec grad =
        fma(Vec::all(s.weight_decay), param, load(s.grad + i, mask) * Vec::all(s.grad_scale));
    Vec m = grad;
    if (s.m != nullptr) {
      m = fma(Vec::all(s.momentum), load(s.m + i, mask), grad);
      store(s.m + i, m, mask);
    }
    store(s.param + i, fma(Vec::all(-s.lr), m, param), mask);
  });
}

double sum_squares_of(const float* x, std::int64_t count) {
  WideSum squares;
  for_lanes(count, [&](std::int64_t i, auto mask) { squares.add_squares(load(x + i, mask)); });
  return squares.sum();
}

bool all_finite(const float* x, std::int64_t count) {
  bool finite = true;
  for_lanes(count,
            [&](std::int64_t i, auto mask) { finite = finite && all_finite(load(x + i, mask)); });
  return finite;
}

double fma_probe(std::int64_t rounds, float* sink) {
  constexpr int kChains = kProbeChains;
  Vec chain[kChains];
  for (int c = 0; c < kChains; ++c)
    chain[c] = Vec::all(*sink + static_cast<float>(c));
  const Vec x = Vec::all(0.5f);
  const Vec y = Vec::all(1.0f);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c)
      chain[c] = fma(chain[c], x, y);
  }
  Vec total = Vec::zero();
  for (int c = 0; c < kChains; ++c)
    total = total + chain[c];
  *sink = total.sum();
  return 2.0 * 16.0 * kChains * static_cast<double>(rounds);
}

// Eight parallel streams, because one alone does not saturate memory.
float read_probe(const float* x, std::int64_t count) {
  constexpr std::int64_t kStreams = 8;
  constexpr std::int64_t kPage = 4096;  // floats between streams
  Vec total[kStreams];
  for (std::int64_t s = 0; s < kStreams; ++s)
    total[s] = Vec::zero();
  std::int64_t i = 0;
  for (; i + kStreams * kPage <= count; i += kStreams * kPage)
    for (std::int64_t j = i; j < i + kPage; j += 16)
#pragma GCC unroll 16
      for (std::int64_t s = 0; s < kStreams; ++s) {
        __builtin_prefetch(x + j + s * kPage + 384);
        total[s] = total[s] + Vec::load(x + j + s * kPage);
      }
  for (; i < count; i += 16)
    total[0] = total[0] + Vec::load(x + i, Mask::first(count - i));
  Vec all = total[0];
  for (std::int64_t s = 1; s < kStreams; ++s)
    all = all + total[s];
  return all.sum();
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
