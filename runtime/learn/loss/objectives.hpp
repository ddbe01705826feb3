// The table of policy objectives (docs/algorithms.md, "Policy objectives"). A row holds everything
// that the trainer, the configuration and the documentation know about an objective; the rows are
// in loss_rows.hpp. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace at {
class Tensor;
}

namespace troupe::learn {

struct AlgoSettings;
struct LossTerms;
struct SampleWeights;

// Which log-prob is l_p, the denominator of the ratio.
enum class Anchor {
  kStart,         // the policy at the update's start
  kBehaviour,     // the policy that sampled the token
  kInterpolated,  // between l_mu and sg(l), by how old the token is
};

struct Objective {
  std::string_view name, alias = {};
  std::string_view help;  // one line, for the configuration
  Anchor anchor = Anchor::kStart;
  bool clips = false;             // clips r; a token beyond the clip has no gradient
  bool sample_ratio = false;      // r is one number for all tokens of a sample
  bool behaviour_ratio = false;   // its ratio, or weight, is pi/mu
  bool pairs = false;             // learns from a group's best and worst sample; reads l_ref
  bool needs_group = false;       // needs an estimator that compares the samples of a prompt
  std::string_view reducer = {};  // the only reducer that it allows; empty: any
  double AlgoSettings::*bound = nullptr;           // bound of its weight; null: correction_max
  void (*weigh)(SampleWeights& sample) = nullptr;  // its own detached weight; null: 1
  at::Tensor (*formula)(const LossTerms& terms) = nullptr;  // its loss; null without LibTorch

  // True if it weighs tokens of older policies itself, so a correction that multiplies by rho is
  // refused.
  bool weighs_old_tokens() const { return behaviour_ratio || weigh != nullptr; }
  // True if its gradient has a factor besides A: a ratio, a weight, or that of a pair's comparison.
  bool has_ratio() const { return clips || weighs_old_tokens() || pairs; }
  double bound_of(const AlgoSettings& algo) const;

  static std::span<const Objective> all();
};

}  // namespace troupe::learn
