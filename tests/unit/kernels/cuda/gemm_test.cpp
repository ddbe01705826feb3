// Products: the bits of the reference for every storage of B, both ways of A, all forms that the
// device has for few and many rows, tails, ranges, and what is special among numbers.
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <optional>

namespace troupe::kernels::cuda::test {
namespace {

struct Layout {
  std::optional<PanelDtype> dtype;  // none: B as it lies
  bool by_columns = false;
  std::int64_t pad = 3;  // of A's and B's leading dimensions: 0 mod 4 allows wide loads
};

enum class Ending { kPlain, kBoth, kAccumulate };

class Product {
 public:
  Product(std::int64_t rows, std::int64_t columns, std::int64_t depth, Layout layout)
      : m(rows),
        n(columns),
        k(depth),
        layout_(layout),
        lda_((layout.by_columns ? rows : depth) + layout.pad),
        a(normal((layout.by_columns ? depth : rows) * lda_, 1)),
        b(pack()),
        scale(scales_),
        bias(normal(columns, 2)),
        residual(normal(rows * columns, 3)),
        c(normal(rows * (columns + 5), 4)) {}

  // The part of the product on the device and by the reference, and whether these are the same.
  ::testing::AssertionResult same_as_reference(Ending ending,
                                               std::int64_t m_begin,
                                               std::int64_t m_end,
                                               std::int64_t panel_begin,
                                               std::int64_t panel_end) {
    Array<float> to(c.host());
    device()->ops().gemm(gemm(ending, true, to.data()), {m_begin, m_end}, {panel_begin, panel_end});
    std::vector<float> expected(c.host());
    reference().gemm(gemm(ending, false, expected.data()), {m_begin, m_end},
                     {panel_begin, panel_end});
    return same(to, expected);
  }
  ::testing::AssertionResult same_as_reference(Ending ending) {
    return same_as_reference(ending, 0, m, 0, panels_of(n));
  }

  std::int64_t m, n, k;

 private:
  Layout layout_;
  std::int64_t lda_;
  std::vector<float> scales_;

 public:
  Array<float> a;
  Array<std::uint32_t> b;
  Array<float> scale, bias, residual, c;

