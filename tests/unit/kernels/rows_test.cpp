// Row functions and their gradients: hand-worked values, formulas in double, same bits on every
// level.
#include "tests/unit/kernels/support.hpp"

#include <algorithm>
#include <functional>

namespace troupe::kernels::test {
namespace {

constexpr std::int64_t kRows = 5;
const std::vector<std::int64_t>& widths() {
  static const std::vector<std::int64_t> all{1, 7, 16, 20, 64, 100, 577};
  return all;
}

double value(float x) {
  return static_cast<double>(x);
}

class RowsAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(RowsAllLevels);

TEST_P(RowsAllLevels, RmsnormByHand) {
  // Mean square of (1, 2, 3, 4, 5, 5, 4, 2) is 100/8 = 12.5; with eps 3.5 the root is 4.
  Guarded x(8), weight(8, 2.0f), y(8), inv(1);
  const float values[8] = {1, 2, 3, 4, 5, 5, 4, 2};
  std::copy_n(values, 8, x.data());
  level().rmsnorm({.d = 8,
                   .x = x.data(),
                   .ldx = 8,
                   .weight = weight.data(),
                   .eps = 3.5f,
                   .y = y.data(),
                   .ldy = 8,
                   .inv_rms = inv.data()},
                  {0, 1});
  EXPECT_EQ(inv[0], 0.25f);
  for (std::int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(y[i], x[i] * 0.5f);
}

TEST_P(RowsAllLevels, RopeByHandAndBack) {
  Guarded x(8);
  for (std::int64_t i = 0; i < 8; ++i)
    x[i] = static_cast<float>(i + 1);
  const float cosine[6] = {1, 1, 0, 0.5f, 0, 1};  // positions 0..2, two pairs
  const float sine[6] = {0, 0, 1, 0.5f, -1, 0};
  const std::int32_t positions[2] = {9, 1};  // the first row is not in the range
  level().rope({.heads = 2,
                .head_dim = 4,
                .rotary = 4,
                .x = x.data() - 8,
                .ldx = 8,
                .positions = positions,
                .cos = cosine,
                .sin = sine},
               {1, 2});
  EXPECT_EQ(x[0], -3.0f);  // 1*0 - 3*1
  EXPECT_EQ(x[2], 1.0f);   // 3*0 + 1*1
  EXPECT_EQ(x[1], -1.0f);  // 2*.5 - 4*.5
  EXPECT_EQ(x[3], 3.0f);   // 4*.5 + 2*.5
  EXPECT_EQ(x[4], -7.0f);
  EXPECT_EQ(x[6], 5.0f);
  level().rope({.heads = 2,
                .head_dim = 4,
                .rotary = 4,
                .x = x.data() - 8,
                .ldx = 8,
                .positions = positions,
                .cos = cosine,
                .sin = sine,
                .inverse = true},
               {1, 2});
  EXPECT_EQ(x[0], 1.0f);
  EXPECT_EQ(x[2], 3.0f);
  EXPECT_EQ(x[4], 5.0f);
  EXPECT_TRUE(x.guards_intact());
}

// Two heads of six numbers of which four turn: the last two of each stay.
TEST_P(RowsAllLevels, RopeTurnsAPartOfAHead) {
  Guarded x(12);
  for (std::int64_t i = 0; i < 12; ++i)
    x[i] = static_cast<float>(i + 1);
  const float cosine[2] = {0, 0.5f}, sine[2] = {1, 0.5f};
  const std::int32_t position = 0;
  level().rope({.heads = 2,
                .head_dim = 6,
                .rotary = 4,
                .x = x.data(),
                .ldx = 12,
                .positions = &position,
                .cos = cosine,
                .sin = sine},
               {0, 1});
  const float expected[12] = {-3, -1, 1, 3, 5, 6, -9, -1, 7, 9, 11, 12};
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(x[i], expected[i]) << i;
  EXPECT_TRUE(x.guards_intact());
}

double gelu(double g) {
  constexpr double kRoot = 0.79788456080286535588;  // sqrt(2 / pi)
  return 0.5 * g * (1.0 + std::tanh(kRoot * (g + 0.044715 * g * g * g)));
}

TEST_P(RowsAllLevels, GeluMulCloseToDouble) {
  const Guarded x = Guarded::random(2 * 300, 5, 6.0f);
  Guarded y(300);
  level().gate_mul({.activation = Activation::kGeluTanh,
                    .ffn = 300,
                    .gate_up = x.data(),
                    .ldg = 600,
                    .y = y.data(),
                    .ldy = 300},
                   {0, 1});
  for (std::int64_t i = 0; i < 300; ++i) {
    const double expected = gelu(value(x[i])) * value(x[300 + i]);
    EXPECT_NEAR(y[i], expected, 6e-7 * (1.0 + std::abs(expected)));
  }
}

TEST_P(RowsAllLevels, GeluMulGradientCloseToDifferences) {
  const std::int64_t ffn = 50;
  const Guarded x = Guarded::random(2 * ffn, 5, 3.0f);
  const Guarded dy = Guarded::random(ffn, 6);
  Guarded dx(2 * ffn);
  level().gate_mul_backward({.activation = Activation::kGeluTanh,
                             .ffn = ffn,
                             .gate_up = x.data(),
                             .ldg = 0,
                             .dy = dy.data(),
                             .ldy = 0,
                             .dgate_up = dx.data(),
                             .lddg = 0},
                            {0, 1});
  for (std::int64_t i = 0; i < ffn; ++i) {
    const double g = value(x[i]), u = value(x[ffn + i]), step = 1e-5;
    const double slope = (gelu(g + step) - gelu(g - step)) / (2 * step);
    EXPECT_NEAR(dx[i], value(dy[i]) * slope * u, 1e-5);
    EXPECT_NEAR(dx[ffn + i], value(dy[i]) * gelu(g), 1e-5);
  }
}

TEST_P(RowsAllLevels, SoftcapCloseToDouble) {
  const Guarded x = Guarded::random(70, 5, 40.0f);
  Guarded y(x);
  level().softcap({.columns = 33, .x = y.data(), .ldx = 35, .cap = 30.0f},
                  {0, 2});  // two numbers of each row stay
  for (std::int64_t i = 0; i < 70; ++i) {
    const double capped = 30.0 * std::tanh(value(x[i]) / 30.0);
    EXPECT_NEAR(y[i], i % 35 < 33 ? capped : value(x[i]), 1e-5);
  }
  EXPECT_TRUE(y.guards_intact());
}

TEST_P(RowsAllLevels, SiluMulCloseToDouble) {
  const Guarded x = Guarded::random(2 * 300, 5, 6.0f);
  Guarded y(300);
  level().gate_mul({.ffn = 300, .gate_up = x.data(), .ldg = 600, .y = y.data(), .ldy = 300},
                   {0, 1});
  for (std::int64_t i = 0; i < 300; ++i) {
    const double expected = value(x[i]) / (1.0 + std::exp(-value(x[i]))) * value(x[300 + i]);
    EXPECT_NEAR(y[i], expected, 4e-7 * (1.0 + std::abs(expected)));
  }
}

TEST_P(RowsAllLevels, RmsnormGradientCloseToDifferences) {
  const std::int64_t d = 40;
  const Guarded x = Guarded::random(d, 1);
  const Guarded weight = Guarded::random(d, 2);
  const Guarded dy = Guarded::random(d, 3);
  const auto loss = [&](std::int64_t at_x, std::int64_t at_w, double step) {
    double squares = 0.0, total = 0.0;
    const auto in = [&](std::int64_t i) { return value(x[i]) + (i == at_x ? step : 0.0); };
    for (std::int64_t i = 0; i < d; ++i)
      squares += in(i)*in(i);
    const double r = 1.0 / std::sqrt(squares / static_cast<double>(d) + 1e-5);
    for (std::int64_t i = 0; i < d; ++i)
      total += in(i)*r * (value(weight[i]) + (i == at_w ? step : 0.0)) * value(dy[i]);
    return total;
  };
  Guarded y(d), inv(1), dx(d, 1.0f), dweight(d, 2.0f);
  level().rmsnorm({.d = d,
                   .x = x.data(),
                   .ldx = d,
                   .weight = weight.data(),
                   .eps = 1e-5f,
                   .y = y.data(),
                   .ldy = d,
                   .inv_rms = inv.data()},
                  {0, 1});
  level().rmsnorm_backward({.d = d,
                            .x = x.data(),
                            .ldx = d,
                            .weight = weight.data(),
                            .inv_rms = inv.data(),
                            .dy = dy.data(),
                            .ldy = d,
                            .dx = dx.data(),
                            .lddx = d},
                           {0, 1});
  level().rmsnorm_weight_grad({.rows = 1,
                               .x = x.data(),
                               .ldx = d,
                               .inv_rms = inv.data(),
                               .dy = dy.data(),
                               .ldy = d,
                               .dweight = dweight.data()},
                              {0, d});
  for (std::int64_t i = 0; i < d; ++i) {
    EXPECT_NEAR(dx[i] - 1.0, (loss(i, -1, 1e-5) - loss(i, -1, -1e-5)) / 2e-5, 2e-6);
    EXPECT_NEAR(dweight[i] - 2.0, (loss(-1, i, 1e-5) - loss(-1, i, -1e-5)) / 2e-5, 2e-6);
  }
}

TEST_P(RowsAllLevels, SiluMulGradientCloseToDifferences) {
  const std::int64_t ffn = 50;
  const Guarded x = Guarded::random(2 * ffn, 5, 3.0f);
  const Guarded dy = Guarded::random(ffn, 6);
  Guarded dx(2 * ffn);
  level().gate_mul_backward({.ffn = ffn,
                             .gate_up = x.data(),
                             .ldg = 0,
                             .dy = dy.data(),
                             .ldy = 0,
                             .dgate_up = dx.data(),
                             .lddg = 0},
                            {0, 1});
  const auto f = [](double g, double u) { return g / (1.0 + std::exp(-g)) * u; };
  for (std::int64_t i = 0; i < ffn; ++i) {
    const double g = value(x[i]), u = value(x[ffn + i]), step = 1e-5;
    EXPECT_NEAR(dx[i], value(dy[i]) * (f(g + step, u) - f(g - step, u)) / (2 * step), 1e-5);
    EXPECT_NEAR(dx[ffn + i], value(dy[i]) * (f(g, u + step) - f(g, u - step)) / (2 * step), 1e-5);
  }
}

class RowsVectorLevels : public VectorLevel {
 protected:
  // Runs `f(ops, out)` on the reference and on this level, on copies of `out`.
  void expect_same(const Guarded& out, const std::function<void(const Ops&, Guarded&)>& f) {
    Guarded expected(out);
    Guarded actual(out);
    f(reference(), expected);
    f(level(), actual);
    EXPECT_TRUE(same_bits(expected, actual)) << out.size();
  }
  // Random rows with specials in some places.
  static Guarded rows(std::int64_t count, std::uint32_t seed) {
    Guarded x = Guarded::random(count, seed, 2.0f);
    const float specials[] = {0.0f, -0.0f, 1e-40f, -1e-39f, 90.0f, -90.0f, 1e20f, kInf, kNan};
    for (std::int64_t i = 0; seed % 2 == 0 && i < 9; ++i)
      x[i * 131 % count] = specials[i];
    return x;
  }
};
TROUPE_VECTOR_LEVELS(RowsVectorLevels);

TEST_P(RowsVectorLevels, ForwardSameBitsAsReference) {
  for (const std::uint32_t seed : {1u, 2u})
    for (const std::int64_t d : widths()) {
      const Guarded x = rows(kRows * 2 * d, seed);
      const Guarded weight = rows(d, seed + 2);
      expect_same(Guarded(kRows * d), [&](const Ops& ops, Guarded& y) {
        ops.rmsnorm({.d = d,
                     .x = x.data(),
                     .ldx = 2 * d,
                     .weight = weight.data(),
                     .eps = 1e-5f,
                     .y = y.data(),
                     .ldy = d},
                    {0, 2});
        ops.rmsnorm({.d = d,
                     .x = x.data(),
                     .ldx = 2 * d,
                     .weight = weight.data(),
                     .eps = 1e-5f,
                     .y = y.data(),
                     .ldy = d},
                    {2, kRows});
      });
      expect_same(Guarded(kRows), [&](const Ops& ops, Guarded& inv) {
        Guarded y(kRows * d);
        ops.rmsnorm({.d = d,
                     .x = x.data(),
                     .ldx = 2 * d,
                     .weight = weight.data(),
                     .eps = 1e-5f,
                     .y = y.data(),
                     .ldy = d,
                     .inv_rms = inv.data()},
                    {0, kRows});
      });
      expect_same(Guarded(kRows * d), [&](const Ops& ops, Guarded& y) {
        ops.gate_mul({.ffn = d, .gate_up = x.data(), .ldg = 2 * d, .y = y.data(), .ldy = d},
                     {0, kRows});
      });
      expect_same(Guarded(kRows * d), [&](const Ops& ops, Guarded& y) {
        ops.gate_mul({.activation = Activation::kGeluTanh,
                      .ffn = d,
                      .gate_up = x.data(),
                      .ldg = 2 * d,
                      .y = y.data(),
                      .ldy = d},
                     {0, kRows});
      });
      expect_same(x, [&](const Ops& ops, Guarded& y) {
        ops.softcap({.columns = d, .x = y.data(), .ldx = 2 * d, .cap = 3.0f}, {0, kRows});
      });
    }
}

TEST_P(RowsVectorLevels, RopeSameBitsAsReference) {
  const std::int32_t positions[kRows] = {0, 7, 3, 3, 9};
  for (const std::int64_t head_dim : {2, 20, 32, 64, 128})
    for (const bool inverse : {false, true}) {
      const std::int64_t rotary = inverse ? head_dim : (head_dim + 2) / 4 * 2;
      const Guarded cosine = Guarded::random(10 * head_dim / 2, 8);
      const Guarded sine = Guarded::random(10 * head_dim / 2, 9);
      expect_same(rows(kRows * (3 * head_dim + 1), 3), [&](const Ops& ops, Guarded& x) {
        ops.rope({.heads = 3,
                  .head_dim = head_dim,
                  .rotary = rotary,
                  .x = x.data(),
                  .ldx = 3 * head_dim + 1,
                  .positions = positions,
                  .cos = cosine.data(),
                  .sin = sine.data(),
                  .inverse = inverse},
                 {0, kRows});
      });
    }
}

TEST_P(RowsVectorLevels, BackwardSameBitsAsReference) {
  for (const std::uint32_t seed : {1u, 2u})
    for (const std::int64_t d : widths()) {
      const Guarded x = rows(kRows * 2 * d, seed);
      const Guarded dy = rows(kRows * d, seed + 2);
      const Guarded weight = rows(d, seed + 4);
      const Guarded inv = Guarded::random(kRows, seed + 6);
      const Guarded start = rows(kRows * d, 5);
      expect_same(start, [&](const Ops& ops, Guarded& dx) {
        ops.rmsnorm_backward({.d = d,
                              .x = x.data(),
                              .ldx = 2 * d,
                              .weight = weight.data(),
                              .inv_rms = inv.data(),
                              .dy = dy.data(),
                              .ldy = d,
                              .dx = dx.data(),
                              .lddx = d},
                             {1, kRows});
      });
      expect_same(start, [&](const Ops& ops, Guarded& dweight) {
        ops.rmsnorm_weight_grad({.rows = kRows,
                                 .x = x.data(),
                                 .ldx = 2 * d,
                                 .inv_rms = inv.data(),
                                 .dy = dy.data(),
                                 .ldy = d,
                                 .dweight = dweight.data()},
                                {0, d / 2});
        ops.rmsnorm_weight_grad({.rows = kRows,
                                 .x = x.data(),
                                 .ldx = 2 * d,
                                 .inv_rms = inv.data(),
                                 .dy = dy.data(),
                                 .ldy = d,
                                 .dweight = dweight.data()},
                                {d / 2, d});
      });
      expect_same(start, [&](const Ops& ops, Guarded& dbias) {
        ops.column_sum({.rows = kRows, .dy = dy.data(), .ldy = d, .sums = dbias.data()},
                       {0, d / 2});
        ops.column_sum({.rows = kRows, .dy = dy.data(), .ldy = d, .sums = dbias.data()},
                       {d / 2, d});
      });
      expect_same(Guarded(kRows * 2 * d), [&](const Ops& ops, Guarded& out) {
        ops.gate_mul_backward({.ffn = d,
                               .gate_up = x.data(),
                               .ldg = 2 * d,
                               .dy = dy.data(),
                               .ldy = d,
                               .dgate_up = out.data(),
                               .lddg = 2 * d},
                              {0, kRows});
      });
      expect_same(x, [&](const Ops& ops, Guarded& in_place) {
        ops.gate_mul_backward({.activation = Activation::kGeluTanh,
                               .ffn = d,
                               .gate_up = in_place.data(),
                               .ldg = 2 * d,
                               .dy = dy.data(),
                               .ldy = d,
                               .dgate_up = in_place.data(),
                               .lddg = 2 * d},
                              {0, kRows});
      });
      expect_same(x, [&](const Ops& ops, Guarded& in_place) {
        ops.gate_mul_backward({.ffn = d,
                               .gate_up = in_place.data(),
                               .ldg = 2 * d,
                               .dy = dy.data(),
                               .ldy = d,
                               .dgate_up = in_place.data(),
                               .lddg = 2 * d},
                              {0, kRows});
      });
    }
}

}  // namespace
}  // namespace troupe::kernels::test
