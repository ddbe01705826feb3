// Products over panels of all dtypes: hand-worked values, the same bits on every level for every
// tail, no dependence on rows and ranges, and nothing read that is not there.
#include "tests/unit/kernels/support.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace troupe::kernels::test {
namespace {

constexpr std::array kStored{PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8,
                             PanelDtype::kBf16Compute};

struct Case {
  std::int64_t m, n, k;
  PanelDtype dtype;
  Guarded a, b, scale, bias, residual, start;
  Case(std::int64_t rows, std::int64_t columns, std::int64_t depth, PanelDtype type)
      : m(rows),
        n(columns),
        k(depth),
        dtype(type),
        a(Guarded::random(rows * (depth + 3), 1)),
        b(packed_bytes(type, columns, depth) / 4),
        scale(panels_of(columns) * kPanel, kNan),
        bias(Guarded::random(columns, 2)),
        residual(Guarded::random(rows * columns, 3)),
        start(Guarded::random(rows * (columns + 5), 4)) {
    const Guarded weights = Guarded::random(columns * depth, 5);
    reference().pack_transposed({.from = weights.data(),
                                 .ldf = depth,
                                 .n = columns,
                                 .k = depth,
                                 .to = {b.data(), type, scale.data()}},
                                {0, panels_of(columns)});
    for (std::int64_t i = columns; i < scale.size(); ++i)
      scale[i] = kNan;                    // what no column owns
    for (std::int64_t r = 0; r < m; ++r)  // the space between rows is poisoned
      for (std::int64_t i = k; i < k + 3; ++i)
        a[r * (k + 3) + i] = kNan;
  }
  Panels panels() const {
    return {b.data(), dtype, dtype == PanelDtype::kInt8 ? scale.data() : nullptr};
  }
  Gemm gemm(Guarded& c) const {
    return Gemm{.m = m,
                .n = n,
                .k = k,
                .a = a.data(),
                .lda = k + 3,
                .b = panels(),
                .c = c.data(),
                .ldc = n + 5,
                .ldr = n};
  }
};

enum class DtypeEnding { kPlain, kBoth, kAccumulate };
constexpr std::array kDtypeEndings{DtypeEnding::kPlain, DtypeEnding::kBoth,
                                   DtypeEnding::kAccumulate};

Guarded run(const Ops& ops,
            const Case& p,
            DtypeEnding ending,
            std::int64_t m_step,
            std::int64_t panel_step) {
  Guarded c(p.start);
  Gemm g = p.gemm(c);
  if (ending == DtypeEnding::kBoth) {
    g.bias = p.bias.data();
    g.residual = p.residual.data();
  }
  g.accumulate = ending == DtypeEnding::kAccumulate;
  const std::int64_t panels = panels_of(p.n);
  for (std::int64_t m = 0; m < p.m; m += m_step)
    for (std::int64_t panel = 0; panel < panels; panel += panel_step)
      ops.gemm(g, {m, std::min(p.m, m + m_step)}, {panel, std::min(panels, panel + panel_step)});
  return c;
}

Guarded run(const Ops& ops, const Case& p, DtypeEnding ending) {
  return run(ops, p, ending, p.m, panels_of(p.n));
}

class GemmDtype : public VectorLevel {
 protected:
  float one(PanelDtype dtype, std::vector<float> a, std::vector<float> w) const {
    const auto k = static_cast<std::int64_t>(a.size());
    Guarded room(packed_bytes(dtype, 1, k) / 4), scales(kPanel), c(1, 9.0f);
    level().pack_transposed(
        {.from = w.data(), .ldf = k, .n = 1, .k = k, .to = {room.data(), dtype, scales.data()}},
        {0, 1});
    const bool scaled = dtype == PanelDtype::kInt8;
    level().gemm(Gemm{.m = 1,
                      .n = 1,
                      .k = k,
                      .a = a.data(),
                      .lda = k,
                      .b = {room.data(), dtype, scaled ? scales.data() : nullptr},
                      .c = c.data(),
                      .ldc = 1},
                 {0, 1}, {0, 1});
    return c[0];
  }
};
TROUPE_ALL_LEVELS(GemmDtype);

TEST_P(GemmDtype, OneOutputByHand) {
  // 1 + 2^-8 is a tie: it becomes 1. 1 + 3 * 2^-8 becomes 1 + 2^-6.
  const std::vector<float> w{1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 4.0f}, a{3.0f, 64.0f, 1.0f};
  EXPECT_EQ(one(PanelDtype::kBf16, a, w), 3.0f + 64.0f + 1.0f + 4.0f);
  EXPECT_EQ(one(PanelDtype::kBf16Compute, a, w), 3.0f + 64.0f + 1.0f + 4.0f);
  // Scale 2; -63.5 is a tie.
  EXPECT_EQ(one(PanelDtype::kInt8, {2.0f, 1.0f, 1.0f}, {254.0f, -127.0f, 2.0f}), 382.0f);
}

// The storage keeps A as it is; the class of pairs rounds it.
TEST_P(GemmDtype, OnlyPairsRoundTheRows) {
  EXPECT_EQ(one(PanelDtype::kBf16, {1.0f + 0x1p-8f}, {2.0f}), 2.0f + 0x1p-7f);
  EXPECT_EQ(one(PanelDtype::kBf16Compute, {1.0f + 0x1p-8f}, {2.0f}), 2.0f);
  EXPECT_EQ(one(PanelDtype::kBf16Compute, {1.0f + 0x1.8p-7f}, {2.0f}), 2.0f + 0x1p-5f);
}

// 2^24 takes no 1, so the end tells which came first. Pairs: k = 1, 0, 3, 2.
TEST_P(GemmDtype, OrderOfTheChainByHand) {
  const std::vector<float> w(4, 1.0f);
  const std::vector<float> last_late{0.0f, 0x1p24f, -0x1p24f, 1.0f};
  const std::vector<float> last_early{0.0f, 0x1p24f, 1.0f, -0x1p24f};
  for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16}) {
    EXPECT_EQ(one(dtype, last_late, w), 1.0f) << name_of(dtype);
    EXPECT_EQ(one(dtype, last_early, w), 0.0f) << name_of(dtype);
  }
  EXPECT_EQ(one(PanelDtype::kBf16Compute, last_late, w), 0.0f);
  EXPECT_EQ(one(PanelDtype::kBf16Compute, last_early, w), 1.0f);
}