 private:
  std::vector<std::uint32_t> pack() {
    scales_.assign(static_cast<std::size_t>(panels_of(n) * kPanel), 1.0f);
    std::vector<float> w = normal(n * k, 5);
    std::vector<std::uint32_t> out;
    if (!layout_.dtype) {
      w = normal(k * (n + layout_.pad), 6);
      out.resize(w.size());
      std::memcpy(out.data(), w.data(), w.size() * sizeof(float));
    } else {
      out.resize(static_cast<std::size_t>(packed_bytes(*layout_.dtype, n, k) / 4));
      reference().pack_transposed({.from = w.data(),
                                   .ldf = k,
                                   .n = n,
                                   .k = k,
                                   .to = {out.data(), *layout_.dtype, scales_.data()}},
                                  {0, panels_of(n)});
    }
    return out;
  }
  Gemm gemm(Ending ending, bool there, float* to) {
    const auto at = [&](Array<float>& x) { return there ? x.data() : x.host().data(); };
    const PanelDtype dtype = layout_.dtype.value_or(PanelDtype::kF32);
    Gemm g{.m = m,
           .n = n,
           .k = k,
           .a = at(a),
           .lda = lda_,
           .b = {there ? b.data() : b.host().data(), dtype,
                 dtype == PanelDtype::kInt8 ? at(scale) : nullptr},
           .a_by_columns = layout_.by_columns,
           .ldb = layout_.dtype ? 0 : n + layout_.pad,
           .c = to,
           .ldc = n + 5};
    if (ending == Ending::kBoth) {
      g.bias = at(bias);
      g.residual = at(residual);
      g.ldr = n;
    }
    g.accumulate = ending == Ending::kAccumulate;
    return g;
  }
};

class CudaGemm : public OnDevice {};

constexpr PanelDtype kStored[] = {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8};

// 2^24 takes no 1, so the end tells which came first.
TEST_F(CudaGemm, OrderOfTheChainByHand) {
  Array<float> w(4, 1.0f), a(std::vector<float>{0.0f, 0x1p24f, -0x1p24f, 1.0f}), panels(64), c(17);
  ops().pack_transposed({.from = w.data(), .ldf = 4, .n = 1, .k = 4, .to = panels.data()}, {0, 1});
  ops().gemm({.m = 1,
              .n = 1,
              .k = 4,
              .a = a.data(),
              .lda = 4,
              .b = panels.data(),
              .c = c.data(),
              .ldc = 1},
             {0, 1}, {0, 1});
  EXPECT_EQ(c.read()[0], 1.0f);
}

TEST_F(CudaGemm, FewRowsOfEveryStorage) {
  for (const PanelDtype dtype : kStored)
    for (const std::int64_t m : {1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 150})
      for (const std::int64_t k : {1, 5, 128, 131, 515}) {
        if (k > 131 && m > 3) continue;
        for (const std::int64_t pad : {0, 3}) {
          Product p(m, 37, k, {dtype, false, pad});
          for (const Ending ending : {Ending::kBoth, Ending::kAccumulate})
            EXPECT_TRUE(p.same_as_reference(ending))
                << name_of(dtype) << " " << m << " x " << k << " " << static_cast<int>(ending);
        }
      }
}

// More stages than shared memory holds at once.
TEST_F(CudaGemm, FewRowsOfLongColumns) {
  for (const PanelDtype dtype : kStored)
    for (const std::int64_t m : {1, 6}) {
      Product p(m, 16, 1500, {dtype, false, 0});
      EXPECT_TRUE(p.same_as_reference(Ending::kPlain)) << name_of(dtype) << m;
    }
}

TEST_F(CudaGemm, TwoPanelsOfABlock) {
  for (const PanelDtype dtype : kStored)
    for (const std::int64_t m : {5, 13, 25}) {
      Product p(m, 16 * 199 + 3, 21, {dtype, false, 3});
      EXPECT_TRUE(p.same_as_reference(Ending::kPlain)) << name_of(dtype) << m;
      EXPECT_TRUE(p.same_as_reference(Ending::kBoth, 0, m, 1, 200)) << name_of(dtype) << m;
    }
}

TEST_F(CudaGemm, ManyRowsOfEveryLayout) {
  for (const std::optional<PanelDtype> dtype :
       {std::optional<PanelDtype>{}, {PanelDtype::kF32}, {PanelDtype::kBf16}, {PanelDtype::kInt8}})
    for (const bool by_columns : {false, true})
      for (const std::int64_t m : {1, 33, 200})
        for (const std::int64_t k : {1, 6, 16, 37}) {
          if (m < 200 && !by_columns && dtype) continue;  // few rows
          if (m == 200 && k % 2 == 0 && k != 6) continue;
          for (const std::int64_t pad : {0, 3}) {
            Product p(m, 83, k, {dtype, by_columns, pad});
            for (const Ending ending : {Ending::kBoth, Ending::kAccumulate})
              EXPECT_TRUE(p.same_as_reference(ending))
                  << (dtype ? name_of(*dtype) : "plain") << by_columns << " " << m << " x " << k;
          }
        }
}

// Enough tiles for the middle and the large form.
TEST_F(CudaGemm, LargerTiles) {
  for (const std::optional<PanelDtype> dtype :
       {std::optional<PanelDtype>{}, {PanelDtype::kF32}, {PanelDtype::kBf16}, {PanelDtype::kInt8}})
    for (const bool by_columns : {false, true}) {
      Product middle(197, 64 * 30 - 4, 19, {dtype, by_columns, by_columns ? 1 : 0});
      EXPECT_TRUE(middle.same_as_reference(Ending::kPlain)) << by_columns;
      Product large(257, 128 * 40 - 4, 11, {dtype, by_columns, by_columns ? 3 : 1});
      EXPECT_TRUE(large.same_as_reference(Ending::kPlain)) << by_columns;
    }
}

TEST_F(CudaGemm, AnyPartOfRowsAndPanels) {
  for (const std::optional<PanelDtype> dtype :
       {std::optional<PanelDtype>{}, {PanelDtype::kF32}, {PanelDtype::kBf16}, {PanelDtype::kInt8}})
    for (const bool by_columns : {false, true}) {
      Product p(90, 150, 20, {dtype, by_columns, 2});
      EXPECT_TRUE(p.same_as_reference(Ending::kBoth, 3, 88, 1, 9)) << by_columns;
      EXPECT_TRUE(p.same_as_reference(Ending::kBoth, 4, 9, 2, 10)) << by_columns;
      EXPECT_TRUE(p.same_as_reference(Ending::kAccumulate, 5, 5, 0, 10)) << by_columns;
      EXPECT_TRUE(p.same_as_reference(Ending::kAccumulate, 0, 90, 4, 4)) << by_columns;
    }
}

TEST_F(CudaGemm, NansInfinitiesAndDenormals) {
  for (const PanelDtype dtype : kStored)
    for (const std::int64_t m : {4, 200})
      for (const float special : {kNan, kInf, 1e-39f, -1e-41f, 3e38f}) {
        Product p(m, 40, 9, {dtype, false, 3});
        std::vector<float> values = p.a.host();
        for (std::size_t i = 0; i < values.size(); i += 17)
          values[i] = special;
        p.a.host() = values;
        device()->memory().upload(p.a.data(), values.data(), values.size() * sizeof(float));
        EXPECT_TRUE(p.same_as_reference(Ending::kPlain)) << name_of(dtype) << special;
      }
}

TEST_F(CudaGemm, ResidualMayBeC) {
  for (const std::int64_t m : {2, 40}) {
    Array<float> a(normal(m * 24, 1)), w(normal(24 * 20, 2)), c(normal(m * 20, 3));
    std::vector<float> panels(static_cast<std::size_t>(packed_size(20, 24)));
    reference().pack_plain(
        {.from = w.host().data(), .ldf = 20, .n = 20, .k = 24, .to = panels.data()}, {0, 2});
    Array<float> b(panels);
    Gemm g{.m = m, .n = 20, .k = 24, .a = a.host().data(), .lda = 24, .b = panels.data()};
    g.c = c.host().data(), g.ldc = g.ldr = 20, g.residual = g.c;
    reference().gemm(g, {0, m}, {0, 2});
    g.a = a.data(), g.b = b.data(), g.c = c.data(), g.residual = g.c;
    ops().gemm(g, {0, m}, {0, 2});
    EXPECT_TRUE(same(c, c.host())) << m;
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
