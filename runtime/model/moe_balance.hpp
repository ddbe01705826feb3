// The load-balancing loss of a model with experts (Fedus et al. 2021, equations 4 to 6). As in
// transformers' load_balancing_loss_func, it is one mean over the tokens of all mixture-of-experts
// layers, not a mean of the layers' losses. With N = rows of the micro-batch times the number of
// such layers, and p_e the router's probability of expert e:
//   f_e = choices of expert e / N, P_e = sum of p_e / N, loss = experts * sum_e f_e P_e
// The loss is k, the experts per token, when all experts are used equally. No gradient goes through
// a choice, so
//   dloss / dp_e = experts * f_e / N in every row, and the same for all layers.
// Owned by a TrainTape, which adds each layer once during the forward pass. Sums are in double,
// over ascending rows, and members split the experts, so any team gets the same bits. Memory: 20
// bytes per expert.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/moe_routing.hpp"
#include "runtime/model/moe_spec.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

class LoadBalance {
 public:
  // Starts a micro-batch. `weight` scales the loss in the gradient; 0 turns it off.
  void start(const MoeSpec& spec, double weight);
  bool on() const { return weight_ != 0; }

  // Adds the rows of one layer, as route_rows left them. Every member of the team calls `add`,
  // after a barrier; one thread then calls `count` for the layer, outside the parallel region.
  void add(core::Team team, const MoeSpec& spec, const Routing& routing, std::int64_t rows);
  void count(std::int64_t rows) { rows_ += rows; }

  // Computes loss and slope. Call it after the last layer, outside parallel regions.
  void finish();

  double loss() const { return loss_; }  // without its weight; 0 when off
  // [experts] weight * dloss / dp_e, the same for every row; null when off.
  const float* slope() const { return on() ? slope_.data() : nullptr; }

 private:
  double weight_ = 0, loss_ = 0;
  std::int64_t rows_ = 0;            // N so far
  std::vector<double> choices_, p_;  // sums by expert
  std::vector<float> slope_;
};

}  // namespace troupe::model
