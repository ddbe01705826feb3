// Products: hand-worked values, the same bits on every level, and no dependence on rows or ranges.
#include "tests/unit/kernels/support.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::kernels::test {
namespace {

struct Product {
  std::int64_t m, n, k;
  Guarded a, b, bias, residual, start;
  Product(std::int64_t rows, std::int64_t columns, std::int64_t depth)
      : m(rows),
        n(columns),
        k(depth),
        a(Guarded::random(rows * (depth + 3), 1)),
        b(packed_size(columns, depth)),
        bias(Guarded::random(columns, 2)),
        residual(Guarded::random(rows * columns, 3)),
        start(Guarded::random(rows * (columns + 5), 4)) {
    const Guarded weights = Guarded::random(columns * depth, 5);
    reference().pack_transposed(
        {.from = weights.data(), .ldf = depth, .n = columns, .k = depth, .to = b.data()},
        {0, panels_of(columns)});
    for (std::int64_t r = 0; r < m; ++r)  // the space between rows is poisoned
      for (std::int64_t i = k; i < k + 3; ++i)
        a[r * (k + 3) + i] = kNan;
  }
  Gemm gemm(Guarded& c) const {
    return Gemm{.m = m,
                .n = n,
                .k = k,
                .a = a.data(),
                .lda = k + 3,
                .b = b.data(),
                .c = c.data(),
                .ldc = n + 5,
                .ldr = n};
  }
};

enum class Ending { kPlain, kBias, kResidual, kBoth, kAccumulate };
constexpr std::array kEndings{Ending::kPlain, Ending::kBias, Ending::kResidual, Ending::kBoth,
                              Ending::kAccumulate};

Guarded run(
    const Ops& ops, const Product& p, Ending ending, std::int64_t m_step, std::int64_t panel_step) {
  Guarded c(p.start);
  Gemm g = p.gemm(c);
  if (ending == Ending::kBias || ending == Ending::kBoth) g.bias = p.bias.data();
  if (ending == Ending::kResidual || ending == Ending::kBoth) g.residual = p.residual.data();
  g.accumulate = ending == Ending::kAccumulate;
  const std::int64_t panels = panels_of(p.n);
  for (std::int64_t m = 0; m < p.m; m += m_step)
    for (std::int64_t panel = 0; panel < panels; panel += panel_step)
      ops.gemm(g, {m, std::min(p.m, m + m_step)}, {panel, std::min(panels, panel + panel_step)});
  return c;
}

Guarded run(const Ops& ops, const Product& p, Ending ending) {
  return run(ops, p, ending, p.m, panels_of(p.n));
}

class GemmAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(GemmAllLevels);

TEST_P(GemmAllLevels, TwoByTwoByHand) {
  // [1 2 3; 4 5 6] * [7 8; 9 10; 11 12] + [0.5 -0.5] + [1 2; 3 4]
  const std::array<float, 6> a{1, 2, 3, 4, 5, 6};
  const std::array<float, 6> x{7, 8, 9, 10, 11, 12};
  const std::array<float, 2> bias{0.5f, -0.5f};
  const std::array<float, 4> residual{1, 2, 3, 4};
  Guarded panels(packed_size(2, 3));
  level().pack_plain({.from = x.data(), .ldf = 2, .n = 2, .k = 3, .to = panels.data()}, {0, 1});
  Guarded c(4);
  level().gemm(Gemm{.m = 2,
                    .n = 2,
                    .k = 3,
                    .a = a.data(),
                    .lda = 3,
                    .b = panels.data(),
                    .c = c.data(),
                    .ldc = 2,
                    .bias = bias.data(),
                    .residual = residual.data(),
                    .ldr = 2},
               {0, 2}, {0, 1});
  EXPECT_EQ(c[0], 58 + 0.5f + 1);
  EXPECT_EQ(c[1], 64 - 0.5f + 2);
  EXPECT_EQ(c[2], 139 + 0.5f + 3);
  EXPECT_EQ(c[3], 154 - 0.5f + 4);
  EXPECT_TRUE(c.guards_intact());
}

// Rounding once per step, over k ascending: 2^24 swallows each later 1, and the fused product keeps
// what a rounded one would lose.
TEST_P(GemmAllLevels, ChainIsFusedAndAscending) {
  const float tiny = 0x1p-12f;
  const std::array<float, 3> a{0x1p24f, 1.0f, 1.0f};
  const std::array<float, 3> ones{1.0f, 1.0f, 1.0f};
  const std::array<float, 2> a2{-1.0f, 1.0f + tiny};
  const std::array<float, 2> x2{1.0f + 2 * tiny, 1.0f + tiny};
  Guarded panels(packed_size(1, 3));
  Guarded c(2);
  level().pack_plain({.from = ones.data(), .ldf = 1, .n = 1, .k = 3, .to = panels.data()}, {0, 1});
  Gemm g{
      .m = 1, .n = 1, .k = 3, .a = a.data(), .lda = 3, .b = panels.data(), .c = c.data(), .ldc = 1};
  level().gemm(g, {0, 1}, {0, 1});
  EXPECT_EQ(c[0], 0x1p24f);
  level().pack_plain({.from = x2.data(), .ldf = 1, .n = 1, .k = 2, .to = panels.data()}, {0, 1});
  g.k = 2;
  g.a = a2.data();
  level().gemm(g, {0, 1}, {0, 1});
  EXPECT_EQ(c[0], tiny * tiny);
}

TEST_P(GemmAllLevels, RowsDoNotDependOnHowManyThereAre) {
  const Product p(37, 83, 401);
  for (const Ending ending : kEndings) {
    const Guarded whole = run(level(), p, ending);
    for (const std::int64_t m_step : {1, 2, 3, 5, 8, 9, 13, 16, 30})
      EXPECT_TRUE(same_bits(whole, run(level(), p, ending, m_step, 100))) << m_step;
  }
}

TEST_P(GemmAllLevels, ColumnsDoNotDependOnTheRangeOfPanels) {
  const Product p(19, 200, 390);
  const Guarded whole = run(level(), p, Ending::kBoth);
  for (const std::int64_t panel_step : {1, 2, 3, 4, 5, 7})
    for (const std::int64_t m_step : {1, 7, 19})
      EXPECT_TRUE(same_bits(whole, run(level(), p, Ending::kBoth, m_step, panel_step)));
}

TEST_P(GemmAllLevels, ResidualMayBeTheOutputItself) {
  for (const std::int64_t m : {1, 6, 20}) {
    const Product p(m, 50, 900);
    Guarded expected(p.start);
    Guarded residual(p.start);
    Gemm g = p.gemm(expected);
    g.residual = residual.data();
    g.ldr = g.ldc;
    level().gemm(g, {0, m}, {0, panels_of(p.n)});
    Guarded in_place(p.start);
    g.c = in_place.data();
    g.residual = in_place.data();
    level().gemm(g, {0, m}, {0, panels_of(p.n)});
    EXPECT_TRUE(same_bits(expected, in_place));
  }
}

TEST_P(GemmAllLevels, ChainGoesOnFromTheOutput) {
  const Product p(11, 40, 64);
  const Guarded whole = run(level(), p, Ending::kPlain);
  Guarded c(p.start);
  Guarded half(packed_size(p.n, 32));
  for (const std::int64_t k_begin : {0, 32}) {
    for (std::int64_t panel = 0; panel < panels_of(p.n); ++panel)
      std::copy_n(p.b.data() + (panel * p.k + k_begin) * kPanel, 32 * kPanel,
                  half.data() + panel * 32 * kPanel);
    Gemm g = p.gemm(c);
    g.k = 32;
    g.a += k_begin;
    g.b = half.data();
    g.accumulate = k_begin > 0;
    level().gemm(g, {0, p.m}, {0, panels_of(p.n)});
  }
  EXPECT_TRUE(same_bits(whole, c));
}

class GemmVectorLevels : public VectorLevel {};
TROUPE_VECTOR_LEVELS(GemmVectorLevels);

TEST_P(GemmVectorLevels, SameBitsAsReferenceForEveryTail) {
  for (std::int64_t m = 1; m <= 17; ++m)
    for (const std::int64_t n : {1, 15, 16, 17, 33, 79, 130}) {
      const Product p(m, n, 7 + 2 * m + n % 5);
      for (const Ending ending : kEndings)
        EXPECT_TRUE(same_bits(run(reference(), p, ending), run(level(), p, ending)))
            << "m " << m << " n " << n << " ending " << static_cast<int>(ending);
    }
}

TEST_P(GemmVectorLevels, SameBitsAsReferenceForLongChainsAndManyRows) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{43, 100, 1000},
                                {130, 33, 385},
                                {29, 1100, 130},
                                {64, 64, 768},
                                {15, 40, 3000},
                                {3, 200, 2049}}) {
    const Product p(m, n, k);
    for (const Ending ending : {Ending::kPlain, Ending::kBoth, Ending::kAccumulate})
      EXPECT_TRUE(same_bits(run(reference(), p, ending), run(level(), p, ending)))
          << m << " x " << n << " x " << k;
  }
}

