// The gradient of attention: the reference's bits over odd heads, windows, soft caps and segments
// that share blocks.
#include "tests/unit/kernels/attention_case.hpp"
#include "tests/unit/kernels/cuda/fixture.hpp"

namespace troupe::kernels::cuda::test {
namespace {

using kernels::test::AttentionCase;
using kernels::test::Guarded;
using kernels::test::Shape;
using kernels::test::Variant;

class CudaAttentionBackward : public OnDevice {};

std::vector<float> values(const Guarded& from) {
  return {from.data(), from.data() + from.size()};
}

// Both sides from the same forward pass (the reference's).
void compare(AttentionCase& c, const std::vector<AttentionUnit>& all) {
  c.run(reference());
  const std::string name = std::to_string(c.shape.heads) + " " + std::to_string(c.shape.kv_heads) +
                           " " + std::to_string(c.shape.head_dim) + " window " +
                           std::to_string(c.variant.window);
  Array<float> q(values(c.q)), k(values(c.k_pool)), v(values(c.v_pool)), out(values(c.out)),
      lse(values(c.lse)), dout(normal(c.rows * c.ldo(), 77)),
      dq(static_cast<std::size_t>(c.rows * c.ldq()), 5.0f), dk(k.host().size(), 0.25f),
      dv(v.host().size(), 0.25f);
  Array<Segment> segments(c.segments);
  Array<std::int32_t> table(c.table);
  Array<AttentionUnit> units(all);
  const auto args = [&](bool host) {
    const auto at = [&](auto& a) { return host ? a.host().data() : a.data(); };
    AttentionBackward b{.forward = c.args(),
                        .dout = at(dout),
                        .lddo = c.ldo(),
                        .dq = at(dq),
                        .lddq = c.ldq(),
                        .dk_pool = at(dk),
                        .dv_pool = at(dv)};
    b.forward.q = at(q);
    b.forward.k_pool = at(k);
    b.forward.v_pool = at(v);
    b.forward.segments = at(segments);
    b.forward.block_table = at(table);
    b.forward.out = at(out);
    b.forward.lse = at(lse);
    return b;
  };
  reference().attention_backward(args(true), all.data(), std::ssize(all));
  device()->ops().attention_backward(args(false), units.data(), std::ssize(all));
  EXPECT_TRUE(same(dq, dq.host())) << name;
  EXPECT_TRUE(same(dk, dk.host())) << name;
  EXPECT_TRUE(same(dv, dv.host())) << name;
}

// One unit for each kv head over all segments.
std::vector<AttentionUnit> whole(const AttentionCase& c) {
  std::vector<AttentionUnit> units;
  for (std::int32_t head = 0; head < c.shape.kv_heads; ++head)
    units.push_back({0, static_cast<std::int32_t>(c.segments.size()), head});
  return units;
}

// A single query on a single key: p = 1, so dv is dout, and nothing moves q and k.
TEST_F(CudaAttentionBackward, ByHand) {
  AttentionCase c({1, 1, 16}, {{1, 1}}, 3);
  c.run(reference());
  Array<float> q(values(c.q)), k(values(c.k_pool)), v(values(c.v_pool)), out(values(c.out)),
      lse(values(c.lse)), dout(std::vector<float>(20, 2.0f)), dq(24, 5.0f),
      dk(k.host().size(), 0.25f), dv(v.host().size(), 0.25f);
  Array<Segment> segments(c.segments);
  Array<std::int32_t> table(c.table);
  Array<AttentionUnit> units(whole(c));
  AttentionBackward b{.forward = c.args(),
                      .dout = dout.data(),
                      .lddo = 20,
                      .dq = dq.data(),
                      .lddq = 24,
                      .dk_pool = dk.data(),
                      .dv_pool = dv.data()};
  b.forward.q = q.data();
  b.forward.k_pool = k.data();
  b.forward.v_pool = v.data();
  b.forward.segments = segments.data();
  b.forward.block_table = table.data();
  b.forward.out = out.data();
  b.forward.lse = lse.data();
  ops().attention_backward(b, units.data(), 1);
  const std::vector<float> values = dv.read(), moved = dq.read();
  for (std::int64_t d = 0; d < 16; ++d) {
    EXPECT_NEAR(values[static_cast<std::size_t>(c.v_at(c.segments[0], 0, 0, d))], 2.25f, 1e-5f);
    EXPECT_NEAR(moved[static_cast<std::size_t>(d)], 0.0f, 1e-4f);
  }
  EXPECT_EQ(moved[16], 5.0f);  // the room behind a row
}

TEST_F(CudaAttentionBackward, HasTheBitsOfTheReference) {
  for (const Shape& shape : std::vector<Shape>{{2, 2, 20},
                                               {3, 1, 32},
                                               {9, 3, 64},
                                               {4, 2, 16},
                                               {1, 1, 37},
                                               {4, 1, 128},
                                               {2, 1, 80},
                                               {1, 1, 256},
                                               {2, 1, 200}}) {
    const bool large = shape.head_dim > 64;
    AttentionCase c(shape,
                    large ? std::vector<AttentionCase::Sequence>{{1, 1}, {40, 9}, {70, 70}}
                          : std::vector<AttentionCase::Sequence>{{1, 1},
                                                                 {5, 5},
                                                                 {16, 1},
                                                                 {17, 17},
                                                                 {65, 1},
                                                                 {70, 20},
                                                                 {100, 100}},
                    31);
    compare(c, whole(c));
  }
}

TEST_F(CudaAttentionBackward, HasItWithWindowsAndCaps) {
  for (const Variant& variant : kernels::test::variants())
    for (const Shape& shape : std::vector<Shape>{{4, 2, 20}, {3, 1, 32}}) {
      AttentionCase c(shape, {{1, 1}, {17, 17}, {70, 20}, {130, 60}, {150, 3}}, 31, variant);
      compare(c, whole(c));
    }
}

// A key that is not finite reaches only the queries that see it; a query that is not finite all
// keys of the blocks that it sees in part, as the zeros of unseen keys are multiplied too.
TEST_F(CudaAttentionBackward, KeepsSpecialNumbers) {
  for (const bool key : {true, false}) {
    AttentionCase c({1, 1, 20}, {{166, 136}}, 11);
    if (key)
      c.k_pool[c.k_at(c.segments[0], 95, 0, 3)] = kInf;
    else
      c.q[70 * c.ldq() + 5] = kInf;
    compare(c, whole(c));
  }
}

// Units of their own for each sequence, and segments of one sequence in one unit, which share its
// blocks.
TEST_F(CudaAttentionBackward, SegmentsShareBlocks) {
  for (const Variant& variant : {Variant{}, Variant{40, 0}, Variant{70, 2.0f}})
    for (const std::int32_t chunk : {1, 10, 16, 60}) {
      AttentionCase c({4, 2, 20}, {{90, 90}}, 5, variant);
      c.segments.clear();
      for (std::int32_t at = 0; at < 90; at += chunk)
        c.segments.push_back({at, std::min(chunk, 90 - at), at, 0});
      compare(c, whole(c));
    }
}

// Three samples that go on from one prompt's blocks, with tables of different lengths, beside a
// sequence in units of its own.
TEST_F(CudaAttentionBackward, SamplesShareAPrompt) {
  AttentionCase c({4, 2, 32}, {{48, 48}, {30, 30}, {20, 20}, {40, 40}, {33, 33}}, 7);
  const auto prompt = c.segments[0].table;
  std::vector<std::int32_t> table = c.table;
  for (std::size_t s = 1; s < 4; ++s) {
    Segment& segment = c.segments[s];
    const auto own = static_cast<std::size_t>(segment.table);
    segment.table = static_cast<std::int32_t>(table.size());
    segment.first_position = 48;
    for (std::int32_t i = 0; i < 3; ++i)
      table.push_back(c.table[static_cast<std::size_t>(prompt + i)]);
    for (std::int32_t i = 0; i < (segment.rows + 15) / 16; ++i)
      table.push_back(c.table[own + static_cast<std::size_t>(i)]);
  }
  c.table = table;
  compare(c, {{0, 4, 0}, {0, 4, 1}, {4, 5, 1}, {4, 5, 0}});
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
