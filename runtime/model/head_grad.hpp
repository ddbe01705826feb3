// Log-probs of chosen tokens and their gradient, over the head in chunks of rows: the logits of at
// most kHeadRows_max rows exist at a time (rows x vocabulary x 4 bytes), the backward pass makes
// them again.
//   logprob = s[target] - lse,   s = z / temperature,   z = head_in W^T,   entropy = lse - sum p s
// Scratch is prepared outside a region; the two passes are called by every member of the team.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

inline constexpr std::int64_t kHeadRows_max = 256;

// The targets of each head row, as lists.
struct RowTargets {
  void build(const TokenTargets& targets, std::int64_t rows);
  std::vector<std::int32_t> begin;   // [rows + 1] into `target`
  std::vector<std::int32_t> target;  // indices of the targets, by row
};

struct HeadScratch {
  core::Buffer<float> logits, block_max, block_sum, packed_rows;
  std::vector<float> inv_temperature;  // [rows of a chunk], all the same
  RowTargets row_targets;
  std::vector<ProductScratch> products;
  // Outside a region, before the passes over `rows` head rows. `backward` adds what only the
  // gradient needs.
  void prepare(const ModelSpec& spec,
               const TokenTargets& targets,
               std::int64_t rows,
               float temperature,
               int members,
               bool backward);
};

struct HeadCall {
  const PackedWeights& weights;
  const float* head_in = nullptr;  // [rows, hidden]
  std::int64_t rows = 0;
  const TokenTargets& targets;
  HeadScratch& scratch;      // prepared for these targets and rows
  float* lse = nullptr;      // [rows] written by the forward, read by the backward
  float* entropy = nullptr;  // [rows] of the rows' distributions, or null when not wanted
};

// logprobs[target] for every target; fills call.lse and call.entropy.
void head_logprobs(core::Team team, const HeadCall& call, float* logprobs);

// Gradients of the loss with respect to logprobs and entropies [targets] (null: none).
struct HeadGrad {
  const float* logprobs = nullptr;
  const float* entropies = nullptr;
  const ParamStore& master;
  ParamStore& grads;
  float* dhead_in = nullptr;  // [rows, hidden], written
};

void head_backward(core::Team team, const HeadCall& call, const HeadGrad& grad);

}  // namespace troupe::model
