// Where the parts of a model's packed weights lie in one block of memory: first everything that is
// packed from the parameters (the image), then the rotary tables. The places depend on the model
// and the storage type alone, so processes that share a model can pass images on as they are. A
// plain function; any thread.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
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

// Rotary tables. Either all layers share one pair, or full and sliding layers have one each.
struct RopeTables {
  const float *cos = nullptr, *sin = nullptr;
};

struct PackedLayout {
  std::vector<PackedLayer> layers;  // with their rotary tables
  const float* final_norm = nullptr;
  kernels::Panels head;
  const float* embedding = nullptr;  // null when tied
  RopeTables full, sliding;
  std::int64_t image = 0;  // floats of the image
  std::int64_t total = 0;  // floats of image and tables
};

// What packed weights have room for: the whole model, or one part of it at a time
// (weights_gate.hpp); then all parts have the same place, and there is no image.
enum class PanelRoom { kModel, kPart };

// Lays `spec`'s parts out from `start`, which is 64-byte aligned and not 0; nothing is read or
// written there, so without memory any such number gives the offsets.
PackedLayout lay_out_packed(const ModelSpec& spec,
                            kernels::PanelDtype dtype,
                            std::uintptr_t start,
                            PanelRoom room = PanelRoom::kModel);

}  // namespace troupe::model
