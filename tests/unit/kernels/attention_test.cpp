// Attention: against dense double arithmetic, the same bits on every level, and no dependence on
// how rows are cut into items, how a prompt is cut into chunks, or where its blocks lie.
#include "tests/unit/kernels/attention_dense.hpp"

namespace troupe::kernels::test {
namespace {

using Sequences = std::vector<AttentionCase::Sequence>;

// The largest error over all outputs and log-sum-exps.
double error_against_dense(AttentionCase& c) {
  double worst = 0.0;
  const auto take = [&](double expected, float actual) {
    const double error = std::abs(expected - static_cast<double>(actual));
    worst = error <= worst ? worst : error;  // a NaN stays
  };
  each_dense_row(c, [&](const Segment&, const DenseRow& r) {
    for (std::int64_t d = 0; d < c.shape.head_dim; ++d)
      take(r.out[static_cast<std::size_t>(d)],
           c.out[r.row * c.ldo() + r.head * c.shape.head_dim + d]);
    take(r.lse, c.lse[r.row * c.shape.heads + r.head]);
  });
  return worst;
}

class AttentionAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(AttentionAllLevels);

TEST_P(AttentionAllLevels, TwoKeysByHand) {
  // One head of one dimension: q = 2, keys 0 and ln 2 / 2, values 3 and 9; scores 0 and ln 2,
  // weights 1/3 and 2/3, output 7.
  AttentionCase c({1, 1, 1}, {{2, 1}}, 1);
  const std::int64_t slot = c.slot(c.segments[0], 0);
  c.q[0] = 2.0f;
  c.k_pool[slot] = 0.0f;
  c.k_pool[slot + 1] = std::log(2.0f) / 2.0f;
  c.v_pool[slot] = 3.0f;
  c.v_pool[slot + 1] = 9.0f;
  c.run(level());
  EXPECT_NEAR(c.out[0], 7.0f, 1e-6);
  EXPECT_NEAR(c.lse[0], std::log(3.0f), 1e-6);
}

TEST_P(AttentionAllLevels, CloseToDenseInDouble) {
  for (const Shape& shape : shapes()) {
    AttentionCase c(shape, sequences(), 7);
    c.run(level());
    EXPECT_LT(error_against_dense(c), 3e-6);
  }
}

// As TwoKeysByHand with a third key before them that the window of 2 hides, and with a soft cap of
// 0.5 that makes the scores 0 and tanh(2 ln 2) / 2 = (16 - 1) / (16 + 1) / 2 = 15 / 34.
TEST_P(AttentionAllLevels, WindowAndSoftCapByHand) {
  for (const float cap : {0.0f, 0.5f}) {
    AttentionCase c({1, 1, 1}, {{3, 1}}, 1, {.window = 2, .softcap = cap});
    const std::int64_t slot = c.slot(c.segments[0], 1);
    c.q[0] = 2.0f;
    c.k_pool[slot] = 0.0f;
    c.k_pool[slot + 1] = std::log(2.0f) / 2.0f;
    c.v_pool[slot] = 3.0f;
    c.v_pool[slot + 1] = 9.0f;
    c.run(level());
    const float second = cap > 0.0f ? std::exp(15.0f / 34.0f) : 2.0f;
    EXPECT_NEAR(c.out[0], (3.0f + 9.0f * second) / (1.0f + second), 1e-6);
    EXPECT_NEAR(c.lse[0], std::log(1.0f + second), 1e-6);
  }
}

TEST_P(AttentionAllLevels, WindowsAndCapsAreCloseToDenseInDouble) {
  for (const Variant& variant : variants())
    for (const Shape& shape : small_shapes()) {
      AttentionCase c(shape, sequences(), 7, variant);
      c.run(level());
      EXPECT_LT(error_against_dense(c), 4e-6) << variant.window << " " << variant.softcap;
    }
}

TEST_P(AttentionAllLevels, WindowBeyondTheContextChangesNoBit) {
  AttentionCase plain({9, 3, 64}, sequences(), 13);
  AttentionCase wide({9, 3, 64}, sequences(), 13, {.window = 200});
  plain.run(level());
  wide.run(level());
  EXPECT_TRUE(same_bits(plain.out, wide.out));
  EXPECT_TRUE(same_bits(plain.lse, wide.lse));
}

TEST_P(AttentionAllLevels, WindowedItemsMayBeCutAnywhere) {
  for (const Variant& variant : variants())
    for (const Shape& shape : {Shape{3, 1, 32}, Shape{4, 2, 16}}) {
      AttentionCase whole(shape, sequences(), 11, variant);
      whole.run(level());
      for (const std::int32_t rows : {1, 2, 7, 33}) {
        AttentionCase cut(shape, sequences(), 11, variant);
        cut.run(level(), rows);
        EXPECT_TRUE(same_bits(whole.out, cut.out)) << rows << " " << variant.window;
        EXPECT_TRUE(same_bits(whole.lse, cut.lse)) << rows << " " << variant.window;
      }
    }
}

TEST_P(AttentionAllLevels, ItemsMayBeCutAnywhere) {
  for (const Shape& shape : shapes()) {
    AttentionCase whole(shape, sequences(), 11);
    whole.run(level());
    for (const std::int32_t rows : {1, 2, 7, 16, 33}) {
      AttentionCase cut(shape, sequences(), 11);
      cut.run(level(), rows);
      EXPECT_TRUE(same_bits(whole.out, cut.out)) << rows;
      EXPECT_TRUE(same_bits(whole.lse, cut.lse)) << rows;
    }
  }
}

TEST_P(AttentionAllLevels, ItemsMayBeCutBetweenHeads) {
  for (const Shape& shape : shapes()) {
    AttentionCase whole(shape, sequences(), 11);
    whole.run(level());
    AttentionCase cut(shape, sequences(), 11);
    const Attention a = cut.args();
    const auto shared = static_cast<std::int32_t>(shape.heads / shape.kv_heads);
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(cut.segments.size()); ++s)
      for (std::int32_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head)
        for (std::int32_t head = 0; head < shared;) {
          const std::int32_t end = std::min(shared, head + 1 + s % 2);
          const AttentionItem item{s,    kv_head, 0, cut.segments[static_cast<std::size_t>(s)].rows,
                                   head, end};
          level().attention(a, &item, 1);
          head = end;
        }
    EXPECT_TRUE(same_bits(whole.out, cut.out)) << shape.heads;
    EXPECT_TRUE(same_bits(whole.lse, cut.lse)) << shape.heads;
  }
}

// The same sequence as one prompt, in chunks, and one token at a time: segments with other rows and
// first positions, the same bits.
TEST_P(AttentionAllLevels, PromptsMayBeCutAnywhere) {
  for (const Shape& shape : shapes()) {
    AttentionCase c(shape, {{150, 150}}, 5);
    c.run(level());
    const Guarded whole(c.out);
    for (const std::int32_t chunk : {1, 3, 16, 50, 64, 149}) {
      for (std::int64_t i = 0; i < c.out.size(); ++i)
        c.out[i] = whole[i];
      for (std::int64_t row = 0; row < c.rows; ++row)
        for (std::int64_t i = 0; i < shape.heads * shape.head_dim; ++i)
          c.out[row * c.ldo() + i] = kNan;
      std::vector<Segment> chunks;
      for (std::int32_t at = 0; at < 150; at += chunk)
        chunks.push_back({at, std::min(chunk, 150 - at), at, 0});
      c.segments = chunks;
      c.run(level());
      EXPECT_TRUE(same_bits(whole, c.out)) << chunk;
    }
  }
}

TEST_P(AttentionAllLevels, BlocksMayLieAnywhere) {
  for (const Shape& shape : shapes()) {
    AttentionCase c(shape, {{150, 90}}, 5);
    c.run(level());
    const Guarded first(c.out);
    std::vector<std::int32_t> moved(c.table.rbegin(), c.table.rend());
    Guarded k(c.k_pool.size(), kNan);
    Guarded v(c.v_pool.size(), kNan);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      std::copy_n(c.k_pool.data() + c.table[i] * c.block_floats(), c.block_floats(),
                  k.data() + moved[i] * c.block_floats());
      std::copy_n(c.v_pool.data() + c.table[i] * c.block_floats(), c.block_floats(),
                  v.data() + moved[i] * c.block_floats());
    }
    std::copy_n(k.data(), k.size(), c.k_pool.data());
    std::copy_n(v.data(), v.size(), c.v_pool.data());
    c.table = moved;
    c.run(level());
    EXPECT_TRUE(same_bits(first, c.out));
  }
}

