// Rows that are copied, added, looked up and summed up, and products in pieces: hand-worked values,
// and same bits on every level.
#include "tests/unit/kernels/support.hpp"

#include <algorithm>

namespace troupe::kernels::test {
namespace {

class PlainRowsAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(PlainRowsAllLevels);

Guarded counted(std::int64_t count) {
  Guarded out(count);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(i);
  return out;
}

std::vector<float> values(const Guarded& x) {
  return {x.data(), x.data() + x.size()};
}

TEST_P(PlainRowsAllLevels, CopyRowsGathersAndScatters) {
  const Guarded from = counted(12);  // three rows of two, 4 apart
  const std::int32_t rows[] = {9, 2, 0};
  Guarded to(9, -1.0f);
  CopyRows c{.columns = 2, .from = from.data(), .ldf = 4, .to = to.data(), .ldt = 3};
  c.from_row = rows;
  level().copy_rows(c, {1, 3});
  EXPECT_EQ(values(to), (std::vector<float>{-1, -1, -1, 8, 9, -1, 0, 1, -1}));
  std::fill_n(to.data(), 9, -1.0f);
  c.from_row = nullptr;
  c.to_row = rows;
  level().copy_rows(c, {1, 3});
  EXPECT_EQ(values(to), (std::vector<float>{8, 9, -1, -1, -1, -1, 4, 5, -1}));
  EXPECT_TRUE(to.guards_intact());
}

TEST_P(PlainRowsAllLevels, AddRowsAlsoInPlaceAndZero) {
  Guarded a = counted(8), b(6, 10.0f);
  level().add_rows(
      {.columns = 3, .a = a.data(), .lda = 4, .b = b.data(), .ldb = 3, .out = a.data(), .ldo = 4},
      {1, 2});
  EXPECT_EQ(values(a), (std::vector<float>{0, 1, 2, 3, 14, 15, 16, 7}));
  level().zero(a.data(), {1, 5});
  EXPECT_EQ(values(a), (std::vector<float>{0, 0, 0, 0, 0, 15, 16, 7}));
  EXPECT_TRUE(a.guards_intact() && b.guards_intact());
}

// 3 * (1 + 2^-23) lies halfway between two numbers and goes to the even one. A product below the
// smallest normal number is zero with its sign.
TEST_P(PlainRowsAllLevels, ScaleRoundsOnceAlsoInPlace) {
  Guarded x(40, 5.0f), y(40, 9.0f);
  const float numbers[] = {1.5f, -0.0f, 1.0f + 0x1p-23f, kInf, kNan, -0x1p-126f};
  std::copy_n(numbers, 6, x.data() + 2);
  level().scale(x.data(), 3.0f, y.data(), {2, 39});
  EXPECT_EQ(std::vector<float>(y.data(), y.data() + 6),
            (std::vector<float>{9, 9, 4.5f, -0.0f, 3.0f + 0x1p-21f, kInf}));
  EXPECT_TRUE(std::signbit(y[3]));
  EXPECT_TRUE(std::isnan(y[6]));
  EXPECT_EQ(y[7], -3 * 0x1p-126f);
  EXPECT_EQ(y[38], 15.0f);
  EXPECT_EQ(y[39], 9.0f);
  level().scale(x.data(), 0.5f, x.data(), {1, 8});
  EXPECT_EQ(std::vector<float>(x.data(), x.data() + 4), (std::vector<float>{5, 2.5f, 0.75f, 0}));
  EXPECT_EQ(x[7], 0.0f);
  EXPECT_TRUE(std::signbit(x[7]));
  EXPECT_EQ(x[8], 5.0f);
  EXPECT_TRUE(x.guards_intact() && y.guards_intact());
}

// Two heads of two numbers, a third one stays.
TEST_P(PlainRowsAllLevels, RmsnormOfHeadsByHand) {
  Guarded x(14, 9.0f), weight(2), inv(5, -1.0f);
  const float row[] = {1, 5, 0, 1};  // mean squares 13 and 0.5, with eps 3.5: roots of 16.5 and 4
  std::copy_n(row, 4, x.data() + 7);
  weight[0] = 1.0f;
  weight[1] = 2.0f;
  level().rmsnorm({.heads = 2,
                   .d = 2,
                   .x = x.data(),
                   .ldx = 7,
                   .weight = weight.data(),
                   .eps = 3.5f,
                   .y = x.data(),
                   .ldy = 7,
                   .inv_rms = inv.data(),
                   .ldi = 3},
                  {1, 2});
  EXPECT_NEAR(inv[1], 1.0 / std::sqrt(16.5), 1e-7);
  EXPECT_EQ(inv[4], 0.5f);
  EXPECT_EQ(x[7], inv[1]);
  EXPECT_EQ(x[8], (5.0f * inv[1]) * 2.0f);
  EXPECT_EQ(x[9], 0.0f);
  EXPECT_EQ(x[10], 1.0f);
  EXPECT_EQ(values(inv), (std::vector<float>{-1, inv[1], -1, -1, 0.5f}));
  for (std::int64_t i = 0; i < 14; ++i)
    EXPECT_TRUE(i < 7 || i > 10 ? x[i] == 9.0f : x[i] != 9.0f) << i;
  EXPECT_TRUE(x.guards_intact() && inv.guards_intact());
}

// The embedding as a table and as panels of the head, f32 and rounded to bfloat16.
TEST_P(PlainRowsAllLevels, EmbedRowsOfATableAndOfPanels) {
  constexpr std::int64_t kVocab = 40, kHidden = 21;
  const Guarded table = Guarded::random(kVocab * kHidden, 3);
  const std::int32_t tokens[] = {-7, 39, 0, 17};
  for (const float scale : {1.0f, 3.3f})
    for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16}) {
      Guarded panels(packed_bytes(dtype, kVocab, kHidden) / 4);
      level().pack_transposed({.from = table.data(),
                               .ldf = kHidden,
                               .n = kVocab,
                               .k = kHidden,
                               .to = {panels.data(), dtype}},
                              {0, panels_of(kVocab)});
      EmbedRows e{.hidden = kHidden, .panels = {}, .scale = scale, .tokens = tokens};
      Guarded from_table(4 * kHidden, 5.0f), from_panels(4 * kHidden, 5.0f);
      e.x = from_panels.data();
      e.panels = Panels{panels.data(), dtype, nullptr};
      level().embed_rows(e, {1, 4});
      e.table = table.data();
      e.x = from_table.data();
      level().embed_rows(e, {1, 4});
      for (std::int64_t i = 0; i < 4 * kHidden; ++i) {
        const std::int64_t row = i / kHidden;
        if (row == 0) {
          EXPECT_EQ(from_table[i], 5.0f);
          EXPECT_EQ(from_panels[i], 5.0f);
          continue;
        }
        const float x = table[tokens[row] * kHidden + i % kHidden];
        EXPECT_EQ(from_table[i], x * scale);
        EXPECT_EQ(from_panels[i], (dtype == PanelDtype::kF32 ? x : from_bf16(to_bf16(x))) * scale);
      }
      EXPECT_TRUE(from_table.guards_intact() && from_panels.guards_intact());
    }
}

