// The language-model head in training: log-probs of target tokens, and the backward pass from them.
// Works in chunks of rows. The forward pass keeps the logits (rows x vocabulary x 4 bytes) of as
// many chunks as the caller allows. The backward pass computes the others again, in the memory of
// one chunk. Gradients of weights are chains that go on from chunk to chunk, so the size of a chunk
// changes no bit.
//   logprob = s[target] - lse,   s = z / temperature,   z = head_in W^T,   entropy = lse - sum p s
// Prepare the scratch outside parallel regions. Every member of the team calls the two passes,
// which work in the team's memory; `results` and `set_gradients` copy to and from the host.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/divergence.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

// Head rows of a chunk: on the host few enough that the logits of a block of the vocabulary stay in
// the cache. A device takes as many as `logits_max` has room for, up to the second figure: the
// gradient of its input has one thread for 64 numbers, and 256 rows leave most of a GPU idle.
inline constexpr std::int64_t kHeadRows_max = 256;
inline constexpr std::int64_t kDeviceHeadRows_max = 2048;

// The targets, grouped by head row.
struct RowTargets {
  void build(const TokenTargets& targets, std::int64_t rows);
  std::vector<std::int32_t> begin;   // [rows + 1] into `target`
  std::vector<std::int32_t> target;  // indices of the targets, by row
};

struct HeadRequest {
  const TokenTargets& targets;  // must outlive the passes
  std::int64_t rows = 0;        // head rows
  float temperature = 1;
  bool entropy = false;   // compute the entropy of each row's distribution too
  bool backward = false;  // a backward pass follows
  // How many floats the logits may take. The room for one chunk is taken in any case.
  std::int64_t logits_max = 0;
  const TeacherRows* teacher = nullptr;  // measure the divergence from it too
};

struct HeadScratch {
  core::Buffer<float> logits;  // of `places` chunks; chunks that are computed again share place 0
  std::int64_t chunk_rows = 0, chunks = 0, places = 0;
  bool kept = false;  // `logits` still holds logits of the forward pass, not gradients
  core::Buffer<float> block_max, block_sum, packed_rows;
  core::Buffer<float> lse, entropy, logprobs;  // [rows], [rows] if wanted, [targets]
  core::Buffer<float> dlogprobs, dentropies;   // [targets]
  bool has_dlogprobs = false, has_dentropies = false;
  float inverse = 1;                    // 1 / temperature
  core::Buffer<float> inv_temperature;  // the same value for every row of a chunk
  const TokenTargets* targets = nullptr;
  bool wants_entropy = false;
  HeadDivergence divergence;     // from the teacher, if there is one
  kernels::VocabTargets placed;  // the targets by row, in the team's memory
  std::vector<ProductScratch> products;
  // Call it outside parallel regions, before the passes.
  void prepare(core::TeamRunner& team, const ModelSpec& spec, const HeadRequest& request);
  // Call it outside parallel regions. Copies the log-probs by target and, unless that span is
  // empty, the entropies of the targets' distributions.
  void results(std::span<float> logprobs_out, std::span<float> entropies_out);
  // Sets the gradients of the loss with respect to log-probs and entropies, by target (null: none).
  void set_gradients(const float* of_logprobs, const float* of_entropies);
  // The divergences of the targets' rows, and whether the teacher agrees there; then the gradient
  // of the loss with respect to the divergences. By target; with a teacher.
  std::vector<DivergenceRow> divergences() const;
  void set_divergence_gradients(const float* of_divergences);
  // Where in `logits` a chunk's logits are (0 <= place < places), and whether they stay there until
  // the backward pass.
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

// Writes log-probs, log-sum-exps and entropies to the scratch.
void head_logprobs(core::Team team, const HeadCall& call);

// The weights and outputs of `head_backward`, which starts from the gradients in the scratch.
struct HeadGrad {
  const ParamStore& master;
  ParamStore& grads;
  float* dhead_in = nullptr;  // [rows, hidden], written
};

// Overwrites the kept logits with their gradients; the caller then sets scratch.kept = false.
void head_backward(core::Team team, const HeadCall& call, const HeadGrad& grad);

}  // namespace troupe::model
