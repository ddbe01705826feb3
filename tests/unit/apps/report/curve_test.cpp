// Thinned curves against values worked out by hand.
#include "apps/report/curve.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Curve curve_of(std::size_t buckets_max, const std::vector<double>& values) {
  Curve curve(buckets_max);
  double step = 0;
  for (const double value : values)
    curve.add(++step, value);
  return curve;
}

using Points = std::vector<CurvePoint>;
constexpr auto kBreak = std::nullopt;

}  // namespace

TEST(Curve, FewValuesStayAsTheyAre) {
  const Curve curve = curve_of(4, {3, 1, 2});
  EXPECT_EQ(curve.points(), (Points{{1, 3}, {2, 1}, {3, 2}}));
  EXPECT_EQ(curve.bucket_values(), 1u);
  EXPECT_EQ(curve.sum(), 6);
}

// Four buckets of two: {3,1} {2,9} {5,5} {0,4}. The least and the greatest of each, as they came.
TEST(Curve, ABucketShowsItsLeastAndItsGreatestInTheirOrder) {
  const Curve curve = curve_of(4, {3, 1, 2, 9, 5, 5, 0, 4});
  EXPECT_EQ(curve.bucket_values(), 2u);
  EXPECT_EQ(curve.points(), (Points{{1, 3}, {2, 1}, {3, 2}, {4, 9}, {5, 5}, {7, 0}, {8, 4}}));
  EXPECT_EQ(curve.means(), (Points{{1.5, 2}, {3.5, 5.5}, {5.5, 5}, {7.5, 2}}));
}

// The fifth value makes two buckets of {1,2} and {3,4}; 5 stands in a third one that is not full.
TEST(Curve, BucketsAreJoinedWhenTheyAreAllFull) {
  const Curve curve = curve_of(4, {1, 2, 3, 4, 5});
  EXPECT_EQ(curve.bucket_values(), 2u);
  EXPECT_EQ(curve.points(), (Points{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}));
}

TEST(Curve, NoPeakIsLostAndTheEndIsThere) {
  Curve curve(4);
  for (int step = 1; step <= 10'000; ++step)
    curve.add(step, step == 6'789 ? 100 : step == 1'234 ? -7 : 1);
  const Points points = curve.points();
  EXPECT_LE(points.size(), 9u);
  EXPECT_NE(std::find(points.begin(), points.end(), CurvePoint{6'789, 100}), points.end());
  EXPECT_NE(std::find(points.begin(), points.end(), CurvePoint{1'234, -7}), points.end());
  EXPECT_EQ(points.front().step, 1);
  EXPECT_EQ(points.back(), (CurvePoint{10'000, 1}));
  EXPECT_EQ(curve.count(), 10'000u);
  EXPECT_EQ(curve.bucket_values(), 4'096u);
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end(),
                             [](const auto& a, const auto& b) { return a.step < b.step; }));
}

TEST(Curve, AValueThatIsNotFiniteBreaksTheLineAndIsCounted) {
  const Curve curve = curve_of(8, {1, kNaN, 3, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(curve.points(), (Points{{1, 1}, {1, kBreak}, {3, 3}, {3, kBreak}}));
  EXPECT_EQ(curve.means(), (Points{{1, 1}, {3, 3}}));
  EXPECT_EQ(curve.not_finite(), 2u);
  EXPECT_EQ(curve.count(), 2u);
  EXPECT_EQ(curve.last(), 3);
  EXPECT_EQ(curve.sum(), 4);
}

TEST(Curve, NothingButNaNIsNoLine) {
  const Curve curve = curve_of(2, {kNaN, kNaN, kNaN, kNaN, kNaN});
  EXPECT_TRUE(curve.points().empty());
  EXPECT_EQ(curve.first(), std::nullopt);
  EXPECT_EQ(curve.not_finite(), 5u);
}

}  // namespace troupe::report