// Token 1 twice: (2^24 - 2^24) + 1 is 1, in the other order 2^24 + 1 would round to 2^24.
TEST_P(PlainRowsAllLevels, EmbedGradAddsRowsAscending) {
  constexpr float kBig = 16777216.0f;
  const std::int32_t tokens[] = {1, 0, 1};
  Guarded dx(9, 0.5f), table(6, 0.0f);
  table[4] = kBig;
  dx[1] = -0.5f * kBig;
  dx[8] = 100.0f;
  level().embed_grad({.rows = 3,
                      .hidden = 3,
                      .tokens = tokens,
                      .dx = dx.data(),
                      .scale = 2.0f,
                      .table = table.data()},
                     {1, 3});
  EXPECT_EQ(values(table), (std::vector<float>{0, 1, 1, 0, 1, 201}));
  EXPECT_TRUE(table.guards_intact());
  Guarded without(6, 0.0f);
  level().embed_grad({.rows = 3,
                      .hidden = 3,
                      .tokens = tokens,
                      .dx = dx.data(),
                      .scale = 2.0f,
                      .table = without.data(),
                      .skipped = 1},
                     {1, 3});
  EXPECT_EQ(values(without), (std::vector<float>{0, 1, 1, 0, 0, 0}));
}

// Pieces of two: (1e8 + 1) - 1e8 = 0 is a piece of its own, then + 3: 3. One chain would lose the
// same; pieces of three: (1e8 + 1 - 1e8) + 3.
TEST_P(PlainRowsAllLevels, GemmInPiecesByHand) {
  Guarded a(4, 1.0f), b(4), c(1, 9.0f), sums(1);
  b[0] = 1e8f;
  b[1] = -1e8f;
  b[2] = 1.0f;
  b[3] = 1e8f;
  PieceGemm g{.m = 1, .n = 1, .k = 4, .piece = 2, .a = a.data(), .lda = 4, .b = b.data(), .ldb = 1};
  g.c = c.data();
  g.ldc = 1;
  g.sums = sums.data();
  level().gemm_in_pieces(g, {0, 1}, {0, 1});
  EXPECT_EQ(c[0], 1e8f);  // 0 + (1 + 1e8)
  b[1] = 1.0f;
  b[2] = -1e8f;
  b[3] = 3.0f;
  g.piece = 1;
  level().gemm_in_pieces(g, {0, 1}, {0, 1});
  EXPECT_EQ(c[0], 3.0f);
  b[0] = 1.0f;
  b[1] = 1e8f;
  b[2] = 3.0f;
  b[3] = -1e8f;
  g.piece = 4;
  level().gemm_in_pieces(g, {0, 1}, {0, 1});
  EXPECT_EQ(c[0], 0.0f);  // one chain
  g.piece = 2;
  b[0] = -1e8f;
  b[2] = 5.0f;
  b[3] = 3.0f;
  level().gemm_in_pieces(g, {0, 1}, {0, 1});
  EXPECT_EQ(c[0], 8.0f);  // (-1e8 + 1e8) + (5 + 3)
  EXPECT_TRUE(c.guards_intact() && sums.guards_intact());
}

