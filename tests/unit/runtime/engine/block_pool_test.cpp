// BlockPool against a naive model (a list of counts, a list of free blocks) under random events.
#include "runtime/engine/block_pool.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace troupe::engine {
namespace {

TEST(BlockPool, GivesEveryBlockOnce) {
  BlockPool pool(5);
  std::vector<bool> seen(5, false);
  for (int i = 0; i < 5; ++i) {
    const std::int32_t block = pool.take();
    EXPECT_FALSE(seen[static_cast<std::size_t>(block)]);
    seen[static_cast<std::size_t>(block)] = true;
  }
  EXPECT_EQ(pool.free_count(), 0);
}

TEST(BlockPool, GivesTheBlockFreedLast) {
  BlockPool pool(4);
  const std::int32_t a = pool.take();
  const std::int32_t b = pool.take();
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.take(), a);
}

TEST(BlockPool, KeptBlocksAreTakenLastAndOldestFirst) {
  BlockPool pool(4);
  for (int i = 0; i < 4; ++i)
    (void)pool.take();
  pool.release(2, true);
  pool.release(0, true);
  pool.release(1);
  pool.release(3, true);
  EXPECT_EQ(pool.take(), 1) << "holds nothing";
  pool.revive(0);
  EXPECT_EQ(pool.references(0), 1);
  EXPECT_EQ(pool.free_count(), 2);
  EXPECT_EQ(pool.take(), 2) << "let go of longest ago";
  pool.release(0, true);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.take(), 0) << "young again";
}

TEST(BlockPool, SharedBlockIsFreeWhenTheLastLetsGo) {
  BlockPool pool(1);
  const std::int32_t block = pool.take();
  pool.share(block);
  pool.release(block);
  EXPECT_EQ(pool.free_count(), 0);
  EXPECT_EQ(pool.references(block), 1);
  pool.release(block);
  EXPECT_EQ(pool.free_count(), 1);
}

TEST(BlockPoolDeathTest, RefusesMisuse) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.release(0), "free block");
  EXPECT_DEATH(pool.share(0), "free block");
  EXPECT_DEATH((void)pool.references(1), "outside");
  (void)pool.take();
  EXPECT_DEATH(pool.take(), "empty pool");
  EXPECT_DEATH(pool.revive(0), "in use");
}

TEST(BlockPool, AgreesWithNaiveModelUnderRandomEvents) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    core::Rng rng(seed);
    const auto total = static_cast<std::int32_t>(1 + rng.next_below(40));
    BlockPool pool(total);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(total), 0);
    std::deque<std::int32_t> free;
    for (std::int32_t b = 0; b < total; ++b)
      free.push_back(b);
    for (int event = 0; event < 200; ++event) {
      const auto kind = rng.next_below(5);
      const auto any = static_cast<std::int32_t>(rng.next_below(static_cast<std::uint64_t>(total)));
      std::int32_t& count = counts[static_cast<std::size_t>(any)];
      if (kind == 0 && pool.free_count() > 0) {
        const std::int32_t block = pool.take();
        ASSERT_EQ(block, free.front()) << "seed " << seed;
        free.pop_front();
        counts[static_cast<std::size_t>(block)] = 1;
      } else if (kind == 1 && count > 0) {
        pool.share(any);
        ++count;
      } else if (kind == 2 && count == 0) {
        pool.revive(any);
        std::erase(free, any);
        count = 1;
      } else if (kind > 2 && count > 0) {
        pool.release(any, kind == 3);
        if (--count > 0) continue;
        free.insert(kind == 3 ? free.end() : free.begin(), any);
      }
      std::int32_t unused = 0;
      for (std::int32_t b = 0; b < total; ++b) {
        ASSERT_EQ(pool.references(b), counts[static_cast<std::size_t>(b)]) << "seed " << seed;
        unused += counts[static_cast<std::size_t>(b)] == 0 ? 1 : 0;
      }
      ASSERT_EQ(pool.free_count(), unused) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::engine
