// Low-rank adapters in training (LoRA, Hu et al. 2021): W + s B A with s = alpha / rank. The
// forward pass runs on merged weights, so engine, trainer and reference compute the same bits. The
// backward pass computes the gradients of A and B with small products of their own (lora_grad.hpp).
// Holds the adapters' values, the base weights under them, and the panels that the products read.
// All of it is in the memory of the team, and numbers are touched by its operations alone. Owned by
// the trainer; called on one thread. Memory: one copy of the adapted weights and at most four of
// the adapters.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::model {

class Lora {
 public:
  // `trained`: a layout with adapters (trained_layout.hpp). Takes the base weights, and the values
  // of the tensors that are trained as a whole, from `master`, and its memory. A and B are zero.
  Lora(const ParamStore& master, std::shared_ptr<const ParamLayout> trained, double scale);

  // Initialises the adapters as PEFT does: A uniform within +-1/sqrt(columns) (Kaiming with a =
  // sqrt 5), B zero, so the merged weights equal the base. The values depend on the seed alone.
  void start(std::uint64_t seed);

  // A, B and the tensors that are trained as a whole. Changes take effect at the next `merge`.
  ParamStore& values() { return values_; }
  const ParamStore& values() const { return values_; }

  // Sets master = base + scale B A where there is an adapter, and copies the tensors that are
  // trained as a whole. Also packs the panels of this version. `team` has the memory of both.
  void merge(core::TeamRunner& team, ParamStore& master);

  double scale() const { return scale_; }
  // The adapter of one layer's linear map: its rank (0: none), and its panels as of the last
  // `merge`.
  std::int64_t rank(std::int64_t layer, Linear linear) const;
  const float* down_panels(std::int64_t layer, Linear linear) const;  // of A, for x A^T
  const float* back_panels(std::int64_t layer, Linear linear) const;  // of B, for dy B

  // CRC-32C of the base weights under the adapters, in layout order. It shows whether an adapter is
  // applied to the weights that it was trained on.
  std::uint32_t base_crc() const { return base_crc_; }

 private:
  struct Adapter {
    std::int64_t layer = 0;
    Linear linear = Linear::kQ;
    LinearShape shape;
    AdapterOffsets at;           // offsets in values_
    std::int64_t master = 0;     // offset in the master's buffer
    std::int64_t base = 0;       // offset in base_
    std::int64_t a_columns = 0;  // offset in panels_: A for B A, n = columns
    std::int64_t down = 0;       // offset in panels_: A for x A^T, n = rank
    std::int64_t back = 0;       // offset in panels_: B for dy B, n = rank
  };
  // A tensor that is trained as a whole.
  struct Whole {
    std::int64_t at = 0;  // offset in values_
    std::int64_t master = 0;
    std::int64_t rows = 0, columns = 0;
  };
  const Adapter& adapter_of(std::int64_t layer, Linear linear) const;
  void pack(const Adapter& adapter);
  void add_to_base(core::Team team, const Adapter& adapter, float* master) const;

  const double scale_;
  ParamStore values_;
  std::vector<Adapter> adapters_;
  std::vector<Whole> wholes_;
  core::Buffer<float> base_, panels_;
  core::Buffer<float> scaled_;  // scale * values_; only B is read
  std::uint32_t base_crc_ = 0;
};

}  // namespace troupe::model
