// Waits before a company is joined again.
#include "apps/troupe/reentry_waits.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::app {
namespace {

using std::chrono::milliseconds;

TEST(ReentryWaits, DoubleUpToALimitAndBeginAnew) {
  ReentryWaits waits(1);
  for (const int most : {200, 400, 800, 1600, 3200, 5000, 5000}) {
    const core::Duration wait = waits.span(false);
    EXPECT_GE(wait, milliseconds(most) / 2);
    EXPECT_LE(wait, milliseconds(most));
  }
  EXPECT_LE(waits.span(true), milliseconds(100)) << "it was in";
  EXPECT_LE(waits.span(false), milliseconds(200));
}

TEST(ReentryWaits, DifferFromProcessToProcess) {
  std::set<core::Duration> waits;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    waits.insert(ReentryWaits(seed).span(false));
  EXPECT_GT(waits.size(), 190u);
}

}  // namespace
}  // namespace troupe::app
