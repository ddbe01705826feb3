// Products of bfloat16 on tensor cores: the bits of a chain of mma.m16n8k16 over ascending k, close
// to the reference, which adds in another order, and one row's bits whatever else is in the call.
#include "kernels/tensor_core.hpp"
#include "tests/unit/kernels/cuda/fixture.hpp"

namespace troupe::kernels::cuda::test {
namespace {

constexpr PanelDtype kDtype = PanelDtype::kBf16Compute;

struct Bf16Product {
  std::int64_t m, n, k, lda;
  bool by_columns;
  Array<float> a;
  std::vector<float> w;
  Array<std::uint32_t> b;
  Array<float> bias, residual, c;

  Bf16Product(std::int64_t rows,
              std::int64_t columns,
              std::int64_t depth,
              std::int64_t pad = 0,
              bool transposed = false)
      : m(rows),
        n(columns),
        k(depth),
        lda((transposed ? rows : depth) + pad),
        by_columns(transposed),
        a(normal((transposed ? depth : rows) * lda, 1)),
        w(normal(columns * depth, 2)),
        b(pack()),
        bias(normal(columns, 3)),
        residual(normal(rows * columns, 4)),
        c(normal(rows * (columns + 1), 5)) {}

  std::vector<std::uint32_t> pack() const {
    std::vector<std::uint32_t> out(static_cast<std::size_t>(packed_bytes(kDtype, n, k) / 4));
    reference().pack_transposed(
        {.from = w.data(), .ldf = k, .n = n, .k = k, .to = {out.data(), kDtype}},
        {0, panels_of(n)});
    return out;
  }
  Gemm gemm(bool there, float* to) {
    return {.m = m,
            .n = n,
            .k = k,
            .a = there ? a.data() : a.host().data(),
            .lda = lda,
            .b = {there ? b.data() : b.host().data(), kDtype},
            .a_by_columns = by_columns,
            .c = to,
            .ldc = n + 1};
  }
  float a_at(std::int64_t row, std::int64_t i) {
    return a.host()[static_cast<std::size_t>(by_columns ? i * lda + row : row * lda + i)];
  }
  // The chain that makes an output, from `sum` on.
  float chain(std::int64_t row, std::int64_t column, float sum) {
    const TensorCore& core = tensor_core_of(device()->info().major);
    const auto factor = [](float x) {
      const bool denormal = std::abs(x) < std::numeric_limits<float>::min();
      return denormal ? std::uint16_t{0} : to_bf16(x);
    };
    for (std::int64_t first = 0; first < k; first += kTensorDepth) {
      std::array<std::uint16_t, kTensorDepth> left{}, right{};
      for (std::int64_t i = first; i < std::min<std::int64_t>(k, first + kTensorDepth); ++i) {
        left[static_cast<std::size_t>(i - first)] = factor(a_at(row, i));
        right[static_cast<std::size_t>(i - first)] =
            factor(w[static_cast<std::size_t>(column * k + i)]);
      }
      sum = std::bit_cast<float>(tensor_core_sum(core, std::bit_cast<std::uint32_t>(sum),
                                                 TensorFactors(left), TensorFactors(right)));
    }
    return sum;
  }
  // What 1e-5 is relative to.
  double size_of(std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i)
      sum += std::abs(static_cast<double>(a_at(row, i)) *
                      static_cast<double>(w[static_cast<std::size_t>(column * k + i)]));
    return sum;
  }
};

class CudaGemmBf16 : public OnDevice {
 protected:
  enum class Ending { kPlain, kBoth, kAccumulate };
  static void close_to_reference(Bf16Product& p, Ending ending) {
    std::vector<float> expected(p.c.host());
    Array<float> to(p.c.host());
    Gemm here = p.gemm(false, expected.data()), there = p.gemm(true, to.data());
    here.accumulate = there.accumulate = ending == Ending::kAccumulate;
    if (ending == Ending::kBoth) {
      here.bias = p.bias.host().data(), there.bias = p.bias.data();
      here.residual = p.residual.host().data(), there.residual = p.residual.data();
      here.ldr = there.ldr = p.n;
    }
    reference().gemm(here, {0, p.m}, {0, panels_of(p.n)});
    ops().gemm(there, {0, p.m}, {0, panels_of(p.n)});
    const std::vector<float> actual = to.read();
    for (std::int64_t row = 0; row < p.m; ++row)
      for (std::int64_t column = 0; column <= p.n; ++column) {
        const auto at = static_cast<std::size_t>(row * (p.n + 1) + column);
        const double room = column < p.n ? 1e-5 * (p.size_of(row, column) + 1) : 0.0;
        ASSERT_NEAR(expected[at], actual[at], room)
            << p.m << " x " << p.n << " x " << p.k << " at " << row << ", " << column;
      }
  }
  // Panels [begin, end) of `row` out of a product of rows [first, last).
  static std::vector<float> row_of(Bf16Product& p,
                                   std::int64_t row,
                                   std::int64_t first,
                                   std::int64_t last,
                                   std::int64_t panel_begin,
                                   std::int64_t panel_end) {
    Array<float> to(p.c.host());
    ops().gemm(p.gemm(true, to.data()), {first, last}, {panel_begin, panel_end});
    const std::vector<float> all = to.read();
    const std::int64_t end = std::min(panel_end * kPanel, p.n);
    return {all.begin() + row * (p.n + 1) + panel_begin * kPanel,
            all.begin() + row * (p.n + 1) + end};
  }
};

TEST_F(CudaGemmBf16, OneOutputByHand) {
  // In A as in W 1 + 2^-8 is a tie and becomes 1, 1 + 3 * 2^-8 becomes 1 + 2^-6; a denormal is 0.
  const std::vector<float> rows{1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 1e-39f};
  const std::vector<float> w{2.0f, 4.0f, 3e38f};
  std::vector<std::uint32_t> room(32);
  reference().pack_transposed(
      {.from = w.data(), .ldf = 3, .n = 1, .k = 3, .to = {room.data(), kDtype}}, {0, 1});
  for (const std::int64_t m : {1, 40, 130}) {
    std::vector<float> all;
    for (std::int64_t row = 0; row < m; ++row)
      all.insert(all.end(), rows.begin(), rows.end());
    Array<float> a(all), c(static_cast<std::size_t>(m));
    Array<std::uint32_t> b(room);
    ops().gemm({.m = m,
                .n = 1,
                .k = 3,
                .a = a.data(),
                .lda = 3,
                .b = {b.data(), kDtype},
                .c = c.data(),
                .ldc = 1},
               {0, m}, {0, 1});
    for (const float x : c.read())
      EXPECT_EQ(x, 2.0f + 4.0f + 0x1p-4f) << m;
  }
}

TEST_F(CudaGemmBf16, CloseToTheReference) {
  for (const std::int64_t m : {1, 7, 16, 17, 32, 33, 70, 140})
    for (const std::int64_t k : {1, 15, 32, 37, 128, 131, 650}) {
      if (k > 131 && m != 7 && m != 33 && m != 140) continue;
      Bf16Product p(m, 37, k, m % 2 * 3);
      close_to_reference(p, Ending::kBoth);
      close_to_reference(p, Ending::kAccumulate);
    }
  Bf16Product transposed(70, 90, 37, 1, true);
  close_to_reference(transposed, Ending::kBoth);
  Bf16Product two_panels(9, 16 * 199 + 3, 20);
  close_to_reference(two_panels, Ending::kPlain);
}

TEST_F(CudaGemmBf16, EachOutputIsAChainOverAscendingK) {
  for (const std::int64_t m : {1, 7, 17, 33, 140})
    for (const std::int64_t k : {1, 15, 37, 131, 650}) {
      Bf16Product p(m, 37, k, m % 2 * 3);
      for (const bool goes_on : {false, true}) {
        Array<float> to(p.c.host());
        Gemm g = p.gemm(true, to.data());
        g.accumulate = goes_on;
        ops().gemm(g, {0, m}, {0, panels_of(p.n)});
        const std::vector<float> actual = to.read();
        for (std::int64_t row = 0; row < m; row += 5)
          for (std::int64_t column = 0; column < p.n; ++column) {
            const auto at = static_cast<std::size_t>(row * (p.n + 1) + column);
            ASSERT_EQ(actual[at], p.chain(row, column, goes_on ? p.c.host()[at] : 0.0f))
                << m << " x " << p.n << " x " << k << " at " << row << ", " << column;
          }
      }
    }
}

// One row alone, among few, among many, and in parts of the panels.
TEST_F(CudaGemmBf16, BitsOfARowDependOnNothingElse) {
  Bf16Product p(130, 150, 300, 1);
  const std::int64_t panels = panels_of(p.n);
  const std::vector<float> alone = row_of(p, 5, 5, 6, 0, panels);
  for (const std::int64_t rows : {7, 8, 9, 16, 27, 60, 124})
    EXPECT_EQ(row_of(p, 5, 5, 5 + rows, 0, panels), alone) << rows;
  for (const std::int64_t first : {0, 2, 4})
    EXPECT_EQ(row_of(p, 5, first, 130, 0, panels), alone) << first;
  for (const std::int64_t rows : {1, 20, 60}) {
    const std::vector<float> part = row_of(p, 5, 5, 5 + rows, 3, 8);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), alone.begin() + 3 * kPanel)) << rows;
  }
}

