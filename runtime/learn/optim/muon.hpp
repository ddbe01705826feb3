// Muon (Jordan et al. 2024): the matrices of a model move along the orthogonal part of their
// momentum; everything else is stepped by AdamW. Before a step, MuonDirections replaces the
// gradients of the matrices by their directions; the step itself is elementwise
// (element_optimizer.hpp). With ranks, matrix i is computed by rank i mod R, and all get it. Owned
// by a stepper, used on its thread.
//
// For a matrix with the gradient g, times the factor of clipping:
//   m = momentum m + (1 - momentum) g;  u = (1 - momentum) g + momentum m with Nesterov, else m
//   direction = sqrt(max(1, rows / columns)) orthogonal(u)
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/optim/orthogonal.hpp"
#include "runtime/learn/ranks/shard_mover.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

// Whether Muon steps a tensor as a matrix: it has two dimensions and is neither embedding nor head.
bool is_muon_matrix(const model::ParamLayout& layout, const model::ParamView& view);

class MuonDirections {
 public:
  // What a process has of gradients and momenta: all numbers (`mover` is null), or its blocks.
  // `group`: the ranks, or null. All outlive the object, except `trained`.
  MuonDirections(const MuonSettings& settings,
                 const model::ParamLayout& trained,
                 core::TeamRunner& team,
                 RankGroup* group,
                 ShardMover* mover);

  // Replaces the gradients of the matrices by their directions, and moves their momenta. All ranks
  // call it. Both are in the team's memory.
  core::Result<void> replace(float* grads, float* momenta, double grad_scale);

 private:
  struct MatrixPlace {
    std::int64_t offset = 0, rows = 0, columns = 0;
    std::int64_t count() const { return rows * columns; }
  };

  // The elements of a matrix that this process has.
  core::Range own(const MatrixPlace& matrix) const;
  void add_momentum(core::Range elements, float* grads, float* momenta, float grad_scale);
  void direct(float* u, const MatrixPlace& matrix);
  core::Result<void> replace_whole(float* grads);
  core::Result<void> replace_blocks(float* grads);
  // Turns of blocks that hold a matrix.
  core::Range turns_of(const MatrixPlace& matrix) const;

  const MuonSettings settings_;
  std::vector<MatrixPlace> matrices_;
  core::TeamRunner& team_;
  RankGroup* const group_;
  ShardMover* const mover_;
  Orthogonalizer orthogonalizer_;
  core::Buffer<float> window_, mine_, blocks_;
};

}  // namespace troupe::learn
