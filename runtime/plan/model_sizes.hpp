// How large the parts of a model are: its weights, its panels, its keys and values. Computed from
// the shape in config.json alone, so that a model can be planned that is not there and would not
// fit. A value type; the formulas are those of docs/scale.md.
#pragma once

#include "kernels/panels.hpp"
#include "kernels/shapes.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::plan {

class ModelSizes {
 public:
  explicit ModelSizes(model::ModelSpec spec);

  const model::ModelSpec& spec() const { return spec_; }
  bool has_logits() const { return spec_.head == model::HeadKind::kLanguage; }
  // Elements of ParamLayout (P): of everything, of the embedding, and of the largest layer.
  std::int64_t weights() const { return weights_; }
  std::int64_t embedding() const { return spec_.vocab * spec_.hidden; }
  std::int64_t layer() const { return layer_; }
  // The larger of the two: what is gathered at once when weights are sharded.
  std::int64_t largest_part() const;
  // Elements of model::PartRoom: the same, or with an embedding that is the head both.
  std::int64_t part_room() const;
  // Columns of a row of logits in memory.
  std::int64_t logits_width() const;
  // Bytes of model::PackedWeights: panels, norms and rotary tables, and the embedding as f32 if it
  // is not the head.
  std::int64_t panel_bytes(kernels::PanelDtype dtype) const;
  // panel_bytes without rotary tables: what a push of the weights moves (ADR 0025).
  std::int64_t image_bytes(kernels::PanelDtype dtype) const;
  // Bytes of the keys and values of one token in all layers.
  std::int64_t token_bytes(kernels::KvDtype dtype) const;

 private:
  model::ModelSpec spec_;
  std::int64_t weights_ = 0, layer_ = 0;
};

}  // namespace troupe::plan