// The operands of the backward pass: A by columns, B as it lies. The chains are the same ones.
TEST_P(GemmAllLevels, OperandsAsTheyLieGiveTheBitsOfPackedOnes) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {3, 17, 5},
                                {5, 33, 0},
                                {8, 16, 64},
                                {14, 32, 40},
                                {27, 50, 130},
                                {230, 47, 61},
                                {29, 40, 1161},
                                {97, 40, 600}}) {
    const Product p(m, n, k);
    const std::int64_t lda = m + 3, ldb = n + 7;
    Guarded turned(std::max<std::int64_t>(1, k * lda), kNan);
    Guarded plain(std::max<std::int64_t>(1, k * ldb), kNan);
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t r = 0; r < m; ++r)
        turned[i * lda + r] = p.a[r * (k + 3) + i];
      for (std::int64_t c = 0; c < n; ++c)
        plain[i * ldb + c] = p.b[(c / kPanel * k + i) * kPanel + c % kPanel];
    }
    for (const bool accumulate : {false, true}) {
      Guarded expected(p.start);
      Gemm g = p.gemm(expected);
      g.accumulate = accumulate;
      reference().gemm(g, {0, m}, {0, panels_of(n)});
      for (const bool by_columns : {false, true})
        for (const bool as_it_lies : {false, true})
          for (const std::int64_t step : {m, m / 2 + 1}) {
            Guarded c(p.start);
            g.c = c.data();
            g.a_by_columns = by_columns;
            g.a = by_columns ? turned.data() : p.a.data();
            g.lda = by_columns ? lda : k + 3;
            g.b = as_it_lies ? plain.data() : p.b.data();
            g.ldb = as_it_lies ? ldb : 0;
            const std::int64_t half = panels_of(n) / 2;
            for (std::int64_t row = 0; row < m; row += step) {
              level().gemm(g, {row, std::min(m, row + step)}, {0, half});
              level().gemm(g, {row, std::min(m, row + step)}, {half, panels_of(n)});
            }
            EXPECT_TRUE(same_bits(expected, c))
                << m << " x " << n << " x " << k << " by columns " << by_columns << " plain "
                << as_it_lies << " rows at once " << step;
          }
    }
  }
}

