// Which lanes a rank plays, and what ranks tell each other.
#include "runtime/learn/ranks/rank_group.hpp"

#include "tests/unit/runtime/learn/ranks/rank_threads.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

namespace troupe::learn {
namespace {

TEST(RankGroup, LanesAreCutEvenlyIntoNeighbours) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    collective::RankOptions options;
    options.size = ranks;
    collective::Collectives gang(options);
    const RankGroup group(gang);
    for (const std::int64_t lanes : {8, 13}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const LaneSpan own = group.lanes_of(rank, lanes);
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.end - own.begin, lanes / ranks);
        EXPECT_LE(own.end - own.begin, lanes / ranks + 1);
        next = own.end;
      }
      EXPECT_EQ(next, lanes);
    }
  }
}

TEST(RankGroup, SharedPartsComeInTheirOrder) {
  const std::vector<std::size_t> counts = {3, 0, 1, 4, 2, 5, 1};
  std::vector<int> ran(counts.size(), 0);
  std::mutex mutex;
  test::run_ranks(3, [&](collective::Collectives& gang) {
    RankGroup group(gang);
    const auto all = share_parts<int>(
        &group, counts, [&](std::size_t part, std::vector<int>& to) -> core::Result<void> {
          const std::lock_guard lock(mutex);
          ++ran[part];
          for (std::size_t i = 0; i < counts[part]; ++i)
            to.push_back(static_cast<int>(10 * part + i));
          return {};
        });
    ASSERT_TRUE(all);
    EXPECT_EQ(*all,
              (std::vector<int>{0, 1, 2, 20, 30, 31, 32, 33, 40, 41, 50, 51, 52, 53, 54, 60}));
  });
  EXPECT_EQ(ran, std::vector<int>(counts.size(), 1));
}

TEST(RankGroup, AllAgreeWithRankZero) {
  test::run_ranks(3, [&](collective::Collectives& gang) {
    RankGroup group(gang);
    EXPECT_TRUE(group.agree({}));
    const core::Result<void> full = core::fail(core::ErrorCode::kNoRoom, "no room");
    const auto all = group.agree(gang.rank() == 0 ? full : core::Result<void>());
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, core::ErrorCode::kNoRoom);
    EXPECT_EQ(all.error().message, "no room");
    EXPECT_TRUE(group.agree({}));
  });
}

TEST(RankGroup, AllHearWhichRankCouldNot) {
  test::run_ranks(3, [&](collective::Collectives& gang) {
    RankGroup group(gang);
    const core::Result<void> missing = core::fail(core::ErrorCode::kNotFound, "no file");
    const auto all = group.all_well(gang.rank() == 1 ? missing : core::Result<void>(), "read it");
    ASSERT_FALSE(all);
    if (gang.rank() == 1) {
      EXPECT_EQ(all.error().message, "no file");
    } else {
      EXPECT_EQ(all.error().code, core::ErrorCode::kPeerLost);
      EXPECT_EQ(all.error().message, "rank 1 could not read it");
    }
    EXPECT_TRUE(group.all_well({}, "read it"));
  });
}

TEST(RankGroup, ARankThatFailsAloneEndsTheGang) {
  test::run_ranks(3, [&](collective::Collectives& gang) {
    RankGroup group(gang);
    const std::vector<std::size_t> counts = {1, 1, 1};
    const auto all = share_parts<int>(
        &group, counts, [&](std::size_t part, std::vector<int>& to) -> core::Result<void> {
          if (part == 1) return core::fail(core::ErrorCode::kResources, "out of memory");
          to.push_back(1);
          return {};
        });
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, core::ErrorCode::kResources) << "the others hear why";
    const bool named = all.error().message.find("rank 1") != std::string::npos;
    EXPECT_EQ(named, gang.rank() != 1) << all.error().message;
    EXPECT_FALSE(gang.barrier());
  });
}

}  // namespace
}  // namespace troupe::learn
