// The pool runs every member once, keeps barriers working, and hands exceptions to the caller.
#include "runtime/async/cpu_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace troupe::async {
namespace {

TEST(CpuPool, RunsEachMemberOnceWithTheCallerAsMemberZero) {
  CpuPool pool(4);
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::atomic<int>> calls(4);
    std::thread::id zero;
    pool.run([&](core::Team team) {
      ++calls[static_cast<std::size_t>(team.rank)];
      if (team.rank == 0) zero = std::this_thread::get_id();
      EXPECT_EQ(team.size, 4);
    });
    for (auto& count : calls)
      ASSERT_EQ(count.load(), 1);
    ASSERT_EQ(zero, caller);
  }
}

TEST(CpuPool, BarrierSeparatesThePhasesOfARegion) {
  CpuPool pool(3);
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> first{0};
    std::atomic<int> wrong{0};
    pool.run([&](core::Team team) {
      ++first;
      team.barrier();
      if (first.load() != 3) ++wrong;
      team.barrier();
      ++first;
      team.barrier();
      if (first.load() != 6) ++wrong;
    });
    ASSERT_EQ(wrong.load(), 0);
  }
}

TEST(CpuPool, PoolOfOneRunsInlineWithoutABarrier) {
  CpuPool pool(1);
  int calls = 0;
  pool.run([&](core::Team team) {
    team.barrier();
    calls += team.size;
  });
  EXPECT_EQ(calls, 1);
}

TEST(CpuPool, RethrowsTheExceptionOfTheLowestRankAndGoesOn) {
  CpuPool pool(3);
  for (int round = 0; round < 50; ++round) {
    try {
      pool.run([&](core::Team team) {
        if (team.rank >= 1) throw std::runtime_error("member " + std::to_string(team.rank));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& thrown) {
      EXPECT_STREQ(thrown.what(), "member 1");
    }
    std::atomic<int> calls{0};
    pool.run([&](core::Team) { ++calls; });
    EXPECT_EQ(calls.load(), 3);
  }
}

std::atomic<int> g_hooked{0};
void count_hook() {
  ++g_hooked;
}

TEST(CpuPool, CallsTheHookOnEachThreadItStarts) {
  g_hooked = 0;
  {
    CpuPool pool(4, &count_hook);
    pool.run([](core::Team) {});
  }
  EXPECT_EQ(g_hooked.load(), 3);
}

TEST(CpuPool, CallersOfSeveralThreadsTakeTurns) {
  CpuPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  std::atomic<int> regions{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.run([&](core::Team team) {
          if (team.rank == 0 && inside.fetch_add(1) != 0) ++wrong;
          team.barrier();
          if (team.rank == 0) {
            --inside;
            ++regions;
          }
        });
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(regions.load(), 600);
}

TEST(CpuPoolDeathTest, ARegionThatStartsARegionIsABug) {
  EXPECT_DEATH(
      {
        CpuPool pool(2);
        pool.run([&](core::Team team) {
          if (team.rank == 0) pool.run([](core::Team) {});
        });
      },
      "a region starts no region");
}

}  // namespace
}  // namespace troupe::async
