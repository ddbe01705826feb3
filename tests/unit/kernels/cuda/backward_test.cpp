// Gradients of rows: hand-worked values and the reference's bits over odd shapes, ranges and
// special numbers.
#include "tests/unit/kernels/cuda/fixture.hpp"

namespace troupe::kernels::cuda::test {
namespace {

class CudaBackward : public OnDevice {};

// Normal numbers with one of each kind of special number somewhere.
std::vector<float> special(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values = normal(count, seed);
  const std::vector<float> odd{kInf, kNan, 1e-40f, -0.0f, 1e30f, -kInf};
  for (std::size_t i = 0; i < odd.size() && values.size() > 20; ++i)
    values[(i + 1) * values.size() / 7] = odd[i];
  return values;
}

TEST_F(CudaBackward, MixesRowsByHand) {
  // Two rows of three columns that chose rows (2, 0) and (1, 2) of y.
  Array<float> y({1, 2, 3, 10, 20, 30, 100, 200, 300}), weight({0.5f, 2.0f, 0.25f, 1.0f});
  Array<std::int32_t> place({2, 0, 1, 2});
  Array<float> extra({7, 7, 7, 8, 8, 8}), extra_weight({-1, -1, 0.5f, -1});
  Array<float> out({1000, 1000, 1000, 2000, 2000, 2000});
  ops().mix_rows({.n = 3,
                  .choices = 2,
                  .y = y.data(),
                  .ldy = 3,
                  .place = place.data(),
                  .weight = weight.data(),
                  .extra = extra.data(),
                  .ldx = 3,
                  .extra_weight = extra_weight.data(),
                  .ldw = 2,
                  .residual = out.data(),
                  .ldr = 3,
                  .out = out.data(),
                  .ldo = 3},
                 {1, 2});
  EXPECT_EQ(out.read(), (std::vector<float>{1000, 1000, 1000, 2106.5f, 2209, 2311.5f}));
}

TEST_F(CudaBackward, MixedRowsHaveTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 9, kN = 300, kChoices = 5;
  Array<float> y(special(20 * 310, 1)), weight(normal(kRows * kChoices, 2));
  Array<float> extra(normal(kRows * 303, 3)), extra_weight(normal(kRows * 2, 4));
  std::vector<std::int32_t> places;
  for (std::int32_t i = 0; i < kRows * kChoices; ++i)
    places.push_back(i * 7 % 20);
  Array<std::int32_t> place(places);
  for (const bool plain : {false, true}) {
    Array<float> residual(normal(kRows * 301, 5)), out(kRows * 305, 2.0f);
    const auto mix = [&](bool host) {
      const auto at = [&](Array<float>& a) { return host ? a.host().data() : a.data(); };
      return MixRows{.n = kN,
                     .choices = kChoices,
                     .y = at(y),
                     .ldy = 310,
                     .place = host ? place.host().data() : place.data(),
                     .weight = plain ? nullptr : at(weight),
                     .extra = at(extra),
                     .ldx = 303,
                     .extra_weight = plain ? nullptr : at(extra_weight),
                     .ldw = 2,
                     .residual = at(residual),
                     .ldr = 301,
                     .out = at(out),
                     .ldo = 305};
    };
    reference().mix_rows(mix(true), {1, 8});
    ops().mix_rows(mix(false), {1, 8});
    EXPECT_TRUE(same(out, out.host()));
  }
}

TEST_F(CudaBackward, NormHasTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 19;
  for (const std::int64_t d : {1, 7, 16, 33, 100, 577}) {
    const std::int64_t ldx = d + 3, ldy = d + 1, lddx = d + 2;
    Array<float> x(special(kRows * ldx, 1)), weight(normal(d, 2)), inv(normal(kRows, 3));
    Array<float> dy(special(kRows * ldy, 4)), dx(normal(kRows * lddx, 5));
    reference().rmsnorm_backward({.d = d,
                                  .x = x.host().data(),
                                  .ldx = ldx,
                                  .weight = weight.host().data(),
                                  .inv_rms = inv.host().data(),
                                  .dy = dy.host().data(),
                                  .ldy = ldy,
                                  .dx = dx.host().data(),
                                  .lddx = lddx},
                                 {2, 18});
    ops().rmsnorm_backward({.d = d,
                            .x = x.data(),
                            .ldx = ldx,
                            .weight = weight.data(),
                            .inv_rms = inv.data(),
                            .dy = dy.data(),
                            .ldy = ldy,
                            .dx = dx.data(),
                            .lddx = lddx},
                           {2, 18});
    EXPECT_TRUE(same(dx, dx.host())) << d;
  }
}

TEST_F(CudaBackward, SumsOverRowsByHand) {
  Array<float> dy({1, 2, 3, 10, 20, 30}), bias({100, 200, 300});
  ops().column_sum({.rows = 2, .dy = dy.data(), .ldy = 3, .sums = bias.data()}, {1, 3});
  EXPECT_EQ(bias.read(), (std::vector<float>{100, 222, 333}));
  Array<float> x({1, 1, 1, 2, 2, 2}), inv(std::vector<float>{0.5f, 0.25f}), weight(3, 1.0f);
  ops().rmsnorm_weight_grad({.rows = 2,
                             .x = x.data(),
                             .ldx = 3,
                             .inv_rms = inv.data(),
                             .dy = dy.data(),
                             .ldy = 3,
                             .dweight = weight.data()},
                            {0, 2});
  EXPECT_EQ(weight.read(), (std::vector<float>{6.5f, 12, 1}));
}

TEST_F(CudaBackward, SumsOverRowsHaveTheBitsOfTheReference) {
  for (const std::int64_t rows : {0, 1, 100, 128, 129, 300})
    for (const std::int64_t columns : {1, 16, 37}) {
      const std::int64_t ldx = columns + 3, ldy = columns + 1, begin = columns > 20 ? 5 : 0;
      Array<float> x(normal((rows + 1) * ldx, 1)), inv(normal(rows + 1, 3));
      Array<float> dy(normal((rows + 1) * ldy, 4)), weight(normal(columns, 5)),
          bias(normal(columns, 6));
      reference().rmsnorm_weight_grad({.rows = rows,
                                       .x = x.host().data(),
                                       .ldx = ldx,
                                       .inv_rms = inv.host().data(),
                                       .dy = dy.host().data(),
                                       .ldy = ldy,
                                       .dweight = weight.host().data()},
                                      {begin, columns});
      ops().rmsnorm_weight_grad({.rows = rows,
                                 .x = x.data(),
                                 .ldx = ldx,
                                 .inv_rms = inv.data(),
                                 .dy = dy.data(),
                                 .ldy = ldy,
                                 .dweight = weight.data()},
                                {begin, columns});
      EXPECT_TRUE(same(weight, weight.host())) << rows << " " << columns;
      reference().column_sum(
          {.rows = rows, .dy = dy.host().data(), .ldy = ldy, .sums = bias.host().data()},
          {begin, columns});
      ops().column_sum({.rows = rows, .dy = dy.data(), .ldy = ldy, .sums = bias.data()},
                       {begin, columns});
      EXPECT_TRUE(same(bias, bias.host())) << rows << " " << columns;
    }
}

TEST_F(CudaBackward, SumsOverRowsOfSpecialNumbers) {
  constexpr std::int64_t kRows = 140, kColumns = 18;
  Array<float> x(special(kRows * kColumns, 1)), inv(normal(kRows, 3)), dy(normal(kRows * 18, 4));
  for (float& value : dy.host())
    if (value > 1.5f) value = -1e-40f;
  Array<float> there(dy.host()), weight(kColumns, -0.0f), bias(kColumns, -0.0f);
  reference().rmsnorm_weight_grad({.rows = kRows,
                                   .x = x.host().data(),
                                   .ldx = 18,
                                   .inv_rms = inv.host().data(),
                                   .dy = dy.host().data(),
                                   .ldy = 18,
                                   .dweight = weight.host().data()},
                                  {0, kColumns});
  ops().rmsnorm_weight_grad({.rows = kRows,
                             .x = x.data(),
                             .ldx = 18,
                             .inv_rms = inv.data(),
                             .dy = there.data(),
                             .ldy = 18,
                             .dweight = weight.data()},
                            {0, kColumns});
  EXPECT_TRUE(same(weight, weight.host()));
  reference().column_sum(
      {.rows = kRows, .dy = x.host().data(), .ldy = 18, .sums = bias.host().data()}, {0, kColumns});
  ops().column_sum({.rows = kRows, .dy = x.data(), .ldy = 18, .sums = bias.data()}, {0, kColumns});
  EXPECT_TRUE(same(bias, bias.host()));
}

TEST_F(CudaBackward, GatesHaveTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 6, kFfn = 301, kLdg = 2 * kFfn + 3, kLdy = kFfn + 2;
  for (const bool silu : {true, false})
    for (const bool in_place : {true, false}) {
      Array<float> gate_up(special(kRows * kLdg, 1)), dy(special(kRows * kLdy, 2)),
          out(kRows * kLdg, 3.0f);
      gate_up.host()[kLdg + 4] = 30.0f;
      gate_up.host()[kLdg + 5] = -200.0f;
      Array<float> in(gate_up.host());
      Array<float>& to = in_place ? in : out;
      const auto run = [&](const Ops& ops, const float* g, const float* d, float* o) {
        ops.gate_mul_backward({.activation = silu ? Activation::kSilu : Activation::kGeluTanh,
                               .ffn = kFfn,
                               .gate_up = g,
                               .ldg = kLdg,
                               .dy = d,
                               .ldy = kLdy,
                               .dgate_up = o,
                               .lddg = kLdg},
                              {1, 5});
      };
      run(reference(), in.host().data(), dy.host().data(), to.host().data());
      run(ops(), in.data(), dy.data(), to.data());
      EXPECT_TRUE(same(to, to.host())) << silu << in_place;
    }
}

// Slots of a row in any number and order; rows of the range alone are written.
TEST_F(CudaBackward, GathersKeysAndValues) {
  for (const auto& [kv_heads, head_dim] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 16}, {3, 20}, {2, 64}}) {
    constexpr std::int64_t kRows = 37, kBlocks = 6;
    const std::int64_t width = kv_heads * head_dim, ld = width + 3;
    Array<float> k_pool(special(kBlocks * kKvBlock * width, 1)),
        v_pool(special(kBlocks * kKvBlock * width, 2));
    Array<float> k(static_cast<std::size_t>(kRows * ld), 7.0f),
        v(static_cast<std::size_t>(kRows * ld), 7.0f);
    std::vector<std::int32_t> begins{0}, all;
    for (std::int32_t row = 0; row < kRows; ++row) {
      for (std::int32_t i = 0; i < row % 4; ++i)
        all.push_back((row * 5 + i * 31) % (kBlocks * 16));
      begins.push_back(static_cast<std::int32_t>(all.size()));
    }
    Array<std::int32_t> begin(begins), slots(all);
    const auto args = [&](bool host) {
      const auto at = [&](auto& a) { return host ? a.host().data() : a.data(); };
      return KvWrite{.kv_heads = kv_heads,
                     .head_dim = head_dim,
                     .k = at(k),
                     .ldk = ld,
                     .v = at(v),
                     .ldv = ld,
                     .k_pool = at(k_pool),
                     .v_pool = at(v_pool),
                     .slot_begin = at(begin),
                     .slots = at(slots)};
    };
    reference().kv_gather(args(true), {1, 36});
    ops().kv_gather(args(false), {1, 36});
    EXPECT_TRUE(same(k, k.host())) << kv_heads;
    EXPECT_TRUE(same(v, v.host())) << kv_heads;
  }
}