// More rows than are summed at once, shares of rows and columns: the bits of the definition, which
// are pieces as products of their own, added.
TEST_P(PlainRowsAllLevels, GemmInPiecesInAnyShares) {
  constexpr std::int64_t kM = kPieceRows + 60, kN = 37, kK = 70, kPiece = 32;
  const Guarded a = Guarded::random(kM * (kK + 3), 1), b = Guarded::random(kK * (kN + 2), 2);
  Guarded expected(kM * kN), piece(kM * kN), actual(kM * kN, 7.0f), sums(kPieceRows * kN);
  for (std::int64_t k = 0; k < kK; k += kPiece) {
    const Gemm product{.m = kM,
                       .n = kN,
                       .k = std::min(kPiece, kK - k),
                       .a = a.data() + k,
                       .lda = kK + 3,
                       .b = b.data() + k * (kN + 2),
                       .ldb = kN + 2,
                       .c = k == 0 ? expected.data() : piece.data(),
                       .ldc = kN};
    reference().gemm(product, {0, kM}, {0, panels_of(kN)});
    for (std::int64_t i = 0; k > 0 && i < kM * kN; ++i)
      expected[i] += piece[i];
  }
  const PieceGemm g{.m = kM,
                    .n = kN,
                    .k = kK,
                    .piece = kPiece,
                    .a = a.data(),
                    .lda = kK + 3,
                    .b = b.data(),
                    .ldb = kN + 2,
                    .c = actual.data(),
                    .ldc = kN,
                    .sums = sums.data()};
  level().gemm_in_pieces(g, {0, 3}, {0, kN});
  level().gemm_in_pieces(g, {3, kM}, {0, 16});
  level().gemm_in_pieces(g, {3, kM}, {16, kN});
  EXPECT_TRUE(same_bits(expected, actual));
  EXPECT_TRUE(sums.guards_intact());
}

}  // namespace
}  // namespace troupe::kernels::test
