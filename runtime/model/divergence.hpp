// How far the model's distribution over the next token is from a teacher's, at each row of the
// language-model head, and the gradient of that. With p and q the softmax of the model's and of the
// teacher's logits / temperature, the generalised Jensen-Shannon divergence of GKD (Agarwal et al.
// 2024, eq. 1):
//   beta 0: KL(q || p);   beta 1: KL(p || q);
//   else:   beta KL(q || m) + (1 - beta) KL(p || m),   m = beta q + (1 - beta) p
// Works on the head's chunks of rows (head_grad.hpp), so the teacher's logits take the memory of
// one chunk; the backward pass computes them again. Sums over the vocabulary run in f64, in
// ascending order. Host memory only.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

// The teacher of the rows of one pass. Weights and `head_in` stay unchanged until its end.
struct TeacherRows {
  const PackedWeights* weights = nullptr;  // of the model's vocabulary
  const float* head_in = nullptr;          // [head rows, the teacher's hidden size]
  float beta = 0, temperature = 1;
};

// One head row, with the logits z of the model and t of the teacher.
struct DivergenceRow {
  double divergence = 0;
  // What the gradient takes off log p - log q or log p - log m; 0 where beta is 0.
  float mean = 0;
  bool agrees = false;  // whether both have the greatest logit at the same (first) token
};

// The log-sum-exps of one row's logits / temperature.
struct RowSums {
  float model = 0, teacher = 0;
};

// `z`, `t`: [vocab]. A pure function.
DivergenceRow divergence_of(std::span<const float> z,
                            std::span<const float> t,
                            const RowSums& lse,
                            const TeacherRows& teacher);

// Overwrites t, a piece of a row's logits, with `scale` times the gradient of the divergence by z.
void divergence_gradient(std::span<const float> z,
                         std::span<float> t,
                         const RowSums& lse,
                         float mean,
                         float scale,
                         const TeacherRows& teacher);

class HeadDivergence {
 public:
  // Some head rows and their logits.
  struct Chunk {
    std::int64_t begin = 0, rows = 0;
    const float* logits = nullptr;
    std::int64_t ld = 0;
  };

  bool on() const { return teacher_.weights != nullptr; }
  // Call it outside parallel regions, before the passes; without a teacher it turns this off.
  void prepare(core::TeamRunner& team,
               const ModelSpec& spec,
               const TeacherRows* teacher,
               std::int64_t rows,
               std::int64_t chunk_rows);

  // Measures the rows of a chunk whose logits are there. Every member of the team calls it.
  void measure(core::Team team, const Chunk& chunk);
  // Sets the gradient of the loss by a row's divergence, [head rows]; outside parallel regions.
  void set_gradients(std::vector<float> by_row) { dloss_ = std::move(by_row); }
  // Computes the gradient of blocks [first, last) of kVocabBlock columns from the logits there;
  // `add` adds it to what has taken their place. One member calls both for its blocks.
  void gradient(const Chunk& chunk, core::Range blocks);
  void add(const Chunk& chunk, core::Range blocks, float* dlogits);

  const std::vector<DivergenceRow>& rows() const { return rows_; }

 private:
  TeacherRows teacher_;
  const ModelSpec* spec_ = nullptr;
  std::vector<DivergenceRow> rows_;              // by head row
  std::vector<float> dloss_;                     // by head row
  core::Buffer<float> logits_;                   // the teacher's, of one chunk; then gradients
  core::Buffer<float> block_max_, block_sum_;    // of one chunk
  core::Buffer<float> lse_model_, lse_teacher_;  // by head row
  core::Buffer<float> inv_temperature_;          // the same value for every row of a chunk
};

}  // namespace troupe::model
