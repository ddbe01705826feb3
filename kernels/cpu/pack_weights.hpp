// Packs weights into panels: transposes them and rounds them to the storage dtype
// (kernels/panels.hpp). The bits are those of kernels/reference/gemm.hpp. 4 kB of stack; any
// thread.
#pragma once

#include "kernels/cpu/pack.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

void pack_f32_panel(
    const float* w, std::int64_t ldw, std::int64_t columns, std::int64_t k, float* to) {
  transpose_block(w, ldw, columns, k, to, kPanel);
  for (std::int64_t i = 0; columns < kPanel && i < k; ++i)
    for (std::int64_t c = columns; c < kPanel; ++c)
      to[i * kPanel + c] = 0.0f;
}

// Sixteen columns of one panel as f32, for up to kDepth steps of k at a time.
struct Stretch {
  static constexpr std::int64_t kDepth = 64;
  alignas(64) float x[kDepth * kPanel];

  // Reads rows [i, i + count) of B from w[column][k]. Writes zeros for missing columns, and after
  // `count` up to the next multiple of 4.
  void take(
      const float* w, std::int64_t ldw, std::int64_t columns, std::int64_t i, std::int64_t count) {
    transpose_block(w + i, ldw, columns, count, x, kPanel);
    for (std::int64_t r = 0; r < count; ++r)
      for (std::int64_t c = columns; c < kPanel; ++c)
        x[r * kPanel + c] = 0.0f;
    for (std::int64_t r = count; r % 4 != 0; ++r)
      Vec::zero().store(x + r * kPanel);
  }
  Vec row(std::int64_t i) const { return Vec::load(x + i * kPanel); }
};

void pack_bf16_panel(
    const float* w, std::int64_t ldw, std::int64_t columns, std::int64_t k, float* to) {
  Stretch part;
  for (std::int64_t i = 0; i < k; i += Stretch::kDepth) {
    const std::int64_t count = smaller(Stretch::kDepth, k - i);
    part.take(w, ldw, columns, i, count);
    for (std::int64_t r = 0; r < count; r += 2)
      Vec::store_bf16(to + (i + r) / 2 * kPanel, part.row(r), part.row(r + 1));
  }
}

// The largest magnitude of each column, compared by bits so that a NaN is the largest.
Vec column_magnitudes(const float* w, std::int64_t ldw, std::int64_t columns, std::int64_t k) {
  alignas(64) float largest[kPanel] = {};
  for (std::int64_t c = 0; c < columns; ++c) {
    Vec most = Vec::zero();
    for_lanes(k, [&](std::int64_t i, auto mask) {
      most = larger_bits(most, load(w + c * ldw + i, mask).magnitude());
    });
    alignas(64) float lanes[kPanel];
    most.store(lanes);
    for (int half = 8; half > 0; half /= 2)
      for (int l = 0; l < half; ++l)
        if (!(lanes[l] > lanes[l + half]) && lanes[l] == lanes[l]) lanes[l] = lanes[l + half];
    largest[c] = lanes[0];
  }
  return Vec::load(largest);
}

void pack_int8_panel(const float* w,
                     std::int64_t ldw,
                     std::int64_t columns,
                     std::int64_t k,
                     float* to,
                     float* scale) {
  const Vec most = column_magnitudes(w, ldw, columns, k);
  const Vec of_127 = Vec::all(127.0f);
  // A column with a NaN or infinity gets a NaN scale; a column of tiny numbers gets scale 0.
  const Mask finite = less(most, Vec::all(kInfinity));
  const Mask tiny = less(most, Vec::all(kInt8Least));
  const Vec scales = select(tiny, Vec::zero(), most / of_127);
  select(finite, scales, Vec::all(__builtin_nanf(""))).store(scale);
  const Vec inverse = select(finite, select(tiny, Vec::zero(), of_127 / most), Vec::zero());
  const Mask used = less(Vec::zero(), inverse);
  auto* bytes = reinterpret_cast<unsigned char*>(to);
  Stretch part;
  for (std::int64_t i = 0; i < k; i += Stretch::kDepth) {
    const std::int64_t count = smaller(Stretch::kDepth, k - i);
    part.take(w, ldw, columns, i, count);
    for (std::int64_t r = 0; r < (count + 3) / 4 * 4; ++r)
      select(used, part.row(r) * inverse, Vec::zero()).store_int8(bytes + (i + r) * kPanel);
  }
}

void pack_transposed(const Pack& p, Range panels) {
  const PanelRoom& to = p.to;
  const std::int64_t ldw = p.ldf, k = p.k;
  const std::int64_t size = panel_bytes(to.dtype, k) / static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const std::int64_t columns = smaller(kPanel, p.n - panel * kPanel);
    const float* const from = p.from + panel * kPanel * ldw;
    float* const out = to.f32() + panel * size;
    switch (to.dtype) {
      case PanelDtype::kF32:
        pack_f32_panel(from, ldw, columns, k, out);
        break;
      case PanelDtype::kBf16:
      case PanelDtype::kBf16Compute:
        pack_bf16_panel(from, ldw, columns, k, out);
        break;
      case PanelDtype::kInt8:
        pack_int8_panel(from, ldw, columns, k, out, to.scale + panel * kPanel);
        break;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
