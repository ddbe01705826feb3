// Log-probs of chosen tokens and their gradient, over the head in chunks of kHeadRows_max rows. The
// logits (rows x vocabulary x 4 bytes) of as many chunks as the caller has room for are kept from
// the forward to the backward pass, which makes the others again, in the memory of one chunk.
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
  core::Buffer<float> logits;  // chunk after chunk, those that are made again in the first place
  std::int64_t chunks = 0, places = 0;
  bool kept = false;  // the logits are those of the forward pass
  core::Buffer<float> block_max, block_sum, packed_rows;
  float inverse = 1;                   // 1 / temperature
  std::vector<float> inv_temperature;  // the same for the rows of a chunk
  RowTargets row_targets;
  std::vector<ProductScratch> products;
  // Outside a region, before the passes over `rows` head rows. `backward` adds what only the
  // gradient needs; then logits may take up to `logits_max` floats, but at least a chunk's.
  void prepare(const ModelSpec& spec,
               const TokenTargets& targets,
               std::int64_t rows,
               float temperature,
               int members,
               bool backward,
               std::int64_t logits_max = 0);
  // Where the logits of a chunk are, and whether they stay there until the backward pass.
  std::int64_t place(std::int64_t chunk) const;
  bool stays(std::int64_t chunk) const { return chunks <= places || place(chunk) > 0; }
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

// Turns the kept logits into their gradients; the caller says so afterwards (scratch.kept = false).
void head_backward(core::Team team, const HeadCall& call, const HeadGrad& grad);

}  // namespace troupe::model
