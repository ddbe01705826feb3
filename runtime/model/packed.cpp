// The packed weights: one block of memory, carved up once, filled by the team.
#include "runtime/model/packed.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <cstring>

namespace troupe::model {
namespace {

// Hands out pieces of one buffer in multiples of 16 floats; with a null base it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* take(std::int64_t count) {
    float* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count + 15) / 16 * 16;
    return piece;
  }
  std::int64_t used() const { return used_; }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

PackedLayer carve_layer(Carver& carver, const ModelSpec& spec) {
  PackedLayer layer;
  layer.input_norm = carver.take(spec.hidden);
  layer.qkv = carver.take(kernels::packed_size(spec.qkv_width(), spec.hidden));
  layer.o = carver.take(kernels::packed_size(spec.hidden, spec.q_width()));
  layer.post_norm = carver.take(spec.hidden);
  layer.gate_up = carver.take(kernels::packed_size(2 * spec.ffn, spec.hidden));
  layer.down = carver.take(kernels::packed_size(spec.hidden, spec.ffn));
  if (spec.qkv_bias) layer.qkv_bias = carver.take(spec.qkv_width());
  return layer;
}

// The panels belong to this object's buffer; only `fill` writes them.
float* writable(const float* piece) {
  return const_cast<float*>(piece);
}

void pack(core::Team team, const float* w, std::int64_t n, std::int64_t k, const float* panels) {
  const auto [begin, end] = team.share(kernels::panels_of(n));
  if (begin < end) kernels::ops().pack_transposed(w, k, n, k, writable(panels), begin, end);
}

void copy(const float* from, std::int64_t count, const float* to) {
  std::memcpy(writable(to), from, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace

PackedWeights::PackedWeights(const ModelSpec& spec) : spec_(spec) {
  const auto carve = [&](Carver carver) {
    layers_.clear();
    for (std::int64_t i = 0; i < spec.layers; ++i)
      layers_.push_back(carve_layer(carver, spec));
    final_norm_ = carver.take(spec.hidden);
    head_ = carver.take(kernels::packed_size(spec.vocab, spec.hidden));
    embedding_ = spec.tied ? nullptr : carver.take(spec.vocab * spec.hidden);
    rope_cos_ = carver.take(spec.context * spec.head_dim / 2);
    rope_sin_ = carver.take(spec.context * spec.head_dim / 2);
    return carver.used();
  };
  data_ = core::Buffer<float>(carve(Carver(nullptr)));
  carve(Carver(data_.data()));
  rope_tables(spec, spec.context, writable(rope_cos_), writable(rope_sin_));
}

void PackedWeights::embed(std::int32_t token, float* out) const {
  TROUPE_DCHECK(token >= 0 && token < spec_.vocab, "token id outside the vocabulary");
  if (embedding_ != nullptr) {
    std::memcpy(out, embedding_ + token * spec_.hidden,
                static_cast<std::size_t>(spec_.hidden) * sizeof(float));
    return;
  }
  const float* column =
      head_ + token / kernels::kPanel * kernels::kPanel * spec_.hidden + token % kernels::kPanel;
  for (std::int64_t i = 0; i < spec_.hidden; ++i)
    out[i] = column[i * kernels::kPanel];
}

void PackedWeights::fill(core::Team team, const ParamStore& params, core::Version version) {
  const ParamLayout& layout = params.layout();
  const float* data = params.data();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerOffsets& at = layout.layers[i];
    const PackedLayer& layer = layers_[i];
    pack(team, data + at.q, spec_.qkv_width(), spec_.hidden, layer.qkv);
    pack(team, data + at.o, spec_.hidden, spec_.q_width(), layer.o);
    pack(team, data + at.gate, 2 * spec_.ffn, spec_.hidden, layer.gate_up);
    pack(team, data + at.down, spec_.hidden, spec_.ffn, layer.down);
    if (team.rank != 0) continue;
    copy(data + at.input_norm, spec_.hidden, layer.input_norm);
    copy(data + at.post_norm, spec_.hidden, layer.post_norm);
    if (spec_.qkv_bias) copy(data + at.q_bias, spec_.qkv_width(), layer.qkv_bias);
  }
  pack(team, data + layout.head, spec_.vocab, spec_.hidden, head_);
  if (embedding_ != nullptr) {
    const auto [begin, end] = team.share(spec_.vocab);
    copy(data + layout.embedding + begin * spec_.hidden, (end - begin) * spec_.hidden,
         embedding_ + begin * spec_.hidden);
  }
  if (team.rank == 0) {
    copy(data + layout.final_norm, spec_.hidden, final_norm_);
    version_ = version;
  }
  team.barrier();
}

std::uint64_t PackedWeights::bytes() const {
  return static_cast<std::uint64_t>(data_.size()) * sizeof(float);
}

}  // namespace troupe::model
