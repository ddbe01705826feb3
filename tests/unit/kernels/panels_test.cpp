// Stored forms of panels: bfloat16 and int8 by hand, the same bytes from every level, and what
// becomes of numbers that are not usual.
#include "kernels/panels.hpp"

#include "tests/unit/kernels/support.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace troupe::kernels::test {
namespace {

float bits(std::uint32_t x) {
  return std::bit_cast<float>(x);
}

TEST(Bf16, NearestAndTiesToEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(-2.5f), 0xc020);
  EXPECT_EQ(to_bf16(bits(0x3f808000)), 0x3f80) << "half way, even below";
  EXPECT_EQ(to_bf16(bits(0x3f818000)), 0x3f82) << "half way, even above";
  EXPECT_EQ(to_bf16(bits(0x3f808001)), 0x3f81);
  EXPECT_EQ(to_bf16(bits(0x3f817fff)), 0x3f81);
  EXPECT_EQ(to_bf16(bits(0xbf818000)), 0xbf82);
  EXPECT_EQ(to_bf16(bits(0x3fffffff)), 0x4000) << "into the next power of two";
  EXPECT_EQ(from_bf16(0xc020), -2.5f);
}

TEST(Bf16, ZerosInfinitiesNansAndDenormals) {
  EXPECT_EQ(to_bf16(0.0f), 0x0000);
  EXPECT_EQ(to_bf16(-0.0f), 0x8000);
  EXPECT_EQ(to_bf16(kInf), 0x7f80);
  EXPECT_EQ(to_bf16(-kInf), 0xff80);
  EXPECT_EQ(to_bf16(bits(0x7f7f7fff)), 0x7f7f) << "the last number that stays finite";
  EXPECT_EQ(to_bf16(bits(0x7f7f8000)), 0x7f80);
  for (const std::uint32_t nan : {0x7fc00000u, 0x7f800001u, 0xffffffffu, 0xff800001u})
    EXPECT_EQ(to_bf16(bits(nan)), 0x7fc0) << nan;
  EXPECT_EQ(to_bf16(bits(0x00008001)), 0x0001) << "a denormal is rounded as any number";
  EXPECT_EQ(to_bf16(bits(0x007fffff)), 0x0080);
}

TEST(PanelDtype, NamesAndSizes) {
  for (const char* name : {"f32", "bf16", "int8", "bf16-compute"}) {
    PanelDtype dtype{};
    ASSERT_TRUE(parse_panel_dtype(name, dtype));
    EXPECT_STREQ(name_of(dtype), name);
  }
  PanelDtype dtype = PanelDtype::kInt8;
  EXPECT_FALSE(parse_panel_dtype("fp16", dtype));
  EXPECT_FALSE(parse_panel_dtype("", dtype));
  EXPECT_EQ(dtype, PanelDtype::kInt8);
  EXPECT_EQ(packed_bytes(PanelDtype::kF32, 17, 5), 2 * 5 * 64);
  EXPECT_EQ(packed_bytes(PanelDtype::kBf16, 17, 5), 2 * 3 * 64);
  EXPECT_EQ(packed_bytes(PanelDtype::kBf16Compute, 16, 6), 3 * 64);
  EXPECT_EQ(packed_bytes(PanelDtype::kInt8, 17, 5), 2 * 2 * 64);
}

TEST(PanelDtype, PairsNeedTheInstruction) {
  EXPECT_TRUE(panel_dtype_available(reference(), PanelDtype::kBf16Compute)) << "it defines them";
  for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8})
    for (const Isa isa : {Isa::kReference, Isa::kAvx2, Isa::kAvx512})
      if (isa_available(isa)) {
        EXPECT_TRUE(panel_dtype_available(ops_for(isa), dtype));
      }
  if (isa_available(Isa::kAvx2)) {
    EXPECT_FALSE(panel_dtype_available(ops_for(Isa::kAvx2), PanelDtype::kBf16Compute));
  }
  if (isa_available(Isa::kAvx512)) {
    EXPECT_EQ(panel_dtype_available(ops_for(Isa::kAvx512), PanelDtype::kBf16Compute),
              static_cast<bool>(__builtin_cpu_supports("avx512bf16")));
  }
}

class PanelLevels : public VectorLevel {
 protected:
  // One column of int8 panels, packed by the level.
  std::pair<std::vector<int>, float> int8_column(const std::vector<float>& w) const {
    const auto k = static_cast<std::int64_t>(w.size());
    Guarded room(packed_bytes(PanelDtype::kInt8, 1, k) / 4), scale(kPanel);
    level().pack_transposed({.from = w.data(),
                             .ldf = k,
                             .n = 1,
                             .k = k,
                             .to = {room.data(), PanelDtype::kInt8, scale.data()}},
                            {0, 1});
    EXPECT_TRUE(room.guards_intact() && scale.guards_intact());
    std::vector<int> out;
    for (std::int64_t i = 0; i < k; ++i)
      out.push_back(
          static_cast<int>(panel_value({room.data(), PanelDtype::kInt8, scale.data()}, k, 0, i)));
    return {out, scale[0]};
  }
};
TROUPE_ALL_LEVELS(PanelLevels);

