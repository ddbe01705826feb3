#include "runtime/model/kept_layers.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

std::int64_t rounded(std::int64_t count) {
  return (count + 15) / 16 * 16;
}

// Allocates, with `take(floats)`, what a layer keeps for its backward pass, except its input and
// output.
template <class Take>
void take_inner(const ModelSpec& spec, std::int64_t rows, LayerBuffers& io, Take&& take) {
  io.qkv = take(rows * spec.qkv_width());
  io.attention = take(rows * spec.q_width());
  io.lse = take(rows * spec.heads);
  io.x_mid = take(rows * spec.hidden);
  io.gate_up = take(rows * 2 * spec.dense_ffn());
  io.inv_rms1 = take(rows);
  io.inv_rms2 = take(rows);
  if (spec.qk_norm) {
    io.qk_raw = take(rows * (spec.q_width() + spec.kv_width()));
    io.inv_rms_qk = take(rows * (spec.heads + spec.kv_heads));
  }
  if (spec.post_norms) {
    io.attention_out = take(rows * spec.hidden);
    io.ffn_out = take(rows * spec.hidden);
    io.inv_rms_attention_out = take(rows);
    io.inv_rms_ffn_out = take(rows);
  }
  if (spec.moe.any()) {
    const std::int64_t pairs = rows * spec.moe.experts_per_token;
    io.moe.routing.scores = take(rows * scores_width(spec.moe));
    io.moe.routing.weight = take(pairs);
    io.moe.gate_up = take(pairs * 2 * spec.moe.ffn);
  }
}

std::int64_t inner_floats(const ModelSpec& spec, std::int64_t rows) {
  std::int64_t floats = 0;
  LayerBuffers none;
  take_inner(spec, rows, none, [&](std::int64_t count) -> float* {
    floats += rounded(count);
    return nullptr;
  });
  return floats;
}

}  // namespace

void KeptLayers::carve(const ModelSpec& s,
                       std::int64_t rows,
                       ForwardScratch& scratch,
                       core::Memory& memory) {
  // One set of inner buffers (take_inner) for each layer that has a backward pass, or one set that
  // all layers use in turn.
  const std::int64_t trained = s.layers - first_trained_;
  const std::int64_t sets = checkpointing_ ? 1 : std::max<std::int64_t>(trained, 1);
  floats_ = inner_floats(s, rows) * sets + rounded(rows * s.hidden) * (1 + trained);
  arena_.reserve_discard(floats_, memory);
  experts_.reserve_discard(sets * rows * s.moe.experts_per_token);
  float* next = arena_.data();
  const auto take = [&](std::int64_t count) {
    float* piece = next;
    next += rounded(count);
    return piece;
  };
  std::vector<LayerBuffers> inner(static_cast<std::size_t>(sets));
  for (LayerBuffers& io : inner) {
    io.moe = scratch.moe.views(s.moe);
    take_inner(s, rows, io, take);
    io.normed = scratch.normed.data();
    io.act = scratch.act.data();
    io.moe.routing.expert = experts_.data() + (&io - inner.data()) * rows * s.moe.experts_per_token;
  }
  layers_.clear();
  hidden_.assign(1, take(rows * s.hidden));
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const std::int64_t set = std::clamp<std::int64_t>(layer - first_trained_, 0, sets - 1);
    LayerBuffers io = inner[static_cast<std::size_t>(set)];
    io.x = hidden_.back();
    io.out = layer < first_trained_ ? hidden_.back() : take(rows * s.hidden);
    layers_.push_back(io);
    hidden_.push_back(io.out);
  }
}

std::uint64_t KeptLayers::bytes() const {
  return static_cast<std::uint64_t>(arena_.size() + experts_.size()) * sizeof(float);
}

}  // namespace troupe::model
