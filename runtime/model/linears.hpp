// The seven linear maps of a layer, by number: their place in a layout, their shape, their name.
// Adapters and the products of the backward pass go over them. Pure; any thread.
#pragma once

#include "runtime/model/spec.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::model {

// Those that read the same rows stand together: q, k, v; gate, up.
enum class Linear : std::uint8_t { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr std::size_t kLinears = 7;
inline constexpr std::array<Linear, kLinears> kAllLinears = {
    Linear::kQ, Linear::kK, Linear::kV, Linear::kO, Linear::kGate, Linear::kUp, Linear::kDown};

constexpr std::size_t index_of(Linear linear) {
  return static_cast<std::size_t>(linear);
}

// Of the weight [rows, columns]: y[rows] = W x[columns].
struct LinearShape {
  std::int64_t rows = 0, columns = 0;
};
LinearShape shape_of(const ModelSpec& spec, Linear linear);
// Of a family that fuses them, q stands for q, k, v and gate for gate and up; k, v and up are not
// there and have no rows.
// A layer of experts has no gate, up and down of its own.
bool has_linear(const ModelSpec& spec, std::int64_t layer, Linear linear);

// "q_proj", "down_proj"; "qkv_proj", "gate_up_proj" where fused.
const char* short_name(const ModelSpec& spec, Linear linear);
// "model.layers.3.self_attn.q_proj".
std::string module_name(const ModelSpec& spec, std::int64_t layer, Linear linear);

}  // namespace troupe::model
