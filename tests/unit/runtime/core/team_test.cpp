// Sharing out work, the barrier, and aligned memory.
#include "runtime/core/team.hpp"

#include "runtime/core/buffer.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace troupe::core {

TEST(Team, SharesCoverEverythingOnceInGrains) {
  for (int size : {1, 2, 3, 5}) {
    for (std::int64_t count : {0, 1, 15, 16, 17, 160, 161}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto [begin, end] = Team{rank, size, nullptr}.share(count, 16);
        EXPECT_EQ(begin, next);
        EXPECT_TRUE(end == count || end % 16 == 0);
        next = end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(TeamBarrier, NobodyPassesBeforeAllArrive) {
  constexpr int kSize = 3, kRounds = 500;
  TeamBarrier barrier(kSize);
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  {
    std::vector<std::jthread> members;
    for (int rank = 0; rank < kSize; ++rank) {
      members.emplace_back([&] {
        for (int round = 1; round <= kRounds; ++round) {
          arrived.fetch_add(1);
          // Fetching ahead is a hint: more than there is, or nothing.
          barrier.arrive_and_wait(round % 2 == 0 ? Upcoming{&barrier, 1 << 20} : Upcoming{});
          if (arrived.load() < round * kSize) early.fetch_add(1);
          barrier.arrive_and_wait();
        }
      });
    }
  }
  EXPECT_EQ(early.load(), 0);
  EXPECT_EQ(arrived.load(), kSize * kRounds);
}

TEST(Buffer, IsAlignedZeroedAndMoves) {
  for (std::int64_t count : {1, 1000, 3'000'000}) {
    Buffer<float> buffer(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer[0], 0.0f);
    EXPECT_EQ(buffer[count - 1], 0.0f);
    buffer[count - 1] = 2.0f;
    Buffer<float> moved = std::move(buffer);
    EXPECT_EQ(moved[count - 1], 2.0f);
    EXPECT_EQ(buffer.size(), 0);
  }
}

TEST(Buffer, ReserveGrowsAndNeverShrinks) {
  Buffer<float> buffer(10);
  buffer.reserve_discard(100);
  EXPECT_GE(buffer.size(), 100);
  const auto size = buffer.size();
  buffer.reserve_discard(5);
  EXPECT_EQ(buffer.size(), size);
}

}  // namespace troupe::core