// Floats that end where memory ends: a read behind them is a fault.
class LastOfMemory {
 public:
  explicit LastOfMemory(const Guarded& values) {
    const auto bytes = static_cast<std::size_t>(values.size()) * sizeof(float);
    size_ = (bytes + 4095) / 4096 * 4096 + 4096;
    memory_ = static_cast<char*>(
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(memory_ + size_ - 4096, 4096, PROT_NONE), 0);
    data_ = reinterpret_cast<float*>(memory_ + size_ - 4096 - bytes);
    std::copy_n(values.data(), values.size(), data_);
  }
  ~LastOfMemory() { ::munmap(memory_, size_); }
  LastOfMemory(const LastOfMemory&) = delete;
  LastOfMemory& operator=(const LastOfMemory&) = delete;
  const float* data() const { return data_; }

 private:
  std::size_t size_ = 0;
  char* memory_ = nullptr;
  float* data_ = nullptr;
};

TEST_P(GemmVectorLevels, ReadsNothingBehindOperandsAsTheyLie) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{5, 17, 3}, {29, 39, 20}}) {
    const LastOfMemory a(Guarded::random(k * m, 1)), b(Guarded::random(k * n, 2));
    Guarded expected(m * n), actual(m * n);
    Gemm g{.m = m,
           .n = n,
           .k = k,
           .a = a.data(),
           .lda = m,
           .b = b.data(),
           .a_by_columns = true,
           .ldb = n,
           .c = expected.data(),
           .ldc = n};
    reference().gemm(g, {0, m}, {0, panels_of(n)});
    g.c = actual.data();
    level().gemm(g, {0, m}, {0, panels_of(n)});
    EXPECT_TRUE(same_bits(expected, actual)) << m << " x " << n << " x " << k;
  }
}

