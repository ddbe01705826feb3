// The seven linear maps of a transformer layer: their indices, shapes and names. Code for adapters
// and for the backward pass iterates over them. Pure functions; any thread.
#pragma once

#include "runtime/model/spec.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::model {

// Maps that read the same input are adjacent: q, k, v; gate, up.
enum class Linear : std::uint8_t { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr std::size_t kLinears = 7;
inline constexpr std::array<Linear, kLinears> kAllLinears = {
    Linear::kQ, Linear::kK, Linear::kV, Linear::kO, Linear::kGate, Linear::kUp, Linear::kDown};

constexpr std::size_t index_of(Linear linear) {
  return static_cast<std::size_t>(linear);
}

// The shape of the weight [rows, columns]: y[rows] = W x[columns].
struct LinearShape {
  std::int64_t rows = 0, columns = 0;
};
LinearShape shape_of(const ModelSpec& spec, Linear linear);
// Whether a layer has this linear map. In a family with fused maps, q stands for q, k and v, and
// gate for gate and up; then k, v and up do not exist and have 0 rows. A mixture-of-experts layer
// has no gate, up and down of its own.
bool has_linear(const ModelSpec& spec, std::int64_t layer, Linear linear);

// "q_proj", "down_proj"; "qkv_proj", "gate_up_proj" if fused.
const char* short_name(const ModelSpec& spec, Linear linear);
// "model.layers.3.self_attn.q_proj".
std::string module_name(const ModelSpec& spec, std::int64_t layer, Linear linear);

}  // namespace troupe::model
