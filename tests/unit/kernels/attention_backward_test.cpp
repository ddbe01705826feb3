// The gradient of attention: against the formulas in double, the same bits on every level, and sums
// that do not depend on how rows are cut into segments.
#include "tests/unit/kernels/attention_case.hpp"

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
    for (std::size_t s = 0; s < c.segments.size(); ++s)
      for (std::int64_t head = 0; head < c.shape.kv_heads; ++head)
        ops.attention_backward(b, static_cast<std::int64_t>(s), head);
  }
  Guarded dout, dq, dk, dv;
};

// The same gradients in double, from the definition of softmax alone.
struct DenseGradients {
  explicit DenseGradients(AttentionCase& c, const Guarded& dout)
      : dq(static_cast<std::size_t>(c.rows * c.ldq()), 0.0),
        dk(static_cast<std::size_t>(c.k_pool.size()), 0.25),
        dv(static_cast<std::size_t>(c.v_pool.size()), 0.25) {
    for (const Segment& segment : c.segments)
      for (std::int64_t i = 0; i < segment.rows; ++i)
        for (std::int64_t head = 0; head < c.shape.heads; ++head)
          row(c, dout, segment, i, head);
  }

  void row(AttentionCase& c,
           const Guarded& dout,
           const Segment& segment,
           std::int64_t i,
           std::int64_t head) {
    const std::int64_t dim = c.shape.head_dim;
    const std::int64_t group = c.shape.heads / c.shape.kv_heads;
    const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
    const std::int64_t at = (segment.first_row + i) * c.ldq() + head * dim;
    const std::int64_t out_at = (segment.first_row + i) * c.ldo() + head * dim;
    const std::int64_t keys = segment.first_position + i + 1;
    std::vector<double> p, dp;
    double total = 0.0, mean = 0.0;
    const auto k_at = [&](std::int64_t key, std::int64_t d) {
      const std::int64_t slot = c.slot(segment, key);
      return ((slot / kKvBlock * c.shape.kv_heads + head / group) * dim + d) * kKvBlock +
             slot % kKvBlock;
    };
    const auto v_at = [&](std::int64_t key, std::int64_t d) {
      const std::int64_t slot = c.slot(segment, key);
      return ((slot / kKvBlock * c.shape.kv_heads + head / group) * kKvBlock + slot % kKvBlock) *
                 dim +
             d;
    };
    const auto value = [](float x) { return static_cast<double>(x); };
    for (std::int64_t key = 0; key < keys; ++key) {
      double dot = 0.0, grad = 0.0;
      for (std::int64_t d = 0; d < dim; ++d) {
        dot += value(c.q[at + d]) * value(c.k_pool[k_at(key, d)]);
        grad += value(dout[out_at + d]) * value(c.v_pool[v_at(key, d)]);
      }
      p.push_back(std::exp(dot * scale));
      dp.push_back(grad);
      total += p.back();
    }
    for (std::size_t key = 0; key < p.size(); ++key)
      mean += (p[key] /= total) * dp[key];
    for (std::int64_t key = 0; key < keys; ++key) {
      const double weight = p[static_cast<std::size_t>(key)];
      const double ds = weight * (dp[static_cast<std::size_t>(key)] - mean) * scale;
      for (std::int64_t d = 0; d < dim; ++d) {
        dq[static_cast<std::size_t>(at + d)] += ds * value(c.k_pool[k_at(key, d)]);
        dk[static_cast<std::size_t>(k_at(key, d))] += ds * value(c.q[at + d]);
        dv[static_cast<std::size_t>(v_at(key, d))] += weight * value(dout[out_at + d]);
      }
    }
  }
  std::vector<double> dq, dk, dv;
};

double worst_difference(const Guarded& actual, const std::vector<double>& expected) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < actual.size(); ++i)
    worst = std::max(
        worst, std::abs(static_cast<double>(actual[i]) - expected[static_cast<std::size_t>(i)]));
  return worst;
}

class AttentionBackwardLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(AttentionBackwardLevels);

TEST_P(AttentionBackwardLevels, CloseToTheFormulasInDouble) {
  for (const Shape& shape : shapes()) {
    AttentionCase c(shape, {{1, 1}, {17, 17}, {70, 20}, {130, 130}}, 21);
    c.run(level());
    Gradients g(c);
    for (std::int64_t i = 0; i < g.dq.size(); ++i)
      g.dq[i] = 0.0f;
    g.run(level(), c);
    const DenseGradients dense(c, g.dout);
    EXPECT_LT(worst_difference(g.dq, dense.dq), 2e-5);
    EXPECT_LT(worst_difference(g.dk, dense.dk), 2e-5);
    EXPECT_LT(worst_difference(g.dv, dense.dv), 2e-5);
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

// A prompt's keys are shared by the segments of its samples: the sums are those of one long segment
// as long as the rows follow in the same order.
TEST_P(AttentionBackwardLevels, SegmentsMayBeCutAnywhere) {
  AttentionCase c({3, 1, 32}, {{150, 150}}, 5);
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
    EXPECT_TRUE(same_bits(whole.dq, g.dq)) << chunk;
    EXPECT_TRUE(same_bits(whole.dk, g.dk)) << chunk;
    EXPECT_TRUE(same_bits(whole.dv, g.dv)) << chunk;
  }
}

}  // namespace
}  // namespace troupe::kernels::test
