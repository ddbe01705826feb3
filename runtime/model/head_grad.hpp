// Log-probs of chosen tokens and their gradient, over the head in chunks of kHeadRows_max rows. The
// logits (rows x vocabulary x 4 bytes) of as many chunks as the caller has room for are kept from
// the forward to the backward pass, which makes the others again, in the memory of one chunk.
//   logprob = s[target] - lse,   s = z / temperature,   z = head_in W^T,   entropy = lse - sum p s
// Scratch is prepared outside a region; the two passes are called by every member of the team. All
// numbers are in the team's memory; `results` and `set_gradients` bring them from and to the host.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

inline constexpr std::int64_t kHeadRows_max = 256;

// The targets of each head row, as lists.
struct RowTargets {
  void build(const TokenTargets& targets, std::int64_t rows);
  std::vector<std::int32_t> begin;   // [rows + 1] into `target`
  std::vector<std::int32_t> target;  // indices of the targets, by row
};

struct HeadRequest {
  const TokenTargets& targets;  // stays until the passes are done
  std::int64_t rows = 0;        // head rows
  float temperature = 1;
  bool entropy = false;   // of the rows' distributions, too
  bool backward = false;  // a backward pass follows
  // Floats that logits may take for it; at least a chunk's are taken.
  std::int64_t logits_max = 0;
};

struct HeadScratch {
  core::Buffer<float> logits;  // chunk after chunk, those that are made again in the first place
  std::int64_t chunks = 0, places = 0;
  bool kept = false;  // the logits are those of the forward pass
  core::Buffer<float> block_max, block_sum, packed_rows;
  core::Buffer<float> lse, entropy, logprobs;  // by row, by row (or none), by target
  core::Buffer<float> dlogprobs, dentropies;   // by target
  bool has_dlogprobs = false, has_dentropies = false;
  float inverse = 1;                    // 1 / temperature
  core::Buffer<float> inv_temperature;  // the same for the rows of a chunk
  const TokenTargets* targets = nullptr;
  bool wants_entropy = false;
  kernels::VocabTargets placed;  // the targets by row, in the team's memory
  std::vector<ProductScratch> products;
  // Outside a region, before the passes.
  void prepare(core::TeamRunner& team, const ModelSpec& spec, const HeadRequest& request);
  // Outside a region. Log-probs by target; entropies of the targets' distributions too, unless
  // empty.
  void results(std::span<float> logprobs_out, std::span<float> entropies_out);
  // The gradients of the loss with respect to log-probs and entropies, by target (null: none).
  void set_gradients(const float* of_logprobs, const float* of_entropies);
  // Where the logits of a chunk are, and whether they stay there until the backward pass.
  std::int64_t place(std::int64_t chunk) const;
  bool stays(std::int64_t chunk) const { return chunks <= places || place(chunk) > 0; }

 private:
  RowTargets row_targets_;
  core::PlacedLists lists_;
  std::vector<float> row_entropy_, inverses_;
};

struct HeadCall {
  const PackedWeights& weights;
  const float* head_in = nullptr;  // [rows, hidden]
  std::int64_t rows = 0;
  HeadScratch& scratch;  // prepared for these rows
};

// Log-probs, log-sum-exps and entropies into the scratch.
void head_logprobs(core::Team team, const HeadCall& call);

// From the gradients of the scratch.
struct HeadGrad {
  const ParamStore& master;
  ParamStore& grads;
  float* dhead_in = nullptr;  // [rows, hidden], written
};

// Turns the kept logits into their gradients; the caller says so afterwards (scratch.kept = false).
void head_backward(core::Team team, const HeadCall& call, const HeadGrad& grad);

}  // namespace troupe::model
