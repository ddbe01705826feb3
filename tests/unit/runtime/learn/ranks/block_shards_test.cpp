// Which rank owns which block, and that packing and unpacking move each number to its place.
#include "runtime/learn/ranks/block_shards.hpp"

#include "kernels/ops.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace troupe::learn {
namespace {

constexpr std::int64_t kBlock = BlockShards::kBlock;

TEST(BlockShards, DealsBlocksInTurn) {
  const BlockShards shards(5 * kBlock + 100, 3);
  EXPECT_EQ(shards.blocks(), 6);
  EXPECT_EQ(shards.turns(), 2);
  EXPECT_EQ(shards.elements(0), 2 * kBlock);
  EXPECT_EQ(shards.elements(1), 2 * kBlock);
  EXPECT_EQ(shards.elements(2), kBlock + 100);
  EXPECT_EQ(shards.place(2, kBlock + 7), 5 * kBlock + 7);
  EXPECT_EQ(shards.in_shard(2, {1, 2}).size(), 100);
  EXPECT_EQ(shards.in_buffer({1, 2}).begin, 3 * kBlock);
  EXPECT_EQ(shards.in_buffer({1, 2}).end, 5 * kBlock + 100);
}

TEST(BlockShards, BlocksOfARankAreCutAtBothEnds) {
  const auto text = [](int rank, core::Range elements) {
    std::string all;
    for (const core::Range range : BlockShards::of_rank(rank, 3, elements))
      all += std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
    return all;
  };
  EXPECT_EQ(text(0, {0, 3 * kBlock + 5}), "0-4096 12288-12293 ");
  EXPECT_EQ(text(1, {kBlock + 7, 2 * kBlock - 7}), "4103-8185 ");
  EXPECT_EQ(text(2, {kBlock + 7, 2 * kBlock}), "");
  EXPECT_EQ(text(2, {kBlock + 7, 9 * kBlock - 1}), "8192-12288 20480-24576 32768-36863 ");
  EXPECT_EQ(text(0, {5 * kBlock, 5 * kBlock}), "");
}

// Every number of a buffer goes into one shard, in ascending order, and back to where it was; with
// any number of ranks and of turns at a time.
TEST(BlockShards, MovesEachNumberToItsPlaceAndBack) {
  ThreadTeam team(3);
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, kBlock - 1, kBlock, kBlock + 1,
                                  4 * kBlock, 9 * kBlock + 17}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const BlockShards shards(size, ranks);
      std::vector<float> buffer(static_cast<std::size_t>(size)), back(buffer.size(), -1.0f);
      std::iota(buffer.begin(), buffer.end(), 0.0f);
      std::int64_t all = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<float> shard(static_cast<std::size_t>(shards.elements(rank)), -1.0f);
        all += shards.elements(rank);
        for (std::int64_t turn = 0; turn < shards.turns(); turn += 2) {
          const core::Range turns{turn, std::min(turn + 2, shards.turns())};
          float* const part = shard.data() + shards.in_shard(rank, turns).begin;
          const std::int64_t window = shards.in_buffer(turns).begin;
          team.run([&](core::Team member) {
            shards.pack(member, buffer.data() + window, rank, turns, part);
            member.barrier();
            shards.unpack(member, part, rank, turns, back.data() + window);
          });
        }
        for (std::size_t i = 0; i < shard.size(); ++i)
          ASSERT_EQ(shard[i], static_cast<float>(shards.place(rank, static_cast<std::int64_t>(i))));
      }
      EXPECT_EQ(all, size);
      EXPECT_EQ(back, buffer) << size << " elements, " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace troupe::learn