TEST_P(GemmVectorLevels, NoRowsNoColumnsAndNoDepth) {
  const Product p(20, 20, 10);
  Guarded c(p.start);
  Gemm g = p.gemm(c);
  level().gemm(g, {3, 3}, {0, 2});
  level().gemm(g, {0, 20}, {1, 1});
  EXPECT_TRUE(same_bits(p.start, c));
  g.k = 0;
  level().gemm(g, {0, 20}, {0, 2});
  EXPECT_EQ(c[0], 0.0f);
  EXPECT_EQ(c[19 * 25 + 19], 0.0f);
}

TEST_P(GemmVectorLevels, InfinitiesAndNansTravelAlike) {
  Product p(9, 34, 20);
  p.a[2] = kInf;
  p.a[23 + 5] = kNan;
  p.a[46] = -kInf;
  p.a[47] = kInf;
  p.a[69] = 1e-40f;
  for (const Ending ending : kEndings)
    EXPECT_TRUE(same_bits(run(reference(), p, ending), run(level(), p, ending)));
}

TEST_P(GemmVectorLevels, PackingMovesTheSameNumbers) {
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                             {16, 16},
                             {17, 9},
                             {40, 33},
                             {65, 130},
                             {7, 64},
                             {300, 5}}) {
    const Guarded x = Guarded::random(n * k, 9);
    const std::int64_t panels = panels_of(n);
    Guarded expected(packed_size(n, k), 7.0f);
    Guarded actual(packed_size(n, k), 8.0f);
    reference().pack_transposed({.from = x.data(), .ldf = k, .n = n, .k = k, .to = expected.data()},
                                {0, panels});
    level().pack_transposed({.from = x.data(), .ldf = k, .n = n, .k = k, .to = actual.data()},
                            {0, panels});
    EXPECT_TRUE(same_bits(expected, actual)) << n << " x " << k;
    Guarded actual_plain(packed_size(n, k), 8.0f);
    Guarded expected_plain(packed_size(n, k), 8.0f);
    reference().pack_plain(
        {.from = x.data(), .ldf = n, .n = n, .k = k, .to = expected_plain.data()}, {0, panels});
    for (std::int64_t panel = 0; panel < panels; panel += 2)
      level().pack_plain({.from = x.data(), .ldf = n, .n = n, .k = k, .to = actual_plain.data()},
                         {panel, std::min(panels, panel + 2)});
    EXPECT_TRUE(same_bits(expected_plain, actual_plain)) << n << " x " << k;
  }
}

}  // namespace
}  // namespace troupe::kernels::test
