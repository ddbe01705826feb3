#include "runtime/experience/version_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe::experience {
namespace {

using Versions = std::vector<core::Version>;
using OneRun = VersionRuns::Run;

TEST(VersionRuns, NeighboursOfOneVersionAreOneRun) {
  const VersionRuns versions = {3, 3, 3, 4, 4, 3};
  ASSERT_EQ(versions.runs().size(), 3u);
  EXPECT_EQ(versions.runs()[0], (OneRun{3, 3}));
  EXPECT_EQ(versions.runs()[1], (OneRun{4, 2}));
  EXPECT_EQ(versions.runs()[2], (OneRun{3, 1}));
  EXPECT_EQ(versions.size(), 6u);
}

TEST(VersionRuns, ReadsAsOneVersionPerToken) {
  const Versions each = {7, 7, 2, 9, 9, 9, 9};
  const VersionRuns versions{std::span<const core::Version>(each)};
  EXPECT_EQ(Versions(versions.begin(), versions.end()), each);
  EXPECT_EQ(versions.front(), 7u);
  EXPECT_EQ(versions.back(), 9u);
  EXPECT_EQ(versions.oldest(), 2u);
  EXPECT_EQ(versions.newest(), 9u);
}

TEST(VersionRuns, AddingNothingChangesNothing) {
  VersionRuns versions;
  versions.add(5, 0);
  EXPECT_TRUE(versions.empty());
  EXPECT_TRUE(versions.begin() == versions.end());
  versions.add(5, 2);
  versions.add(5);
  EXPECT_EQ(versions, (VersionRuns{5, 5, 5}));
}

}  // namespace
}  // namespace troupe::experience