// Enough columns for the tiles of 128 x 256 and, in half of them, for those of 128 x 128; few rows
// with several panels to a block.
TEST_F(CudaGemmBf16, NorOnTheTile) {
  Bf16Product p(130, 59 * 256, 37, 1);
  const std::int64_t panels = panels_of(p.n), half = panels / 2;
  const std::vector<float> alone = row_of(p, 5, 5, 6, 0, panels);
  for (const std::int64_t rows : {20, 60, 125})
    EXPECT_EQ(row_of(p, 5, 5, 5 + rows, 0, panels), alone) << rows;
  const std::vector<float> part = row_of(p, 5, 0, 130, half, panels);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), alone.begin() + half * kPanel));
}

// More rows than the workspace holds at a time (on the emulated device, which has 1 MiB: 128).
TEST_F(CudaGemmBf16, RowsThatTheWorkspaceDoesNotHold) {
  Bf16Product p(300, 20, 2050);
  for (const std::int64_t row : {0, 127, 128, 255, 256, 299})
    EXPECT_EQ(row_of(p, row, 0, 300, 0, 2), row_of(p, row, row, row + 1, 0, 2)) << row;
}

// C, bias and residual that can be touched four numbers at a time, and such that cannot.
TEST_F(CudaGemmBf16, PlacesOfTheOutputsChangeNoBit) {
  for (const std::int64_t m : {3, 20, 140}) {
    Bf16Product p(m, 44, 40);
    std::vector<float> apart;  // the residual with one more number to a row
    for (std::int64_t row = 0; row < m; ++row) {
      const auto first = p.residual.host().begin() + row * p.n;
      apart.insert(apart.end(), first, first + p.n);
      apart.push_back(kNan);
    }
    Array<float> wide(apart);
    const auto run = [&](std::int64_t ld, std::int64_t begin, bool odd = false) {
      Array<float> to(static_cast<std::size_t>(m * ld + begin), 7.0f);
      Gemm g = p.gemm(true, to.data() + begin);
      g.ldc = ld, g.bias = p.bias.data();
      g.residual = odd ? wide.data() : p.residual.data(), g.ldr = odd ? p.n + 1 : p.n;
      ops().gemm(g, {0, m}, {0, 3});
      const std::vector<float> all = to.read();
      std::vector<float> out;
      for (std::int64_t row = 0; row < m; ++row) {
        const auto first = all.begin() + begin + row * ld;
        out.insert(out.end(), first, first + p.n);
        EXPECT_TRUE(std::all_of(first + p.n, first + ld, [](float x) { return x == 7.0f; }));
      }
      return out;
    };
    const std::vector<float> straight = run(48, 0);
    EXPECT_EQ(run(45, 0), straight) << m;
    EXPECT_EQ(run(48, 1), straight) << m;
    EXPECT_EQ(run(48, 0, true), straight) << m;
  }
}

TEST_F(CudaGemmBf16, NansAndInfinitiesStayInTheirRow) {
  for (const std::int64_t m : {4, 50, 130}) {
    Bf16Product p(m, 20, 35);
    std::vector<float> a = p.a.host();
    a[0] = kNan;
    a[static_cast<std::size_t>(2 * p.lda + 34)] = kInf;
    device()->memory().upload(p.a.data(), a.data(), a.size() * sizeof(float));
    Array<float> to(p.c.host());
    ops().gemm(p.gemm(true, to.data()), {0, m}, {0, 2});
    const std::vector<float> out = to.read();
    for (std::int64_t row = 0; row < 4; ++row)
      for (std::int64_t column = 0; column < 20; ++column) {
        const float x = out[static_cast<std::size_t>(row * 21 + column)];
        EXPECT_EQ(std::isnan(x), row == 0) << row;
        EXPECT_EQ(std::isinf(x), row == 2) << row;
      }
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