TEST_P(PanelLevels, PairsOfOneColumnByHand) {
  const float w[3] = {1.0f, bits(0x3f818000), -2.5f};
  Guarded room(packed_bytes(PanelDtype::kBf16, 1, 3) / 4);
  level().pack_transposed(
      {.from = w, .ldf = 3, .n = 1, .k = 3, .to = {room.data(), PanelDtype::kBf16}}, {0, 1});
  std::uint32_t lines[2 * kPanel];
  std::memcpy(lines, room.data(), sizeof lines);
  EXPECT_EQ(lines[0], 0x3f823f80u);
  EXPECT_EQ(lines[kPanel], 0x0000c020u) << "the last has no second";
  EXPECT_EQ(lines[1], 0u);
  EXPECT_TRUE(room.guards_intact());
}

TEST_P(PanelLevels, Int8ByHand) {
  const auto [q, scale] = int8_column({2.54f, -1.27f, 0.03f, -0.03f, 0.0f, -2.54f});
  EXPECT_EQ(q, (std::vector<int>{127, -64, 2, -2, 0, -127}));  // 63.5 is between: even; 1.5 too
  EXPECT_FLOAT_EQ(scale, 0.02f);
}

TEST_P(PanelLevels, Int8OfUnusualColumns) {
  EXPECT_EQ(int8_column({0.0f, -0.0f}), (std::pair<std::vector<int>, float>{{0, 0}, 0.0f}));
  EXPECT_EQ(int8_column({1e-31f, -1e-39f}), (std::pair<std::vector<int>, float>{{0, 0}, 0.0f}));
  EXPECT_EQ(int8_column({1e-29f, -1e-39f}).first, (std::vector<int>{127, 0}));
  EXPECT_EQ(int8_column({3e38f, -3e38f, 1.0f}).first, (std::vector<int>{127, -127, 0}));
  for (const float bad : {kNan, kInf, -kInf}) {
    std::vector<float> w(21, 1.0f);
    for (const std::size_t place : {0u, 20u}) {
      w[place] = bad;
      const auto [q, scale] = int8_column(w);
      EXPECT_TRUE(std::isnan(scale)) << "so that every output of the column says so";
      EXPECT_EQ(q, std::vector<int>(21, 0));
      w[place] = 1.0f;
    }
  }
}

TEST_P(PanelLevels, ColumnsComeBack) {
  const std::int64_t n = 21, k = 9;
  const Guarded w = Guarded::random(n * k, 3);
  for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8}) {
    Guarded room(packed_bytes(dtype, n, k) / 4), scale(panels_of(n) * kPanel);
    const bool scaled = dtype == PanelDtype::kInt8;
    level().pack_transposed({.from = w.data(),
                             .ldf = k,
                             .n = n,
                             .k = k,
                             .to = {room.data(), dtype, scaled ? scale.data() : nullptr}},
                            {0, panels_of(n)});
    std::vector<float> column(k);
    for (std::int64_t c = 0; c < n; ++c) {
      float most = 0.0f;
      for (std::int64_t i = 0; i < k; ++i)
        most = std::max(most, std::abs(w[c * k + i]));
      unpack_column({room.data(), dtype, scaled ? scale.data() : nullptr}, k, c, column.data());
      for (std::int64_t i = 0; i < k; ++i) {
        const float x = w[c * k + i];
        const float wanted = dtype == PanelDtype::kF32 ? x : from_bf16(to_bf16(x));
        if (scaled)
          EXPECT_LE(std::abs(column[i] - x), most / 127 * 0.5001f);
        else
          EXPECT_EQ(column[i], wanted);
      }
    }
  }
}

// Numbers of all kinds; rows with a leading dimension and poison between; every panel on its own.
TEST_P(PanelLevels, SameBytesAsReference) {
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                             {16, 16},
                             {17, 9},
                             {40, 33},
                             {65, 131},
                             {7, 64},
                             {33, 66},
                             {300, 6}}) {
    Guarded w = Guarded::random(n * (k + 3), 9);
    for (std::int64_t i = 0; i < w.size(); ++i) {
      if (i % (k + 3) >= k) w[i] = kNan;
      if (i % 97 == 5) w[i] = bits(static_cast<std::uint32_t>(i) * 2654435761u);
      if (i % 41 == 7) w[i] = bits((std::bit_cast<std::uint32_t>(w[i]) & 0xffff0000u) | 0x8000u);
    }
    for (const PanelDtype dtype :
         {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8, PanelDtype::kBf16Compute}) {
      const std::int64_t floats = packed_bytes(dtype, n, k) / 4;
      const std::int64_t scales = panels_of(n) * kPanel;
      Guarded expected(floats, 7.0f), actual(floats, 8.0f);
      Guarded expected_scale(scales, 7.0f), actual_scale(scales, 7.0f);
      reference().pack_transposed({.from = w.data(),
                                   .ldf = k + 3,
                                   .n = n,
                                   .k = k,
                                   .to = {expected.data(), dtype, expected_scale.data()}},
                                  {0, panels_of(n)});
      for (std::int64_t panel = 0; panel < panels_of(n); ++panel)
        level().pack_transposed({.from = w.data(),
                                 .ldf = k + 3,
                                 .n = n,
                                 .k = k,
                                 .to = {actual.data(), dtype, actual_scale.data()}},
                                {panel, panel + 1});
      EXPECT_EQ(std::memcmp(expected.data(), actual.data(), static_cast<std::size_t>(floats) * 4),
                0)
          << name_of(dtype) << " " << n << " x " << k;
      EXPECT_TRUE(same_bits(expected_scale, actual_scale)) << name_of(dtype);
      EXPECT_TRUE(actual.guards_intact());
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::test
