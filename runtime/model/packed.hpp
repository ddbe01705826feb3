// A model's weights in the form that the kernels read: matrices as panels of 16 columns, norms and
// biases as plain vectors. Engine and trainer pack them by the same code, so both compute with the
// same bits. Shared by pointer and not changed while shared; the trainer refills panels that nobody
// else holds. `version` is the policy version that the panels hold.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/pack_plan.hpp"
#include "runtime/model/packed_layout.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::model {

class WeightsGate;

class PackedWeights {
 public:
  // Allocates room for `spec`'s panels and fills the rotary tables, but not the weights. Widths
  // need not be multiples of 16. `dtype` is the storage type of the matrices and the head. Norms,
  // biases, routers and an untied embedding stay f32. `memory`: that of the team that computes with
  // them. With PanelRoom::kPart there is room for one part at a time, which fill_range fills, and
  // all but that part of what the functions below return is not there.
  explicit PackedWeights(const ModelSpec& spec,
                         kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                         core::Memory& memory = core::host_memory(),
                         PanelRoom room = PanelRoom::kModel);

  const ModelSpec& spec() const { return spec_; }
  kernels::PanelDtype dtype() const { return dtype_; }
  core::Memory& memory() const { return data_.memory(); }
  // How keys and values are stored next to these weights.
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

  // Packs in units, between other work (weight_packer.hpp). Fill each unit once, in any
  // order and from any member of the team, then set the version. `flat` is a buffer in ParamLayout
  // order, on the host or, with `here`, in the memory of these panels.
  std::int64_t fill_units() const { return plan_.units(); }
  void fill_unit(std::int64_t unit, const float* flat, bool here = false);
  void set_version(core::Version version) { version_ = version; }
  // Fills only the pieces that begin in `part` of the flat buffer, which holds them whole.
  // `numbers`: the elements of `part`, in the memory of these panels. Every member of the team
  // calls it; the caller starts a new region before it reads them.
  void fill_range(core::Team team, const float* numbers, core::Range part);
  // Weights that a pass must open before it computes with them; null: all are there.
  WeightsGate* gate() const { return gate_; }
  void set_gate(WeightsGate* gate) { gate_ = gate; }
  // Elements of the flat buffer, ParamLayout::total.
  std::int64_t flat_size() const { return plan_.flat_size(); }
  // All that `fill` writes, as one block: the image of these weights (pack_plan.hpp). The
  // writer sets the version afterwards.
  char* image() { return reinterpret_cast<char*>(data_.data()); }
  const char* image() const { return reinterpret_cast<const char*>(data_.data()); }
  std::int64_t image_bytes() const { return plan_.image_bytes(); }
  // Touches all pages on the host, so that the first fill causes no page faults.
  void touch();
  std::uint64_t bytes() const;

 private:
  void fill_tables(const RopeSpec& rope, const float* cos, const float* sin);

  ModelSpec spec_;
  kernels::PanelDtype dtype_;
  core::Version version_ = 0;
  core::Buffer<float> data_;
  PackPlan plan_;
  std::vector<PackedLayer> layers_;
  const float* final_norm_ = nullptr;
  kernels::Panels head_;
  const float* embedding_ = nullptr;  // row-major, only when untied
  WeightsGate* gate_ = nullptr;
};

}  // namespace troupe::model
