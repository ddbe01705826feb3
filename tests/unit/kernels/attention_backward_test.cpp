// The gradient of attention: against the formulas in double, the same bits on every level, and sums
// that do not depend on how rows are cut into segments.
#include "tests/unit/kernels/attention_dense.hpp"

namespace troupe::kernels::test {
namespace {

struct Gradients {
  explicit Gradients(AttentionCase& c)
      : dout(Guarded::random(c.rows * c.ldo(), 77)),
        dq(c.rows * c.ldq(), 5.0f),
        dk(c.k_pool.size(), 0.25f),
        dv(c.v_pool.size(), 0.25f) {}
  void run(const Ops& ops, AttentionCase& c) {
    const AttentionBackward b{.forward = c.args(),
                              .dout = dout.data(),
                              .lddo = c.ldo(),
                              .dq = dq.data(),
                              .lddq = c.ldq(),
                              .dk_pool = dk.data(),
                              .dv_pool = dv.data()};
    std::vector<AttentionUnit> units;
    for (std::int32_t head = 0; head < c.shape.kv_heads; ++head)
      units.push_back({0, static_cast<std::int32_t>(c.segments.size()), head});
    ops.attention_backward(b, units.data(), std::ssize(units));
  }
  Guarded dout, dq, dk, dv;
};

double worst_difference(const Guarded& actual, const std::vector<double>& expected) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double error =
        std::abs(static_cast<double>(actual[i]) - expected[static_cast<std::size_t>(i)]);
    worst = error <= worst ? worst : error;  // a NaN stays
  }
  return worst;
}

class AttentionBackwardLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(AttentionBackwardLevels);

TEST_P(AttentionBackwardLevels, CloseToTheFormulasInDouble) {
  std::vector<Variant> all = variants();
  all.push_back({});
  for (const Variant& variant : all)
    for (const Shape& shape :
         variant.window > 0 || variant.softcap > 0.0f ? small_shapes() : shapes()) {
      AttentionCase c(shape, {{1, 1}, {17, 17}, {70, 20}, {130, 130}, {200, 3}}, 21, variant);
      c.run(level());
      Gradients g(c);
      for (std::int64_t i = 0; i < g.dq.size(); ++i)
        g.dq[i] = 0.0f;
      g.run(level(), c);
      const DenseGradients dense(c, g.dout);
      EXPECT_LT(worst_difference(g.dq, dense.dq), 2e-5) << variant.window << " " << shape.head_dim;
      EXPECT_LT(worst_difference(g.dk, dense.dk), 2e-5) << variant.window << " " << shape.head_dim;
      EXPECT_LT(worst_difference(g.dv, dense.dv), 2e-5) << variant.window << " " << shape.head_dim;
    }
}

// The slope of the loss itself, by moving one input a little to both sides.
TEST_P(AttentionBackwardLevels, AgreesWithFiniteDifferences) {
  for (const Variant& variant : {Variant{}, Variant{17, 0}, Variant{0, 0.8f}, Variant{70, 3.0f}}) {
    AttentionCase c({3, 1, 20}, {{90, 40}}, 9, variant);
    c.run(level());
    Gradients g(c);
    g.run(level(), c);
    const auto slope = [&](float& x) {
      const float middle = x;
      x = middle + 0x1p-8f;
      const double above = dense_loss(c, g.dout), x_above = static_cast<double>(x);
      x = middle - 0x1p-8f;
      const double below = dense_loss(c, g.dout), x_below = static_cast<double>(x);
      x = middle;
      return (above - below) / (x_above - x_below);
    };
    const Segment& segment = c.segments[0];
    for (const std::int64_t at : {0, 19, 33}) {
      const std::int64_t q_at = at * c.ldq() + 7 + at;
      EXPECT_NEAR(static_cast<double>(g.dq[q_at]), slope(c.q[q_at]), 3e-4) << variant.window;
      const std::int64_t k_at = c.k_at(segment, 50 + at, 0, 3);
      EXPECT_NEAR(static_cast<double>(g.dk[k_at]) - 0.25, slope(c.k_pool[k_at]), 3e-4)
          << variant.window;
      const std::int64_t v_at = c.v_at(segment, 50 + at, 0, 5);
      EXPECT_NEAR(static_cast<double>(g.dv[v_at]) - 0.25, slope(c.v_pool[v_at]), 3e-4)
          << variant.window;
    }
  }
}

TEST_P(AttentionBackwardLevels, SameBitsAsReference) {
  for (const Shape& shape : shapes()) {
    AttentionCase expected_case(shape, sequences(), 31);
    AttentionCase actual_case(shape, sequences(), 31);
    expected_case.run(reference());
    actual_case.run(level());
    Gradients expected(expected_case);
    Gradients actual(actual_case);
    expected.run(reference(), expected_case);
    actual.run(level(), actual_case);
    EXPECT_TRUE(same_bits(expected.dq, actual.dq)) << shape.heads << " " << shape.head_dim;
    EXPECT_TRUE(same_bits(expected.dk, actual.dk)) << shape.heads << " " << shape.head_dim;
    EXPECT_TRUE(same_bits(expected.dv, actual.dv)) << shape.heads << " " << shape.head_dim;
  }
}

TEST_P(AttentionBackwardLevels, SameBitsAsReferenceWithWindowsAndCaps) {
  for (const Variant& variant : variants())
    for (const Shape& shape : small_shapes()) {
      AttentionCase expected_case(shape, sequences(), 31, variant);
      AttentionCase actual_case(shape, sequences(), 31, variant);
      expected_case.run(reference());
      actual_case.run(level());
      Gradients expected(expected_case);
      Gradients actual(actual_case);
      expected.run(reference(), expected_case);
      actual.run(level(), actual_case);
      EXPECT_TRUE(same_bits(expected.dq, actual.dq)) << variant.window << " " << shape.head_dim;
      EXPECT_TRUE(same_bits(expected.dk, actual.dk)) << variant.window << " " << shape.head_dim;
      EXPECT_TRUE(same_bits(expected.dv, actual.dv)) << variant.window << " " << shape.head_dim;
    }
}

// A prompt's keys are shared by the segments of its samples: the sums are those of one long segment
// as long as the rows follow in the same order.
TEST_P(AttentionBackwardLevels, SegmentsMayBeCutAnywhere) {
  for (const Variant& variant : {Variant{}, Variant{40, 0}, Variant{70, 2.0f}}) {
    AttentionCase c({3, 1, 32}, {{150, 150}}, 5, variant);
    c.run(level());
    Gradients whole(c);
    whole.run(level(), c);
    for (const std::int32_t chunk : {1, 10, 16, 64, 100}) {
      AttentionCase cut(c);
      cut.segments.clear();
      for (std::int32_t at = 0; at < 150; at += chunk)
        cut.segments.push_back({at, std::min(chunk, 150 - at), at, 0});
      Gradients g(cut);
      g.run(level(), cut);
      EXPECT_TRUE(same_bits(whole.dq, g.dq)) << chunk << " " << variant.window;
      EXPECT_TRUE(same_bits(whole.dk, g.dk)) << chunk << " " << variant.window;
      EXPECT_TRUE(same_bits(whole.dv, g.dv)) << chunk << " " << variant.window;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::test