TEST_P(GemmDtype, NansInfinitiesAndDenormals) {
  for (const PanelDtype dtype : kStored) {
    EXPECT_TRUE(std::isnan(one(dtype, {1.0f, 1.0f}, {kNan, 1.0f}))) << name_of(dtype);
    EXPECT_TRUE(std::isnan(one(dtype, {kNan, 1.0f}, {1.0f, 1.0f}))) << name_of(dtype);
    EXPECT_EQ(one(dtype, {kInf, 1.0f}, {1.0f, 1.0f}), kInf) << name_of(dtype);
    EXPECT_EQ(one(dtype, {1.0f, 1e-39f}, {1e-39f, 1e38f}), 0.0f) << name_of(dtype);
  }
  EXPECT_EQ(one(PanelDtype::kBf16, {1.0f}, {-kInf}), -kInf);
  EXPECT_EQ(one(PanelDtype::kBf16Compute, {1.0f}, {-kInf}), -kInf);
  EXPECT_TRUE(std::isnan(one(PanelDtype::kInt8, {1.0f}, {-kInf}))) << "int8 has no infinity";
}

TEST_P(GemmDtype, SameBitsAsReferenceForEveryTail) {
  for (const PanelDtype dtype : kStored)
    for (std::int64_t m = 1; m <= 17; ++m)
      for (const std::int64_t n : {1, 15, 17, 33, 79, 130}) {
        const Case p(m, n, 5 + 2 * m + n % 6, dtype);
        for (const DtypeEnding ending : kDtypeEndings)
          EXPECT_TRUE(same_bits(run(reference(), p, ending), run(level(), p, ending)))
              << name_of(dtype) << " m " << m << " n " << n << " ending "
              << static_cast<int>(ending);
      }
}

TEST_P(GemmDtype, SameBitsAsReferenceForLongChainsAndManyRows) {
  for (const PanelDtype dtype : kStored)
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{43, 100, 1001},
                                  {130, 33, 385},
                                  {29, 600, 130},
                                  {15, 40, 3002},
                                  {9, 17, 5003},
                                  {120, 20, 580},
                                  {3, 200, 2049}}) {
      const Case p(m, n, k, dtype);
      for (const DtypeEnding ending : kDtypeEndings)
        EXPECT_TRUE(same_bits(run(reference(), p, ending), run(level(), p, ending)))
            << name_of(dtype) << " " << m << " x " << n << " x " << k;
    }
}

TEST_P(GemmDtype, RowsAndRangesChangeNoBit) {
  for (const PanelDtype dtype : kStored)
    for (const std::int64_t k : {37, 700}) {
      const Case p(61, 147, k, dtype);
      const Guarded whole = run(level(), p, DtypeEnding::kBoth);
      for (const auto& [rows, panels] : {std::pair<std::int64_t, std::int64_t>{1, 10},
                                         {1, 3},
                                         {2, 1},
                                         {7, 4},
                                         {9, 10},
                                         {16, 5},
                                         {33, 7}})
        EXPECT_TRUE(same_bits(whole, run(level(), p, DtypeEnding::kBoth, rows, panels)))
            << name_of(dtype) << " k " << k << " rows at once " << rows << " panels " << panels;
    }
}

TEST_P(GemmDtype, RowsAsLongAsTheRoomForPairsAndLonger) {
  for (const std::int64_t k : {65535, 65536, 65601}) {
    const Case p(2, 3, k, PanelDtype::kBf16Compute);
    EXPECT_TRUE(
        same_bits(run(reference(), p, DtypeEnding::kBoth), run(level(), p, DtypeEnding::kBoth)))
        << k;
  }
}

// The residual may be C itself: then nobody may park a sum there.
TEST_P(GemmDtype, ResidualInPlace) {
  for (const PanelDtype dtype : kStored)
    for (const std::int64_t m : {2, 40})
      for (const std::int64_t k : {35, 1300}) {
        const Case p(m, 50, k, dtype);
        Guarded expected(p.start), actual(p.start);
        Gemm g = p.gemm(expected);
        g.residual = p.start.data();
        g.ldr = g.ldc;
        reference().gemm(g, {0, m}, {0, panels_of(p.n)});
        g.c = actual.data();
        g.residual = actual.data();
        level().gemm(g, {0, m}, {0, panels_of(p.n)});
        EXPECT_TRUE(same_bits(expected, actual)) << name_of(dtype) << " m " << m << " k " << k;
      }
}

}  // namespace
}  // namespace troupe::kernels::test
