// The table rows of the losses of a pair. To add one, add a row here and a function in
// pair_losses.cpp. Compile-time constants: loss.cpp uses them as they are, choices.cpp keeps them
// without `formula`.
#pragma once

#include "runtime/learn/supervised/pair_losses.hpp"

#include <array>

namespace troupe::learn {

// The losses' functions (pair_losses.cpp).
at::Tensor sigmoid_loss(const RowTerms& terms);
at::Tensor hinge_loss(const RowTerms& terms);
at::Tensor ipo_loss(const RowTerms& terms);
at::Tensor robust_loss(const RowTerms& terms);
at::Tensor exo_pair_loss(const RowTerms& terms);
at::Tensor nca_pair_loss(const RowTerms& terms);
at::Tensor sppo_hard_loss(const RowTerms& terms);
at::Tensor aot_loss(const RowTerms& terms);
at::Tensor apo_zero_loss(const RowTerms& terms);
at::Tensor apo_down_loss(const RowTerms& terms);
at::Tensor discopop_loss(const RowTerms& terms);

consteval auto pair_loss_rows() {
  return std::array{
      PairLoss{.name = "sigmoid",
               .help = "dpo: -log s(b h); with label smoothing cdpo",
               .smoothing = Smoothing::kOptional,
               .length_mean = true,
               .formula = sigmoid_loss},
      PairLoss{.name = "hinge", .help = "slic: what b h lacks of 1", .formula = hinge_loss},
      PairLoss{.name = "ipo",
               .help = "square of h's distance to a fixed target",
               .length_mean = true,
               .formula = ipo_loss},
      PairLoss{.name = "robust",
               .help = "dpo, unbiased when a known share of labels is flipped",
               .smoothing = Smoothing::kNeeded,
               .formula = robust_loss},
      PairLoss{.name = "exo_pair",
               .help = "reverse KL to the smoothed labels",
               .smoothing = Smoothing::kNeeded,
               .formula = exo_pair_loss},
      PairLoss{.name = "nca_pair",
               .help = "each answer's reward by itself, as noise contrast",
               .formula = nca_pair_loss},
      PairLoss{.name = "sppo_hard",
               .help = "squares towards +1/2b and -1/2b, with hard labels",
               .formula = sppo_hard_loss},
      PairLoss{.name = "aot",
               .help = "sigmoid between sorted log-ratios of model and reference",
               .smoothing = Smoothing::kOptional,
               .step_wide = StepWide::kSorted,
               .formula = aot_loss},
      PairLoss{.name = "apo_zero",
               .help = "better answers up, worse ones down",
               .formula = apo_zero_loss},
      PairLoss{.name = "apo_down",
               .help = "both answers down, worse ones more",
               .formula = apo_down_loss},
      PairLoss{.name = "discopop",
               .help = "logistic and exponential loss, mixed by b h",
               .formula = discopop_loss},
  };
}

}  // namespace troupe::learn
