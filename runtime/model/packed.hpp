// Weights in the form that the kernels read: panels of 16 columns, norms and biases as they are.
// Made by one function from a ParamStore, so engine and trainer compute with the same bits.
// Immutable once made and shared by pointer; `version` is the policy version that the panels hold.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::model {

struct PackedLayer {
  const float* input_norm = nullptr;  // [hidden]
  const float* qkv = nullptr;         // panels over q, k, v columns in this order (qkv_width)
  const float* qkv_bias = nullptr;    // [qkv_width] or null
  const float* o = nullptr;           // panels over hidden
  const float* post_norm = nullptr;
  const float* gate_up = nullptr;  // panels over gate columns, then up columns (2 ffn)
  const float* down = nullptr;     // panels over hidden
};

class PackedWeights {
 public:
  // Room for `spec`'s panels, not yet filled. ffn, q and kv widths need not be multiples of 16.
  explicit PackedWeights(const ModelSpec& spec);

  const ModelSpec& spec() const { return spec_; }
  core::Version version() const { return version_; }
  const PackedLayer& layer(std::int64_t i) const { return layers_[static_cast<std::size_t>(i)]; }
  const float* final_norm() const { return final_norm_; }
  const float* head() const { return head_; }  // panels over the vocabulary
  // Tables [context][head_dim / 2].
  const float* rope_cos() const { return rope_cos_; }
  const float* rope_sin() const { return rope_sin_; }
  // The embedding of `token` into out[hidden] (gathered from the head's panels when tied).
  void embed(std::int32_t token, float* out) const;

  // Fills all panels from `params`; every member of the team calls it. Barriers inside.
  void fill(core::Team team, const ParamStore& params, core::Version version);
  std::uint64_t bytes() const;

 private:
  ModelSpec spec_;
  core::Version version_ = 0;
  core::Buffer<float> data_;
  std::vector<PackedLayer> layers_;
  const float* final_norm_ = nullptr;
  const float* head_ = nullptr;
  const float* embedding_ = nullptr;  // row-major, only when untied
  const float* rope_cos_ = nullptr;
  const float* rope_sin_ = nullptr;
};

}  // namespace troupe::model
