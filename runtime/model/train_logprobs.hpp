// The log-probs that TrainForward returns. Includes ATen; only for the few sources that compute
// losses.
#pragma once

#include "runtime/model/train_graph.hpp"

#include <ATen/ATen.h>

namespace troupe::model {

struct TokenLogprobs {
  at::Tensor logprobs;   // [targets] f32, with grad
  at::Tensor entropies;  // [targets] f32, with grad; undefined when not wanted
};

}  // namespace troupe::model
