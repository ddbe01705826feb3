// The embedding, rotary positions, keys and values into slots, and the activations: the
// reference's bits over odd shapes, ranges, infinities, NaN and denormals.
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <cstring>
#include <numeric>

namespace troupe::kernels::cuda::test {
namespace {

class CudaPositions : public OnDevice {};

// Numbers with everything that is with_odd_values among them.
std::vector<float> with_odd_values(std::int64_t count, std::uint32_t seed) {
  std::vector<float> x = normal(count, seed, 3.0f);
  const float all[] = {kNan, kInf, -kInf, 0.0f, -0.0f, 1e-40f, -1e-39f, 88.8f, -88.0f, 3e38f};
  for (std::size_t i = 0; i < std::size(all) && i * 5 < x.size(); ++i)
    x[i * 5] = all[i];
  return x;
}

TEST_F(CudaPositions, RopeByHand) {
  // A quarter turn takes (1, 2) to (-2, 1).
  Array<float> x(std::vector<float>{1, 2}), cos(std::vector<float>{1, 0}),
      sin(std::vector<float>{0, 1});
  Array<std::int32_t> positions(std::vector<std::int32_t>{1});
  ops().rope({.heads = 1,
              .head_dim = 2,
              .rotary = 2,
              .x = x.data(),
              .ldx = 2,
              .positions = positions.data(),
              .cos = cos.data(),
              .sin = sin.data()},
             {0, 1});
  EXPECT_EQ(x.read(), (std::vector<float>{-2, 1}));
}

TEST_F(CudaPositions, RopeHasTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 9, kHeads = 3, kHeadDim = 20;
  for (const std::int64_t rotary : {20, 12, 2})
    for (const bool inverse : {false, true}) {
      const std::int64_t ld = kHeads * kHeadDim + 5;
      Array<float> x(with_odd_values(kRows * ld, 3)), cos(normal(30 * rotary / 2, 4)),
          sin(normal(30 * rotary / 2, 5));
      Array<std::int32_t> positions({0, 29, 3, 3, 4, 5, 6, 28, 9});
      reference().rope({.heads = kHeads,
                        .head_dim = kHeadDim,
                        .rotary = rotary,
                        .x = x.host().data(),
                        .ldx = ld,
                        .positions = positions.host().data(),
                        .cos = cos.host().data(),
                        .sin = sin.host().data(),
                        .inverse = inverse},
                       {1, kRows - 1});
      ops().rope({.heads = kHeads,
                  .head_dim = kHeadDim,
                  .rotary = rotary,
                  .x = x.data(),
                  .ldx = ld,
                  .positions = positions.data(),
                  .cos = cos.data(),
                  .sin = sin.data(),
                  .inverse = inverse},
                 {1, kRows - 1});
      EXPECT_TRUE(same(x, x.host())) << rotary << inverse;
    }
}

TEST_F(CudaPositions, ActivationsHaveTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 4;
  for (const std::int64_t ffn : {1, 33, 515}) {
    const std::int64_t ldg = 2 * ffn + 3, ldy = ffn + 1;
    Array<float> gate_up(with_odd_values(kRows * ldg, 6)),
        y(static_cast<std::size_t>(kRows * ldy), 9.0f),
        z(static_cast<std::size_t>(kRows * ldy), 9.0f);
    reference().gate_mul({.ffn = ffn,
                          .gate_up = gate_up.host().data(),
                          .ldg = ldg,
                          .y = y.host().data(),
                          .ldy = ldy},
                         {1, kRows});
    reference().gate_mul({.activation = Activation::kGeluTanh,
                          .ffn = ffn,
                          .gate_up = gate_up.host().data(),
                          .ldg = ldg,
                          .y = z.host().data(),
                          .ldy = ldy},
                         {0, kRows - 1});
    ops().gate_mul({.ffn = ffn, .gate_up = gate_up.data(), .ldg = ldg, .y = y.data(), .ldy = ldy},
                   {1, kRows});
    ops().gate_mul({.activation = Activation::kGeluTanh,
                    .ffn = ffn,
                    .gate_up = gate_up.data(),
                    .ldg = ldg,
                    .y = z.data(),
                    .ldy = ldy},
                   {0, kRows - 1});
    EXPECT_TRUE(same(y, y.host())) << ffn;
    EXPECT_TRUE(same(z, z.host())) << ffn;
  }
  Array<float> x(with_odd_values(777, 8)), y(777);
  reference().exp(x.host().data(), y.host().data(), 777);
  ops().exp(x.data(), y.data(), 777);
  EXPECT_TRUE(same(y, y.host()));
}

TEST_F(CudaPositions, MoreRowsThanAGridHas) {
  constexpr std::int64_t kRows = 65535 + 70;
  Array<float> gate_up(normal(kRows * 2, 6)), y(static_cast<std::size_t>(kRows));
  reference().gate_mul(
      {.ffn = 1, .gate_up = gate_up.host().data(), .ldg = 2, .y = y.host().data(), .ldy = 1},
      {0, kRows});
  ops().gate_mul({.ffn = 1, .gate_up = gate_up.data(), .ldg = 2, .y = y.data(), .ldy = 1},
                 {0, kRows});
  EXPECT_TRUE(same(y, y.host()));
}

TEST_F(CudaPositions, EmbeddingOfATableAndOfPanels) {
  constexpr std::int64_t kVocab = 37, kHidden = 21, kRows = 6;
  Array<float> table(with_odd_values(kVocab * kHidden, 9));
  Array<std::int32_t> tokens({36, 0, 16, 15, 15, 31});
  for (const float scale : {1.0f, 4.5f}) {
    Array<float> x(kRows * kHidden, 7.0f);
    EmbedRows e{.hidden = kHidden,
                .panels = {},
                .table = table.host().data(),
                .scale = scale,
                .tokens = tokens.host().data(),
                .x = x.host().data()};
    reference().embed_rows(e, {1, kRows});
    e.table = table.data(), e.tokens = tokens.data(), e.x = x.data();
    ops().embed_rows(e, {1, kRows});
    EXPECT_TRUE(same(x, x.host())) << scale;
    for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8}) {
      Array<std::uint32_t> room(static_cast<std::size_t>(packed_bytes(dtype, kVocab, kHidden) / 4));
      Array<float> scales(48), rows(kRows * kHidden, 7.0f);
      reference().pack_transposed({.from = table.host().data(),
                                   .ldf = kHidden,
                                   .n = kVocab,
                                   .k = kHidden,
                                   .to = {room.host().data(), dtype, scales.host().data()}},
                                  {0, 3});
      Array<std::uint32_t> panels(room.host());
      Array<float> factors(scales.host());
      const bool scaled = dtype == PanelDtype::kInt8;
      e = {.hidden = kHidden,
           .panels = {room.host().data(), dtype, scaled ? scales.host().data() : nullptr},
           .table = nullptr,
           .scale = scale,
           .tokens = tokens.host().data(),
           .x = rows.host().data()};
      reference().embed_rows(e, {0, kRows});
      e.panels = {panels.data(), dtype, scaled ? factors.data() : nullptr};
      e.tokens = tokens.data(), e.x = rows.data();
      ops().embed_rows(e, {0, kRows});
      EXPECT_TRUE(same(rows, rows.host())) << name_of(dtype) << scale;
    }
  }
}

