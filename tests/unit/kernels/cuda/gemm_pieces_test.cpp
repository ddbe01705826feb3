// Products whose k is cut into pieces: the reference's bits over odd shapes, ranges, alignments and
// special numbers.
#include "tests/unit/kernels/cuda/fixture.hpp"

namespace troupe::kernels::cuda::test {
namespace {

class CudaGemmInPieces : public OnDevice {};

struct PieceShape {
  std::int64_t m, n, k, piece, room;  // room: of a row behind its numbers
};

TEST_F(CudaGemmInPieces, ByHand) {
  // 2^24 + 1 is lost within a piece; the sum of the two pieces 2^24 and 2 is not.
  Array<float> a({16777216, 1, 1, 1}), b({1, 1, 1, 1}), c(1, 9.0f), sums(1);
  const PieceGemm g{.m = 1,
                    .n = 1,
                    .k = 4,
                    .piece = 2,
                    .a = a.data(),
                    .lda = 4,
                    .b = b.data(),
                    .ldb = 1,
                    .c = c.data(),
                    .ldc = 1,
                    .sums = sums.data()};
  ops().gemm_in_pieces(g, {0, 1}, {0, 1});
  EXPECT_EQ(c.read()[0], 16777218.0f);
}

void compare(const PieceShape& s,
             const std::vector<float>& a_values,
             const std::vector<float>& b_values) {
  const std::int64_t lda = s.k + s.room, ldb = s.n + s.room, ldc = s.n + s.room + 1;
  Array<float> a(a_values), b(b_values), c(static_cast<std::size_t>(s.m * ldc), 7.0f),
      sums(static_cast<std::size_t>(s.m * s.n));
  const auto args = [&](bool host) {
    const auto at = [&](Array<float>& x) { return host ? x.host().data() : x.data(); };
    return PieceGemm{.m = s.m,
                     .n = s.n,
                     .k = s.k,
                     .piece = s.piece,
                     .a = at(a),
                     .lda = lda,
                     .b = at(b),
                     .ldb = ldb,
                     .c = at(c),
                     .ldc = ldc,
                     .sums = at(sums)};
  };
  const std::int64_t begin = s.m > 20 ? 3 : 0, columns = s.n > 40 ? 16 : 0;
  reference().gemm_in_pieces(args(true), {begin, s.m}, {columns, s.n});
  device()->ops().gemm_in_pieces(args(false), {begin, s.m}, {columns, s.n});
  EXPECT_TRUE(same(c, c.host())) << s.m << " " << s.n << " " << s.k << " " << s.piece;
}

TEST_F(CudaGemmInPieces, HasTheBitsOfTheReference) {
  for (const PieceShape& s : std::vector<PieceShape>{{1, 1, 1, 1, 0},
                                                     {5, 20, 40, 16, 0},
                                                     {5, 20, 40, 16, 3},
                                                     {64, 64, 33, 33, 1},
                                                     {70, 132, 64, 20, 4},
                                                     {70, 131, 65, 19, 0},
                                                     {270, 280, 52, 24, 4},
                                                     {270, 279, 35, 18, 0},
                                                     {70, 132, 66, 2, 0},  // more than fit at once
                                                     {7, 12, 100, 1000, 4}})
    compare(s, normal(s.m * (s.k + s.room), 1), normal(s.k * (s.n + s.room), 2));
}

// Tiny products that are flushed to -0, infinities, and numbers that are none.
TEST_F(CudaGemmInPieces, KeepsSpecialNumbers) {
  for (const PieceShape& s : {PieceShape{20, 24, 36, 20, 0}, PieceShape{20, 24, 37, 18, 1}}) {
    std::vector<float> a = normal(s.m * (s.k + s.room), 1), b = normal(s.k * (s.n + s.room), 2);
    for (std::size_t i = 0; i < 4 * static_cast<std::size_t>(s.k + s.room); ++i)
      a[i] = -1e-25f;
    for (float& value : b)
      value = value * value * 1e-20f;
    a[6 * static_cast<std::size_t>(s.k + s.room) + 5] = kInf;
    a[7 * static_cast<std::size_t>(s.k + s.room) + 9] = kNan;
    b[3] = kInf;
    compare(s, a, b);
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
