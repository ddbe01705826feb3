// The table of losses of a pair of answers against a reference, which `dpo.loss` names
// (docs/algorithms.md, "Losses of a pair"). The methods dpo, ipo and cdpo are presets of it. The
// rows are in pair_loss_rows.hpp. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>

namespace at {
class Tensor;
}

namespace troupe::learn {

struct RowTerms;

// What the loss of a row reads of the other rows of its step. The trainer computes it before the
// first micro-batch, from gathered log-probs, so ranks and packing do not change it.
enum class StepWide {
  kNothing,
  kMismatchedKl,  // kto: mean of g over mismatched pairs
  kRunningMean,   // bco: mean of g over all rows of the run so far
  kSorted,        // aot: log-ratios of model and reference, sorted
};

// Whether a loss reads dpo.label_smoothing.
enum class Smoothing { kNone, kOptional, kNeeded };

struct PairLoss {
  std::string_view name, alias = {};
  std::string_view help;  // one line, for the configuration
  Smoothing smoothing = Smoothing::kNone;
  bool length_mean = false;  // may take means over tokens (dpo.length_mean)
  StepWide step_wide = StepWide::kNothing;
  // The losses of the data rows, [rows]; null without LibTorch.
  at::Tensor (*formula)(const RowTerms& terms) = nullptr;

  static std::span<const PairLoss> all();
};

}  // namespace troupe::learn
