// The policy objectives as a table (docs/algorithms.md, "Policy objectives"). A row says all that
// the trainer, the configuration and the documentation know of an objective; the rows are in
// loss_rows.hpp. Immutable; any thread.
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

// The l_p of the ratio.
enum class Anchor {
  kStart,         // the policy at the update's start
  kBehaviour,     // the policy that sampled the token
  kInterpolated,  // between l_mu and sg(l), by how old the token is
};

struct Objective {
  std::string_view name, alias = {};
  std::string_view help;          // one line, for the configuration
  Anchor anchor = Anchor::kStart;
  bool clips = false;             // clips r, so that the clip can take a token's gradient
  bool sample_ratio = false;      // r is one number for all tokens of a sample
  bool behaviour_ratio = false;   // its ratio, or weight, is pi/mu
  bool pairs = false;             // learns from a group's best and worst sample; reads l_ref
  bool needs_group = false;       // goes with estimators that compare the samples of a prompt
  std::string_view reducer = {};  // goes with this one alone; empty: with all
  double AlgoSettings::*bound = nullptr;        // of its weight; null: correction_max
  void (*weigh)(SampleWeights& sample) = nullptr;  // its own detached weight; null: 1
  at::Tensor (*formula)(const LossTerms& terms) = nullptr;  // its loss; null without LibTorch

  // Weighs tokens of older policies itself, so that no correction may bring rho again.
  bool weighs_old_tokens() const { return behaviour_ratio || weigh != nullptr; }
  // Its gradient has a factor that tells old tokens from new ones.
  bool has_ratio() const { return clips || weighs_old_tokens() || pairs; }
  double bound_of(const AlgoSettings& algo) const;

  static std::span<const Objective> all();
};

}  // namespace troupe::learn
