// A model's weights in the form that the kernels read: matrices as panels of 16 columns, norms and
// biases as plain vectors. Engine and trainer pack them by the same code, so both compute with the
// same bits. Shared by pointer and not changed while shared; the trainer refills panels that nobody
// else holds. `version` is the policy version that the panels hold.
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

// The weights of one expert.
struct PackedExpert {
  kernels::Panels gate_up;  // panels over gate columns, then up columns (2 ffn)
  kernels::Panels down;     // panels over hidden
};

// The feed-forward weights of a mixture-of-experts layer; its PackedLayer has no gate_up and down.
struct PackedMoe {
  const float* router = nullptr;  // f32 panels over the experts, then the shared expert's gate
  std::vector<PackedExpert> experts;
  PackedExpert shared;
};

// The weights of one layer; null where the family has none. Norms hold the factors that a row is
// multiplied by. In families with `norm_plus_one` that is 1 + weight.
struct PackedLayer {
  const float* input_norm = nullptr;  // [hidden]
  kernels::Panels qkv;                // panels over q, k, v columns in this order (qkv_width)
  const float* qkv_bias = nullptr;    // [qkv_width]
  const float* q_norm = nullptr;      // [head_dim], shared by all heads
  const float* k_norm = nullptr;
  kernels::Panels o;                          // panels over hidden
  const float* o_bias = nullptr;              // [hidden]
  const float* attention_out_norm = nullptr;  // [hidden], before the residual
  const float* ffn_norm = nullptr;            // [hidden]
  kernels::Panels gate_up;                    // panels over gate columns, then up columns (2 ffn)
  const float* gate_up_bias = nullptr;        // [2 ffn]
  kernels::Panels down;                       // panels over hidden
  const float* down_bias = nullptr;           // [hidden]
  PackedMoe moe;                              // of a mixture-of-experts layer
  const float* ffn_out_norm = nullptr;        // [hidden], before the residual
  const float* rope_cos = nullptr;            // [context][rotary / 2], shared by layers
  const float* rope_sin = nullptr;
};

class WeightsGate;

class PackedWeights {
 public:
  // Allocates room for `spec`'s panels and fills the rotary tables, but not the weights. Widths
  // need not be multiples of 16. `dtype` is the storage type of the matrices and the head. Norms,
  // biases, routers and an untied embedding stay f32. `memory`: that of the team that computes with
  // them.
  explicit PackedWeights(const ModelSpec& spec,
                         kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                         core::Memory& memory = core::host_memory());

  const ModelSpec& spec() const { return spec_; }
  kernels::PanelDtype dtype() const { return dtype_; }
  core::Memory& memory() const { return data_.memory(); }
  // How keys and values are stored beside these weights.
  kernels::KvDtype kv_dtype() const { return kernels::kv_dtype_of(dtype_, memory().on_host()); }
  core::Version version() const { return version_; }
  const PackedLayer& layer(std::int64_t i) const { return layers_[static_cast<std::size_t>(i)]; }
  const float* final_norm() const { return final_norm_; }
  kernels::Panels head() const { return head_; }  // panels over the vocabulary, or one score column
  // Writes the scaled embeddings of tokens[begin, end) to rows [begin, end) of x [rows, hidden].
  // Tied embeddings are read from the head's panels, so they are rounded as the head is.
  void embed(const std::int32_t* tokens, std::int64_t begin, std::int64_t end, float* x) const;

  // Fills all weights from `params`, which is in the same memory or on the host. Every member of
  // the team calls it. Ends with a barrier.
  void fill(core::Team team, const ParamStore& params, core::Version version);

  // The same in units, to pack between other work (weight_packer.hpp). Fill each unit once, in any
  // order and from any member of the team, then set the version. `flat` is a buffer in ParamLayout
  // order, on the host or, with `here`, in the memory of these panels.
  std::int64_t fill_units() const { return units_; }
  void fill_unit(std::int64_t unit, const float* flat, bool here = false);
  void set_version(core::Version version) { version_ = version; }
  // The same for the pieces that begin in `part` of the flat buffer alone, which holds them whole.
  // Every member of the team calls it; the caller starts a new region before it reads them.
  void fill_range(core::Team team, const float* flat, core::Range part);
  // Gives the host's pages of these pieces back, as far as they hold nothing else. What they held
  // is lost.
  void forget_range(core::Range part) noexcept;
  void use_small_pages() noexcept;  // so that forgetting frees memory
  // Weights that a pass must open before it computes with them; null: all are there.
  WeightsGate* gate() const { return gate_; }
  void set_gate(WeightsGate* gate) { gate_ = gate; }
  // Elements of the flat buffer, ParamLayout::total.
  std::int64_t flat_size() const { return flat_size_; }
  // Touches all pages on the host, so that the first fill causes no page faults.
  void touch();
  std::uint64_t bytes() const;

 private:
  // A range of the flat buffer: rows [n][k] that become panels, or numbers that are copied.
  struct Piece {
    kernels::PanelRoom out;
    std::int64_t flat = 0;        // offset of the first element in the flat buffer
    std::int64_t n = 0, k = 0;    // a copied piece has n elements and k = 1
    std::int64_t unit_rows = 0;   // rows of a unit; a multiple of 16 if they become panels
    std::int64_t first_unit = 0;  // index of its first unit
    bool panels = false;          // whether the rows become panels
    bool plus_one = false;        // stores 1 + the number
    std::int64_t units() const { return (n + unit_rows - 1) / unit_rows; }
  };
  void fill_tables(const RopeSpec& rope, const float* cos, const float* sin);
  // Fills rows [begin, end) of a piece; `from` is in this object's memory.
  void fill_rows(const Piece& piece, std::int64_t begin, std::int64_t end, const float* from);
  const Piece& piece_of(std::int64_t unit) const;
  void plan_fill();
  void plan_experts(const PackedMoe& packed, const MoeOffsets& at);
  void add_panels(const kernels::Panels& out, std::int64_t flat, std::int64_t n, std::int64_t k);
  // Does nothing when `out` is null: the model has no such tensor.
  void add_copy(const float* out, std::int64_t flat, std::int64_t count, bool plus_one = false);

  ModelSpec spec_;
  kernels::PanelDtype dtype_;
  core::Version version_ = 0;
  core::Buffer<float> data_;
  core::Buffer<float> ones_;     // used by families with `norm_plus_one`
  core::Buffer<float> staging_;  // a unit in transit from the host to a device
  std::vector<PackedLayer> layers_;
  const float* final_norm_ = nullptr;
  kernels::Panels head_;
  const float* embedding_ = nullptr;  // row-major, only when untied
  std::vector<Piece> pieces_;
  std::int64_t units_ = 0;
  std::int64_t flat_size_ = 0;
  WeightsGate* gate_ = nullptr;
};

}  // namespace troupe::model
