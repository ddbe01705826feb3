// Attention with keys and values in bfloat16: the definition's bits, and the same bits of a row
// alone, in a prompt, in pieces, and with its splits shared out among blocks or not.
#include "tests/unit/kernels/attention_dense.hpp"
#include "tests/unit/kernels/cuda/attention_on_device.hpp"
#include "tests/unit/kernels/cuda/splits_definition.hpp"

#include <string>

namespace troupe::kernels::cuda::test {
namespace {

using kernels::test::AttentionCase;
using kernels::test::Guarded;
using kernels::test::Shape;
using kernels::test::Variant;
using Sequences = std::vector<AttentionCase::Sequence>;

class CudaAttentionSplits : public OnDevice {
 protected:
  // The case as the definition gives it; what no row writes stays.
  static void fill_expected(AttentionCase& c) {
    const TensorCore& core = tensor_core_of(device()->info().major);
    for (const Segment& segment : c.segments)
      for (std::int64_t i = 0; i < segment.rows; ++i)
        for (std::int64_t head = 0; head < c.shape.heads; ++head) {
          const SplitQuery query(core, c, segment, i, head);
          const std::int64_t row = segment.first_row + i;
          std::copy(query.out.begin(), query.out.end(),
                    c.out.data() + row * c.ldo() + head * c.shape.head_dim);
          c.lse[row * c.shape.heads + head] = query.lse;
        }
  }
  static void expect_close(const std::vector<float>& actual, const Guarded& expected) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const float wanted = expected[static_cast<std::int64_t>(i)];
      ASSERT_NEAR(actual[i], wanted, 2e-3f * (1.0f + std::abs(wanted))) << i;
    }
  }
  // All cuts give the same bits, which are those of the definition.
  static void compare(const Shape& shape,
                      const Sequences& sequences,
                      const Variant& variant,
                      std::initializer_list<std::pair<std::int32_t, std::int32_t>> cuts) {
    SCOPED_TRACE("heads " + std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) +
                 " of " + std::to_string(shape.head_dim) + " window " +
                 std::to_string(variant.window) + " cap " + std::to_string(variant.softcap));
    AttentionCase c(shape, sequences, 7, variant);
    round_case(c);
    std::vector<std::unique_ptr<OnTheDevice>> runs;
    for (const auto& [rows, heads] : cuts) {
      runs.push_back(std::make_unique<OnTheDevice>(c, KvDtype::kBf16));
      runs.back()->run(runs.back()->items(rows, heads));
    }
    // One item at a time: the splits of a row alone go to different blocks.
    runs.push_back(std::make_unique<OnTheDevice>(c, KvDtype::kBf16));
    for (const AttentionItem& item : runs.back()->items(1, 0))
      runs.back()->run({item});
    fill_expected(c);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_TRUE(runs[i]->out_is(c.out)) << "cut " << i;
      EXPECT_TRUE(runs[i]->lse_is(c.lse)) << "cut " << i;
      EXPECT_EQ(runs[i]->out(), runs[0]->out()) << "cut " << i;
      EXPECT_EQ(runs[i]->lse(), runs[0]->lse()) << "cut " << i;
    }
    expect_close(runs[0]->out(), c.out);
    expect_close(runs[0]->lse(), c.lse);
  }
};

// Keys whose scores are 0, 0 and -128: weights 1, 1 and 0, values 3, 9 and 5.
TEST_F(CudaAttentionSplits, ThreeKeysByHand) {
  AttentionCase c({1, 1, 1}, {{3, 1}}, 1);
  const std::int64_t slot = c.slot(c.segments[0], 0);
  c.q[0] = 2.0f;
  c.k_pool[slot] = c.k_pool[slot + 1] = 0.0f, c.k_pool[slot + 2] = -64.0f;
  c.v_pool[slot] = 3.0f, c.v_pool[slot + 1] = 9.0f, c.v_pool[slot + 2] = 5.0f;
  OnTheDevice there(c, KvDtype::kBf16);
  there.run(there.items(1, 0));
  EXPECT_EQ(there.out()[0], 6.0f);
  EXPECT_NEAR(there.lse()[0], std::log(2.0f), 1e-6f);
}

