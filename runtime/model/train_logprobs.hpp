// The result of TrainForward::logprobs. Kept apart from train_graph.hpp because it includes ATen;
// include it only where losses are computed.
#pragma once

#include "runtime/model/train_graph.hpp"

#include <ATen/ATen.h>

namespace troupe::model {

struct TokenLogprobs {
  at::Tensor logprobs;          // [targets] f32, with grad
  at::Tensor entropies;         // [targets] f32, with grad; undefined when not wanted
  at::Tensor divergences = {};  // [targets] f32, with grad; undefined without a teacher
};

}  // namespace troupe::model
