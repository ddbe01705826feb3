// A hundred simulated receivers lease snapshots of one pool and hold them for random times: the
// pool never has a fourth snapshot, never lets a leased one be written, and never wants the kept
// one back.
#include "runtime/core/rng.hpp"
#include "runtime/weights/limits.hpp"
#include "runtime/weights/snapshot_pool.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::weights {
namespace {

// Time is the number of publications.
struct SimulatedReceiver {
  std::shared_ptr<Snapshot> lease;
  core::Version version = 0;  // of the lease when it began
  std::uint64_t done_at = 0;
  bool asks = false, was_cut = false, keeps = false;
  std::uint64_t cuts = 0, versions = 0;
};

TEST(LeasePool, AHundredReceiversNeverCauseAFourthSnapshot) {
  constexpr std::uint64_t kPublications = 150;
  core::Rng rng(5);
  core::SerialTeam team;
  model::ParamStore params(tiny(5));
  ImageWriter writer(tiny(5), kernels::PanelDtype::kF32);
  const SnapshotShape shape = writer.shape();
  SnapshotPool pool;
  std::vector<SimulatedReceiver> receivers(100);
  const auto end = [&](SimulatedReceiver& one) {
    EXPECT_EQ(one.lease->version(), one.version) << "written while it was leased";
    if (std::exchange(one.keeps, false)) pool.stop_keeping();
    pool.end_lease(one.lease);
  };
  pool.on_want_back([&] {
    for (SimulatedReceiver& one : receivers) {
      if (!pool.wants_back(one.lease)) continue;
      EXPECT_FALSE(one.keeps) << "it was promised";
      EXPECT_FALSE(pool.keeps(one.lease));
      one.was_cut = true;
      ++one.cuts;
      end(one);
    }
  });
  for (std::uint64_t now = 1; now <= kPublications; ++now) {
    auto taken = pool.take([&] { return Snapshot::create(shape); });
    ASSERT_TRUE(taken);
    for (const SimulatedReceiver& one : receivers)
      EXPECT_NE(one.lease, *taken);
    fill(**taken, team, writer, params, now);
    pool.offer(std::move(*taken));
    for (SimulatedReceiver& one : receivers) {
      if (one.lease != nullptr && one.done_at <= now) {
        end(one);
        one.was_cut = false;
        ++one.versions;
      }
      if (one.lease != nullptr) continue;
      if (rng.next_below(3) == 0) one.asks = true;
      const bool waits = one.was_cut && pool.keeps_older();
      if (!one.asks || waits) continue;
      one.asks = false;
      one.lease = pool.lease_newest(one.was_cut);
      one.keeps = one.was_cut && pool.keeps(one.lease);
      EXPECT_EQ(one.keeps, one.was_cut) << "whoever was cut is cut no more";
      one.version = one.lease->version();
      EXPECT_EQ(one.version, now) << "the newest";
      one.done_at = now + 1 + rng.next_below(8);
    }
    EXPECT_LE(pool.size(), limits::kWeightSnapshots_max);
  }
  EXPECT_EQ(pool.most(), 3u);
  std::uint64_t cuts = 0;
  for (const SimulatedReceiver& one : receivers) {
    EXPECT_GT(one.versions, 0u) << "everybody gets versions";
    EXPECT_LE(one.cuts, one.versions + 1) << "at most one cut a version";
    cuts += one.cuts;
  }
  EXPECT_GT(cuts, 0u) << "nothing was tried";
}

TEST(LeasePool, AReceiverThatReadsTheNewestCostsNoThirdSnapshot) {
  core::SerialTeam team;
  model::ParamStore params(tiny(5));
  ImageWriter writer(tiny(5), kernels::PanelDtype::kF32);
  const SnapshotShape shape = writer.shape();
  SnapshotPool pool;
  pool.on_want_back([] { FAIL() << "nothing is in the way"; });
  EXPECT_EQ(pool.lease_newest(true), nullptr) << "none yet";
  for (core::Version version = 1; version < 10; ++version) {
    auto taken = pool.take([&] { return Snapshot::create(shape); });
    ASSERT_TRUE(taken);
    fill(**taken, team, writer, params, version);
    pool.offer(std::move(*taken));
    auto lease = pool.lease_newest(true);
    EXPECT_TRUE(pool.keeps(lease));
    EXPECT_FALSE(pool.keeps_older());
    pool.stop_keeping();
    pool.end_lease(lease);
  }
  EXPECT_EQ(pool.made(), 2u);
}

}  // namespace
}  // namespace troupe::weights
