// The load-balancing loss of a model with experts (Fedus et al. 2021, equations 4 to 6, in the form
// of transformers' load_balancing_loss_func: one mean over the tokens of all layers of experts, no
// mean of layers' losses). Over the N rows of a micro-batch times its layers of experts
//   f_e = choices of expert e / N, P_e = sum of p_e / N, loss = experts * sum_e f_e P_e
// which is k where all experts are equally used. No gradient goes through a choice, so
//   dloss / dp_e = experts * f_e / N in every row, and the same for all layers.
// Owned by the tape, which adds each layer once as the forward passes it. Sums are in double, rows
// ascending, split by expert: the same bits for any team. Bound: 20 bytes an expert.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/moe_routing.hpp"
#include "runtime/model/moe_spec.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

class LoadBalance {
 public:
  // A micro-batch begins. `weight` is what the loss counts for in the gradient; 0: nothing is done.
  void start(const MoeSpec& spec, double weight);
  bool on() const { return weight_ != 0; }

  // The rows of one layer of experts as route_rows left them: `add` by every member of the team,
  // after a barrier; `count` once.
  void add(core::Team team, const MoeSpec& spec, const Routing& routing, std::int64_t rows);
  void count(std::int64_t rows) { rows_ += rows; }

  // After the last layer, outside of parallel regions.
  void finish();

  double loss() const { return loss_; }  // without its weight; 0 when off
  // [experts] weight * dloss / dp_e of any row; null when off.
  const float* slope() const { return on() ? slope_.data() : nullptr; }

 private:
  double weight_ = 0, loss_ = 0;
  std::int64_t rows_ = 0;            // N so far
  std::vector<double> choices_, p_;  // sums by expert
  std::vector<float> slope_;
};

}  // namespace troupe::model