// 1,024 keys in a split and one in the next. All weigh 1; values 1, and 1024 for the last.
TEST_F(CudaAttentionSplits, TwoSplitsByHand) {
  AttentionCase c({1, 1, 1}, {{1025, 1}}, 1);
  for (std::int64_t key = 0; key < 1025; ++key) {
    c.k_pool[c.k_at(c.segments[0], key, 0, 0)] = 0.0f;
    c.v_pool[c.v_at(c.segments[0], key, 0, 0)] = key < 1024 ? 1.0f : 1024.0f;
  }
  OnTheDevice there(c, KvDtype::kBf16);
  there.run(there.items(1, 0));
  EXPECT_NEAR(there.out()[0], 2048.0f / 1025.0f, 1e-6f);
  EXPECT_NEAR(there.lse()[0], std::log(1025.0f), 1e-6f);
}

TEST_F(CudaAttentionSplits, HasTheBitsOfTheDefinition) {
  const Sequences sequences{{1, 1}, {5, 5}, {16, 1}, {64, 33}, {70, 20}, {200, 3}};
  for (const Shape& shape : {Shape{2, 2, 20}, {3, 1, 32}, {4, 2, 16}, {1, 1, 37}})
    compare(shape, sequences, {}, {{32, 0}, {1, 0}, {7, 2}});
}

// Every number of warps to a tile and of dimensions to a warp; more heads than a tile has queries.
TEST_F(CudaAttentionSplits, LargeHeads) {
  compare({9, 3, 64}, {{70, 20}, {130, 2}}, {}, {{32, 0}, {1, 0}});
  compare({4, 1, 128}, {{70, 40}, {130, 2}}, {}, {{32, 0}, {1, 0}});
  compare({2, 1, 96}, {{70, 20}, {130, 1}}, {}, {{32, 0}, {1, 1}});
  compare({2, 2, 256}, {{70, 9}, {67, 1}}, {}, {{32, 0}, {1, 0}});
  compare({3, 1, 168}, {{70, 20}}, {}, {{32, 0}, {1, 0}});
  compare({16, 1, 16}, {{70, 20}}, {}, {{32, 0}, {1, 0}, {1, 5}});
  compare({18, 1, 16}, {{70, 20}}, {}, {{32, 0}, {1, 0}, {100, 0}});
}

TEST_F(CudaAttentionSplits, LengthsAroundTheSplits) {
  const Sequences sequences{{1023, 2}, {1024, 1}, {1024, 5}, {1025, 1}, {1025, 3}, {2050, 6}};
  compare({2, 1, 16}, sequences, {}, {{32, 0}, {1, 0}, {2, 1}});
  compare({2, 2, 20}, {{1040, 24}, {3100, 1}}, {}, {{32, 0}, {1, 0}});
}

TEST_F(CudaAttentionSplits, WindowsAndSoftCaps) {
  for (const Variant& variant : {Variant{0, 0.5f}, {15, 0}, {17, 0.7f}, {64, 5.0f}, {100, 0}})
    compare({4, 2, 16}, {{5, 5}, {17, 17}, {65, 1}, {150, 24}}, variant, {{32, 0}, {1, 0}});
  for (const Variant& variant : {Variant{1000, 0}, {1024, 3.0f}, {1500, 0}})
    compare({2, 1, 16}, {{1030, 4}, {2060, 5}, {2500, 1}}, variant, {{32, 0}, {1, 0}});
}

// A window that holds everything changes no bit.
TEST_F(CudaAttentionSplits, AWindowOfAllKeysIsNone) {
  AttentionCase c({4, 2, 16}, {{1100, 20}, {90, 1}}, 3),
      whole({4, 2, 16}, {{1100, 20}, {90, 1}}, 3, Variant{1100, 0});
  OnTheDevice without(c, KvDtype::kBf16), with(whole, KvDtype::kBf16);
  for (OnTheDevice* one : {&without, &with})
    one->run(one->items(32, 0));
  EXPECT_EQ(without.out(), with.out());
  EXPECT_EQ(without.lse(), with.lse());
}

// Against the formula in double, without a thought of splits.
TEST_F(CudaAttentionSplits, CloseToTheFormula) {
  AttentionCase c({4, 2, 32}, {{70, 20}, {1300, 2}}, 11, Variant{0, 20.0f});
  round_case(c);
  OnTheDevice there(c, KvDtype::kBf16);
  there.run(there.items(32, 0));
  const std::vector<float> out = there.out(), lse = there.lse();
  kernels::test::each_dense_row(c, [&](const Segment&, const kernels::test::DenseRow& r) {
    EXPECT_NEAR(lse[static_cast<std::size_t>(r.row * 4 + r.head)], r.lse, 2e-3);
    for (std::int64_t d = 0; d < 32; ++d)
      EXPECT_NEAR(out[static_cast<std::size_t>(r.row * c.ldo() + r.head * 32 + d)],
                  r.out[static_cast<std::size_t>(d)], 8e-3);
  });
}