class AttentionVectorLevels : public VectorLevel {};
TROUPE_VECTOR_LEVELS(AttentionVectorLevels);

TEST_P(AttentionVectorLevels, SameBitsAsReference) {
  for (const Shape& shape : shapes()) {
    AttentionCase expected(shape, sequences(), 3);
    AttentionCase actual(shape, sequences(), 3);
    expected.run(reference());
    actual.run(level());
    EXPECT_TRUE(same_bits(expected.out, actual.out)) << shape.heads << " " << shape.head_dim;
    EXPECT_TRUE(same_bits(expected.lse, actual.lse)) << shape.heads << " " << shape.head_dim;
  }
}

TEST_P(AttentionVectorLevels, SameBitsAsReferenceWithWindowsAndCaps) {
  for (const Variant& variant : variants())
    for (const Shape& shape : small_shapes()) {
      AttentionCase expected(shape, sequences(), 3, variant);
      AttentionCase actual(shape, sequences(), 3, variant);
      expected.run(reference());
      actual.run(level());
      EXPECT_TRUE(same_bits(expected.out, actual.out)) << variant.window << " " << shape.head_dim;
      EXPECT_TRUE(same_bits(expected.lse, actual.lse)) << variant.window << " " << shape.head_dim;
    }
}

class AttentionOddValues : public AttentionVectorLevels {
 protected:
  void with(Variant variant) {
    for (const float value : {kInf, -kInf, kNan, 1e30f, -1e30f, 1e-40f})
      for (const std::int64_t row : {3, 40, 90})
        both(variant, value, row);
  }
  void both(Variant variant, float value, std::int64_t row) {
    AttentionCase expected({3, 1, 32}, {{100, 100}, {70, 2}}, 3, variant);
    expected.q[row * expected.ldq() + 5] = value;
    expected.k_pool[expected.slot(expected.segments[0], 20)] = value;
    AttentionCase actual(expected);
    expected.run(reference());
    actual.run(level());
    EXPECT_TRUE(same_bits(expected.out, actual.out)) << value;
    EXPECT_TRUE(same_bits(expected.lse, actual.lse)) << value;
  }
};
TROUPE_VECTOR_LEVELS(AttentionOddValues);