TEST_F(CudaPositions, KeysAndValuesGoToEverySlotOfTheirRow) {
  constexpr std::int64_t kHeads = 2, kHeadDim = 20, kRows = 5, kBlocks = 3;
  constexpr std::int64_t kPool = kBlocks * kHeads * kHeadDim * kKvBlock, kLd = kHeads * kHeadDim;
  Array<float> k(with_odd_values(kRows * (kLd + 1), 1)), v(with_odd_values(kRows * (kLd + 2), 2)),
      to_k(kPool, 8.0f), to_v(kPool, 8.0f);
  Array<std::int32_t> begin({0, 2, 2, 3, 6, 7}), slots({0, 47, 16, 31, 17, 5, 40});
  KvWrite w{.kv_heads = kHeads,
            .head_dim = kHeadDim,
            .k = k.host().data(),
            .ldk = kLd + 1,
            .v = v.host().data(),
            .ldv = kLd + 2,
            .k_pool = to_k.host().data(),
            .v_pool = to_v.host().data(),
            .slot_begin = begin.host().data(),
            .slots = slots.host().data()};
  reference().kv_write(w, {0, 4});
  w.k = k.data(), w.v = v.data(), w.k_pool = to_k.data(), w.v_pool = to_v.data();
  w.slot_begin = begin.data(), w.slots = slots.data();
  ops().kv_write(w, {0, 4});
  EXPECT_TRUE(same(to_k, to_k.host()));
  EXPECT_TRUE(same(to_v, to_v.host()));
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
