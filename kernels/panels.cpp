#include "kernels/panels.hpp"

#include <bit>

namespace troupe::kernels {

std::uint16_t to_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float from_bf16(std::uint16_t x) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

float panel_value(const Panels& panels, std::int64_t k, std::int64_t column, std::int64_t i) {
  const auto* const panel = static_cast<const unsigned char*>(panels.data) +
                            column / kPanel * panel_bytes(panels.dtype, k);
  const std::int64_t c = column % kPanel;
  switch (panels.dtype) {
    case PanelDtype::kF32:
      break;
    case PanelDtype::kBf16:
    case PanelDtype::kBf16Compute:
      return from_bf16(
          reinterpret_cast<const std::uint16_t*>(panel)[i / 2 * 2 * kPanel + 2 * c + i % 2]);
    case PanelDtype::kInt8:
      return static_cast<float>(reinterpret_cast<const signed char*>(panel)[i * kPanel + c]);
  }
  return reinterpret_cast<const float*>(panel)[i * kPanel + c];
}

void unpack_column(const Panels& panels, std::int64_t k, std::int64_t column, float* out) {
  for (std::int64_t i = 0; i < k; ++i)
    out[i] = panel_value(panels, k, column, i);
  if (panels.scale == nullptr) return;
  for (std::int64_t i = 0; i < k; ++i)
    out[i] = out[i] * panels.scale[column];
}

namespace {

constexpr PanelDtype kAll[] = {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8,
                               PanelDtype::kBf16Compute};

}  // namespace

const char* name_of(PanelDtype dtype) {
  switch (dtype) {
    case PanelDtype::kF32:
      break;
    case PanelDtype::kBf16:
      return "bf16";
    case PanelDtype::kInt8:
      return "int8";
    case PanelDtype::kBf16Compute:
      return "bf16-compute";
  }
  return "f32";
}

bool parse_panel_dtype(std::string_view name, PanelDtype& out) {
  for (const PanelDtype dtype : kAll) {
    if (name != name_of(dtype)) continue;
    out = dtype;
    return true;
  }
  return false;
}

}  // namespace troupe::kernels
