// Partial sums and gradients over the vocabulary columns of one row of logits, in the order of
// kernels/reference/vocab.hpp.
#pragma once

#include "kernels/cpu/math.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

void vocab_stats(
    const float* logits, std::int64_t count, float inv_temperature, float* max, float* sum) {
  const Vec scale = Vec::all(inv_temperature);
  const Vec lowest = Vec::all(-kInfinity);
  Vec largest = lowest;
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    largest = larger(Vec::load(logits + i) * scale, largest);
  const Mask tail = Mask::first(count - i);
  if (i < count)
    largest = larger(select(tail, Vec::load(logits + i, tail) * scale, lowest), largest);
  *max = largest.max();
  const Vec shift = Vec::all(*max == -kInfinity ? 0.0f : *max);
  Vec total = Vec::zero();
  for_lanes(count, [&](std::int64_t at, auto mask) {
    total = total + keep(exp(load(logits + at, mask) * scale - shift), mask);
  });
  *sum = total.sum();
}

float vocab_weighted(const float* logits, std::int64_t count, float inv_temperature, float lse) {
  Vec total = Vec::zero();
  for_lanes(count, [&](std::int64_t i, auto mask) {
    const Vec s = load(logits + i, mask) * Vec::all(inv_temperature);
    const Vec p = exp(s - Vec::all(lse));
    const Vec share = select(equal(p, Vec::zero()), Vec::zero(), s);
    total = fma(keep(p, mask), keep(share, mask), total);
  });
  return total.sum();
}

void vocab_grad_row(float* logits,
                    std::int64_t count,
                    float inv_temperature,
                    float lse,
                    float grad_logprob,
                    float grad_entropy,
                    float entropy) {
  const Vec scale = Vec::all(inv_temperature);
  for_lanes(count, [&](std::int64_t i, auto mask) {
    const Vec centred = load(logits + i, mask) * scale - Vec::all(lse);
    const Vec p = exp(centred);
    const Vec spread = select(equal(p, Vec::zero()), Vec::zero(), centred + Vec::all(entropy));
    const Vec miss = Vec::all(grad_logprob) * (Vec::zero() - p);
    const Vec grad = fma(-(Vec::all(grad_entropy) * p), spread, miss);
    store(logits + i, grad * scale, mask);
  });
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
