#include "runtime/learn/loss/corrections.hpp"

#include "runtime/learn/loss/off_policy.hpp"

#include <algorithm>
#include <array>

namespace troupe::learn {
namespace {

template <class Factor>
void each_token(SampleWeights& s, Factor factor) {
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t)
    s.multiply(t, factor(t), s.rho(t));
}

void keep_or_drop(SampleWeights& s, bool keep) {
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t)
    s.multiply(t, keep ? 1 : 0, 1);
}

void tis(SampleWeights& s) {
  each_token(s, [&](std::size_t t) { return std::min(s.rho(t), s.algo.correction.high); });
}

void seq_tis(SampleWeights& s) {
  const double product = bounded_exp(s.sum_of_logs(s.weighed()));
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t)
    s.multiply(t, std::min(product, s.algo.correction.high), product);
}

void mis(SampleWeights& s) {
  each_token(s, [&](std::size_t t) { return s.rho(t) > s.algo.correction.high ? 0 : s.rho(t); });
}

void icepop(SampleWeights& s) {
  each_token(s, [&](std::size_t t) {
    const double rho = s.rho(t);
    return rho < s.algo.correction.low || rho > s.algo.correction.high ? 0 : rho;
  });
}

void geo_rs(SampleWeights& s) {
  const double mean = bounded_exp(s.sum_of_logs(s.weighed()) / s.tokens.size());
  keep_or_drop(s, !(mean < s.algo.correction.low || mean > s.algo.correction.high));
}

void m2po(SampleWeights& s) {
  if (s.batch.keep.empty()) return;
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t)
    s.multiply(t, s.batch.keep[t], 1);
}

void opsm(SampleWeights& s) {
  const bool far = -s.sum_of_logs(s.l) / s.tokens.size() > s.algo.correction.high;
  for (std::size_t t = s.tokens.begin; t < s.tokens.end; ++t)
    s.multiply(t, far && s.batch.advantage[t] < 0 ? 0 : 1, 1);
}

constexpr std::array kCorrections = {
    Correction{.name = "none", .help = "tokens of older policies count as all others"},
    Correction{.name = "tis", .help = "rho, at most high", .carries_rho = true, .weigh = tis},
    Correction{.name = "seq_tis",
               .help = "the product of rho over the sample, at most high",
               .carries_rho = true,
               .weigh = seq_tis},
    Correction{.name = "mis",
               .help = "rho, tokens above high left out",
               .carries_rho = true,
               .weigh = mis},
    Correction{.name = "icepop",
               .help = "rho, tokens outside [low, high] left out",
               .carries_rho = true,
               .has_range = true,
               .weigh = icepop},
    Correction{.name = "geo_rs",
               .alias = "seq-mask-tis",
               .help = "samples whose geometric mean of rho is outside [low, high] left out",
               .has_range = true,
               .weigh = geo_rs},
    Correction{.name = "m2po",
               .help = "tokens of largest log(rho)^2 left out until the mean of the others is "
                       "at most high",
               .masks_update = true,
               .weigh = m2po},
    Correction{.name = "opsm",
               .help = "bad samples that the policy left by more than high left out",
               .weigh = opsm},
};

}  // namespace

std::span<const Correction> Correction::all() {
  return kCorrections;
}

}  // namespace troupe::learn