TEST_F(CudaBackward, EmbeddingByHand) {
  // Token 2 has rows 0 and 2, token 0 row 1.
  Array<float> dx({1, 2, 10, 20, 100, 200}), table({0, 0, 0, 0, 1000, 1000});
  Array<std::int32_t> tokens({2, 0, 2});
  ops().embed_grad({.rows = 3,
                    .hidden = 2,
                    .tokens = tokens.data(),
                    .dx = dx.data(),
                    .scale = 0.5f,
                    .table = table.data()},
                   {0, 2});
  EXPECT_EQ(table.read(), (std::vector<float>{5, 10, 0, 0, 1050.5f, 1101}));
}

TEST_F(CudaBackward, EmbeddingHasTheBitsOfTheReference) {
  for (const std::int64_t rows : {1, 40, 257, 600})
    for (const std::int64_t hidden : {5, 300}) {
      constexpr std::int64_t kVocab = 11;
      std::vector<std::int32_t> ids;
      for (std::int64_t i = 0; i < rows; ++i)
        ids.push_back(i % 3 == 0 ? 4 : static_cast<std::int32_t>(i * i % kVocab));
      Array<std::int32_t> tokens(ids);
      Array<float> dx(special(rows * hidden, 3)), table(normal(kVocab * hidden, 4));
      const std::int64_t begin = hidden > 10 ? 3 : 0, end = hidden > 10 ? 298 : hidden;
      const auto args = [&](bool host) {
        return EmbedGrad{.rows = rows,
                         .hidden = hidden,
                         .tokens = host ? tokens.host().data() : tokens.data(),
                         .dx = host ? dx.host().data() : dx.data(),
                         .scale = 1.7f,
                         .table = host ? table.host().data() : table.data(),
                         .skipped = rows % 2 == 0 ? 4 : -1};
      };
      reference().embed_grad(args(true), {begin, end});
      ops().embed_grad(args(false), {begin, end});
      EXPECT_TRUE(same(table, table.host())) << rows << " " << hidden;
    }
}

// More columns than one thread block has.
TEST_F(CudaBackward, EmbeddingOfManyColumns) {
  Array<std::int32_t> tokens({1, 0, 1});
  Array<float> dx(normal(3 * 2100, 3)), table(normal(2 * 2100, 4));
  const auto args = [&](bool host) {
    return EmbedGrad{.rows = 3,
                     .hidden = 2100,
                     .tokens = host ? tokens.host().data() : tokens.data(),
                     .dx = host ? dx.host().data() : dx.data(),
                     .scale = 1.0f,
                     .table = host ? table.host().data() : table.data()};
  };
  reference().embed_grad(args(true), {0, 2100});
  ops().embed_grad(args(false), {0, 2100});
  EXPECT_TRUE(same(table, table.host()));
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
