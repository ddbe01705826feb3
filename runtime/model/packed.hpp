// Weights in the form that the kernels read: panels of 16 columns, norms and biases as they are.
// Made by one function from a ParamStore, so engine and trainer compute with the same bits.
// Immutable once made and shared by pointer; `version` is the policy version that the panels hold.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::model {

// The two products of a feed-forward network: an expert's.
struct PackedExpert {
  kernels::Panels gate_up;  // panels over gate columns, then up columns (2 ffn)
  kernels::Panels down;     // panels over hidden
};

// A layer of experts; its PackedLayer has no gate_up and down.
struct PackedMoe {
  const float* router = nullptr;  // f32 panels over the experts, then the shared expert's gate
  std::vector<PackedExpert> experts;
  PackedExpert shared;
};

// The weights of one layer; null where the family has none. Norms hold the factors that a row is
// multiplied by: 1 + weight in families whose norms count from 1.
struct PackedLayer {
  const float* input_norm = nullptr;  // [hidden]
  kernels::Panels qkv;                // panels over q, k, v columns in this order (qkv_width)
  const float* qkv_bias = nullptr;    // [qkv_width]
  const float* q_norm = nullptr;      // [head_dim], of every head
  const float* k_norm = nullptr;
  kernels::Panels o;                          // panels over hidden
  const float* o_bias = nullptr;              // [hidden]
  const float* attention_out_norm = nullptr;  // [hidden], before the residual
  const float* ffn_norm = nullptr;            // [hidden]
  kernels::Panels gate_up;                    // panels over gate columns, then up columns (2 ffn)
  const float* gate_up_bias = nullptr;        // [2 ffn]
  kernels::Panels down;                       // panels over hidden
  const float* down_bias = nullptr;           // [hidden]
  PackedMoe moe;                              // in place of gate_up and down
  const float* ffn_out_norm = nullptr;        // [hidden], before the residual
  const float* rope_cos = nullptr;            // [context][rotary / 2], shared by layers
  const float* rope_sin = nullptr;
};

class PackedWeights {
 public:
  // Room for `spec`'s panels, not yet filled. ffn, q and kv widths need not be multiples of 16.
  // `dtype` is how matrices and head are stored. Norms, biases and an embedding that is not tied
  // stay f32: of an embedding a step reads a row a token, so its width costs memory but no time.
  // `memory`: of the team that computes with them.
  explicit PackedWeights(const ModelSpec& spec,
                         kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                         core::Memory& memory = core::host_memory());

  const ModelSpec& spec() const { return spec_; }
  kernels::PanelDtype dtype() const { return dtype_; }
  core::Memory& memory() const { return data_.memory(); }
  core::Version version() const { return version_; }
  const PackedLayer& layer(std::int64_t i) const { return layers_[static_cast<std::size_t>(i)]; }
  const float* final_norm() const { return final_norm_; }
  kernels::Panels head() const { return head_; }  // panels over the vocabulary, or over one column
  // The scaled embeddings of tokens[begin, end) into those rows of x [rows, hidden]: gathered from
  // the head's panels when tied, so rounded as these are.
  void embed(const std::int32_t* tokens, std::int64_t begin, std::int64_t end, float* x) const;

  // Fills all panels from `params`, in the same memory or on the host; every member of the team
  // calls it. Barriers inside.
  void fill(core::Team team, const ParamStore& params, core::Version version);

  // The same in pieces, to pack between other work (weight_packer.hpp): each unit once,
  // in any order, by any member of the team, then the version. `flat` is a buffer in the order of
  // ParamLayout: of the host or, with `here`, in the memory of these panels.
  std::int64_t fill_units() const { return units_; }
  void fill_unit(std::int64_t unit, const float* flat, bool here = false);
  void set_version(core::Version version) { version_ = version; }
  // Elements of the flat buffer that the panels are made from.
  std::int64_t flat_size() const { return flat_size_; }
  // Brings all pages of the panels into memory, so that the first fill does not.
  void touch();
  std::uint64_t bytes() const;

 private:
  // Rows [n][k] of the flat buffer that become panels, or numbers that are copied as they are.
  struct Piece {
    kernels::PanelRoom out;
    std::int64_t flat = 0;        // offset of the first element in the flat buffer
    std::int64_t n = 0, k = 0;    // copied pieces have rows of kCopyRow elements and no panels
    std::int64_t unit_rows = 0;   // rows of a unit; whole panels
    std::int64_t first_unit = 0;  // number of the first unit
    bool panels = false;
    bool plus_one = false;  // 1 + the number is stored
  };
  void fill_tables(const RopeSpec& rope, const float* cos, const float* sin);
  // Rows [begin, end) of a piece from where they stand in this object's memory.
  void fill_rows(const Piece& piece, std::int64_t begin, std::int64_t end, const float* from);
  const Piece& piece_of(std::int64_t unit) const;
  void plan_fill();
  void plan_experts(const PackedMoe& packed, const MoeOffsets& at);
  void add_panels(const kernels::Panels& out, std::int64_t flat, std::int64_t n, std::int64_t k);
  // Nothing when there is no such tensor.
  void add_copy(const float* out, std::int64_t flat, std::int64_t count, bool plus_one = false);

  ModelSpec spec_;
  kernels::PanelDtype dtype_;
  core::Version version_ = 0;
  core::Buffer<float> data_;
  core::Buffer<float> ones_;     // where a family counts norms from 1
  core::Buffer<float> staging_;  // a unit of the host's on its way to a device's panels
  std::vector<PackedLayer> layers_;
  const float* final_norm_ = nullptr;
  kernels::Panels head_;
  const float* embedding_ = nullptr;  // row-major, only when untied
  std::vector<Piece> pieces_;
  std::int64_t units_ = 0;
  std::int64_t flat_size_ = 0;
};

}  // namespace troupe::model