TEST_F(CudaAttentionSplits, WithoutLogSumExp) {
  AttentionCase c({4, 2, 16}, {{70, 3}, {1100, 1}}, 3);
  const Guarded untouched(c.lse);
  for (const std::int32_t rows : {1, 32}) {
    OnTheDevice there(c, KvDtype::kBf16);
    there.run(there.items(rows, 0), false);
    EXPECT_TRUE(there.lse_is(untouched));
  }
}

// A query that is not finite spoils its own row and head alone.
TEST_F(CudaAttentionSplits, NansStayInTheirRow) {
  for (const float special : {kNan, kInf}) {
    AttentionCase c({4, 2, 16}, {{70, 20}, {90, 1}}, 3);
    c.q[3 * c.ldq() + 16 + 5] = special;  // row 3, head 1
    for (const std::int32_t rows : {1, 32}) {
      OnTheDevice there(c, KvDtype::kBf16);
      there.run(there.items(rows, 0));
      const std::vector<float> out = there.out();
      for (std::int64_t row = 0; row < 21; ++row)
        for (std::int64_t i = 0; i < 64; ++i)
          ASSERT_EQ(std::isnan(out[static_cast<std::size_t>(row * c.ldo() + i)]),
                    row == 3 && i / 16 == 1)
              << row << " " << i;
    }
  }
}

// 1 + 2^-8 is a tie and becomes 1, 1 + 3 * 2^-8 becomes 1 + 2^-6, a denormal 0.
TEST_F(CudaAttentionSplits, KeysAndValuesAreRoundedWhenTheyAreWritten) {
  Array<float> k(std::vector<float>{1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f}),
      v(std::vector<float>{1e-39f, -3.0f});
  Array<std::uint16_t> to_k(32, 0x1234), to_v(32, 0x1234);
  Array<std::int32_t> begin(std::vector<std::int32_t>{0, 1}), slots(std::vector<std::int32_t>{3});
  ops().kv_write({.kv_heads = 1,
                  .head_dim = 2,
                  .k = k.data(),
                  .ldk = 2,
                  .v = v.data(),
                  .ldv = 2,
                  .k_pool = {to_k.data(), KvDtype::kBf16},
                  .v_pool = {to_v.data(), KvDtype::kBf16},
                  .slot_begin = begin.data(),
                  .slots = slots.data()},
                 {0, 1});
  std::vector<std::uint16_t> keys(32, 0x1234), values(32, 0x1234);
  keys[3] = 0x3f80, keys[16 + 3] = 0x3f82;
  values[6] = 0, values[7] = 0xc040;
  EXPECT_EQ(to_k.read(), keys);
  EXPECT_EQ(to_v.read(), values);
}

// The gradient is that of the reference for the rounded numbers.
TEST_F(CudaAttentionSplits, GradientsReadTheRoundedNumbers) {
  AttentionCase c({4, 2, 20}, {{1, 1}, {70, 20}, {1030, 10}}, 31, Variant{0, 2.0f});
  OnTheDevice there(c, KvDtype::kBf16);
  there.run(there.items(32, 0));
  round_case(c);
  Array<float> q(copy(c.q)), k(copy(c.k_pool)), v(copy(c.v_pool)), out(there.out()),
      lse(there.lse()), dout(normal(c.rows * c.ldo(), 77)),
      dq(static_cast<std::size_t>(c.rows * c.ldq()), 5.0f), dk(k.host().size(), 0.25f),
      dv(v.host().size(), 0.25f);
  std::vector<AttentionUnit> all{{0, 3, 0}, {0, 3, 1}};
  Array<AttentionUnit> units(all);
  AttentionBackward b{.forward = c.args(),
                      .dout = dout.host().data(),
                      .lddo = c.ldo(),
                      .dq = dq.host().data(),
                      .lddq = c.ldq(),
                      .dk_pool = dk.host().data(),
                      .dv_pool = dv.host().data()};
  b.forward.out = out.host().data(), b.forward.lse = lse.host().data();
  reference().attention_backward(b, all.data(), 2);
  b.forward = there.args();
  b.dout = dout.data(), b.dq = dq.data(), b.dk_pool = dk.data(), b.dv_pool = dv.data();
  ops().attention_backward(b, units.data(), 2);
  EXPECT_TRUE(same(dq, dq.host()));
  EXPECT_TRUE(same(dk, dk.host()));
  EXPECT_TRUE(same(dv, dv.host()));
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