TEST_P(AttentionOddValues, SameBitsWithInfinitiesAndHugeScores) {
  with({});
  with({.window = 33});
  with({.window = 0, .softcap = 30.0f});
}

TEST_P(AttentionVectorLevels, LogSumExpMayBeLeftOut) {
  AttentionCase c({2, 1, 16}, {{20, 4}}, 3);
  Attention a = c.args();
  a.lse = nullptr;
  const AttentionItem item{0, 0, 0, 4};
  level().attention(a, &item, 1);
  EXPECT_EQ(c.lse[0], 3.0f);
  const Guarded without(c.out);
  c.run(level());
  EXPECT_TRUE(same_bits(without, c.out));
}

TEST_P(AttentionVectorLevels, RowsGoToTheirSlotsAndBack) {
  for (const Shape& shape : shapes()) {
    const std::vector<std::int32_t> begin{0, 1, 4, 4, 5};
    const std::vector<std::int32_t> slots{17, 0, 33, 47, 16};
    const std::int64_t width = shape.kv_heads * shape.head_dim;
    Guarded k = Guarded::random(4 * width, 1);
    Guarded v = Guarded::random(4 * width, 2);
    const auto pools = [&](const Ops& ops) {
      Guarded k_pool(3 * width * kKvBlock, kNan);
      Guarded v_pool(3 * width * kKvBlock, kNan);
      const KvWrite w{.kv_heads = shape.kv_heads,
                      .head_dim = shape.head_dim,
                      .k = k.data(),
                      .ldk = width,
                      .v = v.data(),
                      .ldv = width,
                      .k_pool = k_pool.data(),
                      .v_pool = v_pool.data(),
                      .slot_begin = begin.data(),
                      .slots = slots.data()};
      ops.kv_write(w, {0, 2});
      ops.kv_write(w, {2, 4});
      return std::pair(k_pool, v_pool);
    };
    auto expected = pools(reference());
    auto actual = pools(level());
    EXPECT_TRUE(same_bits(expected.first, actual.first));
    EXPECT_TRUE(same_bits(expected.second, actual.second));
    Guarded k_back(4 * width, 1.0f), v_back(4 * width, 1.0f);
    Guarded k_back_expected(4 * width, 1.0f), v_back_expected(4 * width, 1.0f);
    KvWrite gather{.kv_heads = shape.kv_heads,
                   .head_dim = shape.head_dim,
                   .k = k_back.data(),
                   .ldk = width,
                   .v = v_back.data(),
                   .ldv = width,
                   .k_pool = actual.first.data(),
                   .v_pool = actual.second.data(),
                   .slot_begin = begin.data(),
                   .slots = slots.data()};
    level().kv_gather(gather, {0, 4});
    gather.k = k_back_expected.data();
    gather.v = v_back_expected.data();
    reference().kv_gather(gather, {0, 4});
    EXPECT_TRUE(same_bits(k_back_expected, k_back));
    EXPECT_TRUE(same_bits(v_back_expected, v_back));
    EXPECT_EQ(k_back[0], k[0]);
    EXPECT_FLOAT_EQ(v_back[width], 3 * v[width]);
    EXPECT_EQ(k_back[2 * width], 0.0f);
  }
}

}  // namespace
}  // namespace troupe::kernels::test
