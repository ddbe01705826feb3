// Attention: the bits of the reference for items of one row and of many, with windows, soft caps,
// shared heads and shuffled blocks; and no dependence on how rows are cut into items.
#include "tests/unit/kernels/cuda/attention_on_device.hpp"

namespace troupe::kernels::cuda::test {
namespace {

using kernels::test::AttentionCase;
using kernels::test::Guarded;
using kernels::test::Shape;
using kernels::test::Variant;
using Sequences = std::vector<AttentionCase::Sequence>;

class CudaAttention : public OnDevice {
 protected:
  static void compare(const Shape& shape,
                      const Sequences& sequences,
                      const Variant& variant,
                      std::initializer_list<std::pair<std::int32_t, std::int32_t>> cuts) {
    AttentionCase c(shape, sequences, 7, variant);
    std::vector<std::unique_ptr<OnTheDevice>> runs;
    for (const auto& [rows, heads] : cuts) {
      runs.push_back(std::make_unique<OnTheDevice>(c));
      runs.back()->run(runs.back()->items(rows, heads));
    }
    c.run(reference());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_TRUE(runs[i]->out_is(c.out)) << at(shape, variant) << " cut " << i;
      EXPECT_TRUE(runs[i]->lse_is(c.lse)) << at(shape, variant) << " cut " << i;
    }
  }
  static std::string at(const Shape& s, const Variant& v) {
    return "heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " of " +
           std::to_string(s.head_dim) + " window " + std::to_string(v.window) + " cap " +
           std::to_string(v.softcap);
  }
};

// One head of one dimension: q = 2, keys 0 and ln 2 / 2, values 3 and 9; weights 1/3 and 2/3.
TEST_F(CudaAttention, TwoKeysByHand) {
  AttentionCase c({1, 1, 1}, {{2, 1}}, 1);
  const std::int64_t slot = c.slot(c.segments[0], 0);
  c.q[0] = 2.0f;
  c.k_pool[slot] = 0.0f;
  c.k_pool[slot + 1] = std::log(2.0f) / 2.0f;
  c.v_pool[slot] = 3.0f;
  c.v_pool[slot + 1] = 9.0f;
  OnTheDevice there(c);
  there.run(there.items(1, 0));
  c.run(reference());
  EXPECT_NEAR(c.out[0], 7.0f, 1e-6);
  EXPECT_TRUE(there.out_is(c.out));
}

TEST_F(CudaAttention, HasTheBitsOfTheReference) {
  const Sequences sequences{{1, 1}, {5, 5}, {16, 1}, {64, 33}, {70, 20}, {200, 3}};
  for (const Shape& shape : {Shape{2, 2, 20}, {3, 1, 32}, {9, 3, 64}, {4, 2, 16}, {1, 1, 37}})
    compare(shape, sequences, {}, {{32, 0}, {1, 0}, {7, 2}});
}

// Every number of queries to a warp and every number of dimensions to a lane; more heads than
// items of one row may have.
TEST_F(CudaAttention, LargeHeads) {
  compare({4, 1, 128}, {{70, 40}, {130, 2}}, {}, {{32, 0}, {1, 0}});
  compare({2, 1, 96}, {{70, 20}, {130, 1}}, {}, {{32, 0}, {1, 1}});
  compare({1, 1, 100}, {{70, 20}}, {}, {{32, 0}, {1, 0}});
  compare({2, 2, 256}, {{70, 9}, {67, 1}}, {}, {{32, 0}, {1, 0}});
  compare({2, 1, 160}, {{70, 9}}, {}, {{32, 0}, {1, 0}});
  compare({4, 1, 256}, {{70, 3}}, {}, {{32, 0}, {1, 0}});
  compare({16, 1, 16}, {{70, 20}}, {}, {{32, 0}, {1, 0}, {1, 5}});
  compare({18, 1, 16}, {{70, 20}}, {}, {{32, 0}, {1, 0}, {100, 0}});
}

TEST_F(CudaAttention, WindowsAndSoftCaps) {
  const Sequences sequences{{5, 5}, {17, 17}, {65, 1}, {150, 40}, {200, 3}};
  for (const Variant& variant : kernels::test::variants())
    for (const Shape& shape : {Shape{3, 1, 32}, {4, 2, 16}})
      compare(shape, sequences, variant, {{32, 0}, {1, 0}});
}

// Items of one row on a device that is full: another number of copies ahead.
TEST_F(CudaAttention, ManyItemsOfOneRow) {
  Sequences sequences(70, {130, 1});
  compare({4, 2, 16}, sequences, {}, {{1, 0}});
}

// Items that are fewer than half of the multiprocessors are spread over several blocks.
TEST_F(CudaAttention, FewItemsOfOneRow) {
  for (const Shape& shape : {Shape{7, 1, 64}, Shape{15, 1, 8}, Shape{2, 1, 100}})
    compare(shape, {{200, 1}, {64, 1}}, {}, {{1, 0}});
  for (const Variant& variant : kernels::test::variants())
    compare({4, 2, 20}, {{321, 1}}, variant, {{1, 0}});
}

// An item for which an emulated device's workspace has no room for the scores, and one for which it
// has.
TEST_F(CudaAttention, FewItemsOfOneRowAndManyKeys) {
  compare({15, 1, 4}, {{9000, 1}, {70, 1}}, {}, {{1, 0}});
}

TEST_F(CudaAttention, WithoutLogSumExp) {
  AttentionCase c({4, 2, 16}, {{70, 3}}, 3);
  const Guarded untouched(c.lse);
  for (const std::int32_t rows : {1, 32}) {
    OnTheDevice there(c);
    there.run(there.items(rows, 0), false);
    EXPECT_TRUE(there.lse_is(untouched));
  }
}

TEST_F(CudaAttention, NansAndInfinities) {
  for (const float special : {kNan, kInf, -kInf, 1e30f}) {
    AttentionCase c({4, 2, 16}, {{70, 20}, {90, 1}}, 3);
    c.q[5] = special;
    c.k_pool[c.k_at(c.segments[1], 66, 1, 3)] = special;
    c.v_pool[c.v_at(c.segments[1], 12, 0, 3)] = special;
    c.v_pool[c.v_at(c.segments[0], 60, 0, 3)] = special;
    OnTheDevice whole(c), single(c);
    whole.run(whole.items(32, 0));
    single.run(single.items(1, 0));
    c.run(reference());
    EXPECT_TRUE(whole.out_is(c.out)) << special;
    EXPECT_TRUE(single.out_is(c.out)) << special;
    EXPECT_TRUE(single.lse_is(c.lse)) << special;
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test
