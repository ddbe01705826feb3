// Packed matrices: panels of 16 columns, which a product reads line by line (64 bytes), and the
// dtypes in which their numbers are stored. `Panels` is a view: the memory belongs to whoever
// packed it (Ops::pack_transposed, Ops::pack_plain) and must outlive the call. Any thread. Every
// level reads the layouts, so they are part of the interface: [panels_of(n)][panel_bytes(dtype,
// k)]. Numbers beyond column n and beyond k are zero.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::kernels {

inline constexpr std::int64_t kPanel = 16;      // columns of a packed panel
inline constexpr std::int64_t kLineBytes = 64;  // size and alignment of one line of a panel

constexpr std::int64_t panels_of(std::int64_t columns) {
  return (columns + kPanel - 1) / kPanel;
}
// Floats of a matrix packed as f32 with `n` columns: [panels_of(n)][k][16], the last panel
// zero-filled.
constexpr std::int64_t packed_size(std::int64_t n, std::int64_t k) {
  return panels_of(n) * kPanel * k;
}

// A column of int8 panels whose largest magnitude is below this is stored as zeros.
inline constexpr float kInt8Least = 1e-30f;

// How the numbers of a panel are stored, and what a product does with them. The arithmetic is that
// of docs/adr/0003-exact-arithmetic.md, rule 10; b(x) is x rounded to bfloat16, nearest, ties to
// even.
enum class PanelDtype : std::uint8_t {
  kF32,   // [k][16] f32
  kBf16,  // [k/2][16][2] bfloat16: b(w). Widened to f32, then the chain of f32: the same bits on
          // all levels
  // [k/4][4][16] int8 with one f32 scale a column: q = w * (127 / max|w|), nearest, ties to even.
  // The chain of f32 over q, then times max|w| / 127, once. For generation only: the log-probs are
  // too far from those of the f32 weights to learn from.
  kInt8,
  // The panels of kBf16, multiplied with b(a) by the processor's dot product of pairs. This is
  // another class of arithmetic than kBf16. Fast only where panel_dtype_available says so.
  kBf16Compute,
};

// How many steps of k one line holds.
constexpr std::int64_t line_depth(PanelDtype dtype) {
  return dtype == PanelDtype::kF32 ? 1 : dtype == PanelDtype::kInt8 ? 4 : 2;
}
constexpr std::int64_t panel_bytes(PanelDtype dtype, std::int64_t k) {
  return (k + line_depth(dtype) - 1) / line_depth(dtype) * kLineBytes;
}
constexpr std::int64_t packed_bytes(PanelDtype dtype, std::int64_t n, std::int64_t k) {
  return panels_of(n) * panel_bytes(dtype, k);
}

// A view of packed panels. A pointer to f32 panels converts implicitly.
struct Panels {
  const void* data = nullptr;  // 64-byte aligned
  PanelDtype dtype = PanelDtype::kF32;
  const float* scale = nullptr;  // [n], kInt8 only

  constexpr Panels() = default;
  constexpr Panels(const float* panels) : data(panels) {}  // NOLINT: f32 panels are the usual case
  constexpr Panels(const void* panels, PanelDtype type, const float* scales = nullptr)
      : data(panels), dtype(type), scale(scales) {}

  // The numbers of f32 panels.
  const float* f32() const { return static_cast<const float*>(data); }
};

// Memory to write panels to. A pointer to memory for f32 panels converts implicitly.
struct PanelRoom {
  void* data = nullptr;  // packed_bytes, 64-byte aligned
  PanelDtype dtype = PanelDtype::kF32;
  float* scale = nullptr;  // [panels_of(n) * 16], kInt8 only

  constexpr PanelRoom() = default;
  constexpr PanelRoom(float* panels) : data(panels) {}  // NOLINT
  constexpr PanelRoom(void* panels, PanelDtype type, float* scales = nullptr)
      : data(panels), dtype(type), scale(scales) {}

  float* f32() const { return static_cast<float*>(data); }
};

// The stored number, before scaling, at column `column` and depth `i` of a packed matrix with `k`
// rows.
float panel_value(const Panels& panels, std::int64_t k, std::int64_t column, std::int64_t i);
// A whole column as f32, scaled: out[k].
void unpack_column(const Panels& panels, std::int64_t k, std::int64_t column, float* out);

// "f32", "bf16", "int8", "bf16-compute".
const char* name_of(PanelDtype dtype);
// Bytes per weight.
constexpr double bytes_of_weight(PanelDtype dtype) {
  return 4.0 / static_cast<double>(line_depth(dtype));
}

// Sets `out` to the dtype of that name; false if there is none.
bool parse_panel_dtype(std::string_view name, PanelDtype& out);

// f32 to bfloat16, nearest, ties to even; overflow becomes infinity, a NaN 0x7fc0.
std::uint16_t to_bf16(float x) noexcept;
float from_bf16(std::uint16_t x) noexcept;

}  // namespace troupe::kernels
