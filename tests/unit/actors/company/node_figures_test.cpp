// What signs of life say of a node's roles, and how old that is.
#include "actors/company/node_figures.hpp"

#include "tests/unit/actors/company/time_support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::actors::company {
namespace {

Beat beat_with(double tokens, double age_s = 0, std::uint64_t epoch = 1) {
  Beat beat;
  beat.node = "node/a";
  beat.memory = 4096;
  wire::RoleReport report;
  report.name = "generator/0";
  report.epoch = epoch;
  report.age_s = age_s;
  report.amounts = {{"running", 3}, {"tokens", tokens}};
  beat.reports.push_back(report);
  return beat;
}

double rate_at(const NodeFigures& figures, std::int64_t ms) {
  const auto amounts = figures.reports(at(ms)).at(0).amounts;
  EXPECT_EQ(amounts.back().first, "tokens_per_s");
  return amounts.back().second;
}

TEST(NodeFigures, AFigureIsAsOldAsItsReportAndTheSilenceSince) {
  NodeFigures figures;
  EXPECT_TRUE(figures.reports(at(0)).empty());
  figures.take(beat_with(100, 0.25), at(10'000));
  EXPECT_EQ(figures.memory(), 4096u);
  EXPECT_DOUBLE_EQ(figures.reports(at(10'000)).at(0).age_s, 0.25);
  EXPECT_DOUBLE_EQ(figures.reports(at(11'500)).at(0).age_s, 1.75);
  Beat none;
  figures.take(none, at(12'000));
  EXPECT_TRUE(figures.reports(at(12'000)).empty()) << "the role is gone";
}

TEST(NodeFigures, TokensASecondAreCountedOverTwoSecondsAndByStart) {
  NodeFigures figures;
  figures.take(beat_with(100), at(10'000));
  EXPECT_EQ(rate_at(figures, 10'000), 0);
  figures.take(beat_with(900), at(11'000));
  EXPECT_EQ(rate_at(figures, 11'000), 0) << "too early";
  figures.take(beat_with(1300), at(12'000));
  EXPECT_EQ(rate_at(figures, 12'000), 600);  // 1200 in 2 s
  figures.take(beat_with(1300), at(14'500));
  EXPECT_EQ(rate_at(figures, 14'500), 0);
  figures.take(beat_with(50, 0, 2), at(17'000));
  EXPECT_EQ(rate_at(figures, 17'000), 0) << "another start counts from its own beginning";
  figures.take(beat_with(150, 0, 2), at(19'000));
  EXPECT_EQ(rate_at(figures, 19'000), 50);
}

TEST(NodeFigures, StrangeAgesDoNoHarm) {
  NodeFigures figures;
  const double inf = std::numeric_limits<double>::infinity();
  for (const double age : {-5.0, inf, -inf, std::nan(""), 1e300}) {
    figures.take(beat_with(1, age), at(10'000));
    const double shown = figures.reports(at(10'000)).at(0).age_s;
    EXPECT_TRUE(std::isfinite(shown) && shown >= 0) << age << " " << shown;
  }
}

}  // namespace
}  // namespace troupe::actors::company
