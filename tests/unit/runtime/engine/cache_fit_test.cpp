#include "runtime/engine/cache_fit.hpp"

#include <gtest/gtest.h>

namespace troupe::engine {
namespace {

// A token has 2 layers x 2 x 2 heads x 16 numbers: 512 bytes, a block of 16 tokens 8,192.
model::ModelSpec spec() {
  model::ModelSpec spec;
  spec.layers = 2;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.context = 256;
  return spec;
}

EngineLimits limits(std::uint64_t bytes) {
  EngineLimits limits;
  limits.max_num_seqs = 8;
  limits.max_num_batched_tokens = 64;
  limits.kv_cache_gb.bytes = bytes;
  return limits;
}

constexpr kernels::KvDtype kF32 = kernels::KvDtype::kF32;

TEST(CacheFit, ByHand) {
  // 49 positions of a sample are 4 blocks, of which the prompt's first is shared by the group.
  const CacheFit of_four = cache_fit(spec(), kF32, limits(10 * 8192 + 8191), {20, 4, 30});
  EXPECT_EQ(of_four.block_bytes, 8192u);
  EXPECT_EQ(of_four.blocks, 10);
  EXPECT_EQ(of_four.wanted, 5);
  EXPECT_EQ(of_four.wanted_bytes(), 5u * 8192);
  EXPECT_TRUE(of_four.fits());
  EXPECT_EQ(of_four.at_once, 3);  // 1 + 3 x 3 of 10
  // A group of two takes 1 + 2 x 3; the three blocks behind it hold no more than a prompt.
  EXPECT_EQ(cache_fit(spec(), kF32, limits(10 * 8192), {20, 2, 30}).at_once, 2);
  EXPECT_EQ(cache_fit(spec(), kF32, limits(11 * 8192), {20, 2, 30}).at_once, 3);
  // Half the bytes, twice the blocks.
  EXPECT_EQ(cache_fit(spec(), kernels::KvDtype::kBf16, limits(10 * 8192), {20, 4, 30}).blocks, 20);
}

TEST(CacheFit, OneBlockTooFewIsTooFew) {
  EXPECT_FALSE(cache_fit(spec(), kF32, limits(5 * 8192 - 1), {20, 4, 30}).fits());
  EXPECT_TRUE(cache_fit(spec(), kF32, limits(5 * 8192), {20, 4, 30}).fits());
  EXPECT_EQ(cache_fit(spec(), kF32, limits(5 * 8192 - 1), {20, 4, 30}).at_once, 0);
  // 256 positions are 16 blocks, and there are no more than 8 sequences can use.
  EXPECT_EQ(cache_fit(spec(), kF32, limits(1ull << 30), {20, 4, 30}).blocks, 128);
}

TEST(CacheFit, TheLongestSampleEndsWithTheLastBlock) {
  // 159 positions fill 10 blocks; the 160th token has no keys.
  EXPECT_EQ(longest_sample(spec(), kF32, limits(10 * 8192), 256), 160);
  EXPECT_EQ(longest_sample(spec(), kF32, limits(10 * 8192), 100), 100);
  EXPECT_EQ(longest_sample(spec(), kF32, limits(1ull << 30), 256), 256);
}

}  // namespace
}  // namespace troupe::engine
