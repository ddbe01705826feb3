#include "runtime/plan/row_sizes.hpp"

#include "kernels/row_shapes.hpp"
#include "runtime/model/head_grad.hpp"
#include "runtime/model/moe_buffers.hpp"

#include <algorithm>

namespace troupe::plan {
namespace {

using model::ModelSpec;

// Logits kept for the backward pass take at most this share of what the layers keep.
constexpr std::int64_t kLogitsShare = 3;
// A gradient of an input that is a sum of more terms is computed in pieces, with room for one.
constexpr std::int64_t kPiece = 1024;

// What a row keeps in each layer besides the layer's input.
std::int64_t kept_in_layer(const ModelSpec& spec) {
  std::int64_t floats =
      spec.qkv_width() + spec.q_width() + spec.heads + spec.hidden + 2 * spec.dense_ffn() + 2;
  if (spec.qk_norm) floats += spec.q_width() + spec.kv_width() + spec.heads + spec.kv_heads;
  if (spec.post_norms) floats += 2 * spec.hidden + 2;
  if (!spec.moe.any()) return floats;
  const std::int64_t k = spec.moe.experts_per_token;
  return floats + model::scores_width(spec.moe) + 2 * k + 2 * k * spec.moe.ffn;
}

// Floats of one layer with experts while it computes.
std::int64_t expert_scratch(const ModelSpec& spec) {
  if (!spec.moe.any()) return 0;
  const std::int64_t k = spec.moe.experts_per_token;
  return model::scores_width(spec.moe) + 3 * k + k * (2 * spec.hidden + 3 * spec.moe.ffn) +
         (spec.moe.has_shared() ? spec.hidden : 0);
}

std::int64_t chunk_rows(const Place& place, std::int64_t logits_max, std::int64_t width) {
  if (place.on_host) return model::kHeadRows_max;
  const std::int64_t fit = logits_max / width / model::kHeadRows_max * model::kHeadRows_max;
  return std::clamp(fit, model::kHeadRows_max, model::kDeviceHeadRows_max);
}

}  // namespace

std::int64_t TrainRows::kept() const {
  const ModelSpec& spec = model.spec();
  const std::int64_t sets = checkpointing ? 1 : std::max<std::int64_t>(trained_layers, 1);
  return rows * (sets * kept_in_layer(spec) + (1 + trained_layers) * spec.hidden);
}

std::int64_t TrainRows::scratch() const {
  const ModelSpec& spec = model.spec();
  const std::int64_t ffn = spec.dense_ffn(), k = spec.moe.experts_per_token;
  // Inputs, outputs and gradients of linear maps; keys, values and their gradients; the head's
  // input and its gradient.
  std::int64_t floats = 9 * spec.hidden + spec.qkv_width() + spec.q_width() + 3 * ffn +
                        std::max(ffn, spec.q_width()) + 6 * spec.kv_width();
  if (spec.post_norms) floats += spec.hidden;
  if (spec.qk_norm) floats += spec.q_width() + spec.kv_width();
  if (spec.moe.any()) floats += 2 * expert_scratch(spec) + k * (2 * spec.moe.ffn + spec.hidden);
  return rows * floats + std::min(rows, model::kHeadRows_max) * spec.hidden;
}

std::int64_t TrainRows::members_scratch() const {
  const ModelSpec& spec = model.spec();
  const std::int64_t inner = std::max(spec.dense_ffn(), spec.q_width());
  const bool wide = std::max(2 * spec.dense_ffn(), spec.qkv_width()) > kPiece;
  const std::int64_t widest = spec.hidden > kPiece ? std::max(spec.hidden, inner)
                              : wide               ? spec.hidden
                                                   : 0;
  const std::int64_t head = model.has_logits() && spec.vocab > kPiece ? spec.hidden : 0;
  return std::min(rows, kernels::kPieceRows) * widest + std::min(rows, model::kHeadRows_max) * head;
}

std::int64_t TrainRows::logits(const Place& place) const {
  if (!model.has_logits()) return 0;
  const std::int64_t width = model.logits_width(), most = kept() / kLogitsShare;
  const std::int64_t chunk = chunk_rows(place, most, width);
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  const std::int64_t places =
      std::clamp<std::int64_t>(most / (chunk * width), 1, std::max<std::int64_t>(chunks, 1));
  return ((places - 1) * chunk + std::min(rows, chunk)) * width;
}

std::int64_t ForwardRows::scratch() const {
  const ModelSpec& spec = model.spec();
  return rows * (4 * spec.hidden + spec.qkv_width() + spec.q_width() + 3 * spec.dense_ffn() +
                 expert_scratch(spec));
}

std::int64_t ForwardRows::keys() const {
  return rows * 2 * model.spec().kv_width();
}

std::int64_t ForwardRows::logits() const {
  return model.has_logits() ? std::min(rows, model::kHeadRows_max) * model.logits_width() : 0;
}

}  // namespace troupe::plan
