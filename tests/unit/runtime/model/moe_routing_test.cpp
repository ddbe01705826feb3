// The choice of experts and the order of pairs, by hand and against plain sorting.
#include "runtime/model/moe_routing.hpp"

#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace troupe::model {
namespace {

// Choices of a few rows, with the memory they lie in.
struct Choices {
  Choices(const MoeSpec& spec, std::int64_t rows, std::vector<float> logits)
      : scores(std::move(logits)),
        expert(static_cast<std::size_t>(rows * spec.experts_per_token), -1),
        weight(expert.size()),
        place(expert.size(), -1) {}
  Routing view(const MoeSpec& spec) {
    return {scores.data(), spec.router_rows(), expert.data(), weight.data(), place.data()};
  }
  std::vector<float> scores;
  std::vector<std::int32_t> expert;
  std::vector<float> weight;
  std::vector<std::int32_t> place;
};

MoeSpec four_experts(std::int64_t k, bool norm_topk) {
  MoeSpec spec;
  spec.experts = 4;
  spec.experts_per_token = k;
  spec.norm_topk = norm_topk;
  return spec;
}

using Ids = std::vector<std::int32_t>;

TEST(RouteRows, TakesTheLargestAndKeepsTheirProbabilities) {
  const MoeSpec spec = four_experts(2, false);
  // e^0 : e^ln2 : e^ln4 : e^0 = 1 : 2 : 4 : 1, so p = 1/8, 1/4, 1/2, 1/8.
  Choices out(spec, 1, {0.0f, std::log(2.0f), std::log(4.0f), 0.0f});
  route_rows(spec, out.view(spec), 0, 1);
  EXPECT_EQ(out.expert, (Ids{1, 2}));  // in ascending order, whatever their weights
  EXPECT_NEAR(out.weight[0], 0.25f, 1e-6f);
  EXPECT_NEAR(out.weight[1], 0.5f, 1e-6f);
  EXPECT_NEAR(out.scores[3], 0.125f, 1e-6f);
}

TEST(RouteRows, WeightsOfTheChosenAddUpToOneWhenNormed) {
  const MoeSpec spec = four_experts(2, true);
  Choices out(spec, 1, {0.0f, std::log(2.0f), std::log(4.0f), 0.0f});
  route_rows(spec, out.view(spec), 0, 1);
  EXPECT_NEAR(out.weight[0], 1.0f / 3, 1e-6f);
  EXPECT_NEAR(out.weight[1], 2.0f / 3, 1e-6f);
}

TEST(RouteRows, OfEqualProbabilitiesTheLowerExpertsAreTaken) {
  const MoeSpec spec = four_experts(2, true);
  Choices out(spec, 3, {1, 1, 1, 1, 0, 5, 0, 0, 0, 0, 5, 5});
  route_rows(spec, out.view(spec), 0, 3);
  EXPECT_EQ(out.expert, (Ids{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(out.weight[0], 0.5f);
}

// Two logits may differ and their probabilities not: then they are equal.
TEST(RouteRows, TiesAreOfProbabilitiesNotOfLogits) {
  const MoeSpec spec = four_experts(1, false);
  Choices out(spec, 1, {-200.0f, -150.0f, -100.0f, 100.0f});
  const MoeSpec three = four_experts(3, false);
  Choices more(three, 1, out.scores);
  route_rows(three, more.view(three), 0, 1);
  EXPECT_EQ(more.scores, (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(more.expert, (Ids{0, 1, 3}));
}

TEST(RouteRows, TheSharedGateIsASigmoid) {
  MoeSpec spec = four_experts(1, false);
  spec.shared_ffn = 8;
  Choices out(spec, 2, {0, 0, 0, 0, 0.0f, 0, 0, 0, 0, std::log(3.0f)});
  route_rows(spec, out.view(spec), 0, 2);
  EXPECT_EQ(out.scores[4], 0.5f);
  EXPECT_NEAR(out.scores[9], 0.75f, 1e-6f);
}

TEST(RouteRows, NotANumberStillChoosesDifferentExperts) {
  const MoeSpec spec = four_experts(3, true);
  Choices out(spec, 2, {0, std::nanf(""), 1, 2, 3, 1, 2, 0});
  route_rows(spec, out.view(spec), 0, 2);
  EXPECT_EQ(std::set<std::int32_t>(out.expert.begin(), out.expert.begin() + 3).size(), 3u);
  EXPECT_TRUE(std::isnan(out.weight[0]));
  EXPECT_EQ(Ids(out.expert.begin() + 3, out.expert.end()), (Ids{0, 1, 2}));
  EXPECT_FALSE(std::isnan(out.weight[3]));
}

TEST(RouteRows, OnlyTheGivenRowsAreTouched) {
  const MoeSpec spec = four_experts(1, false);
  Choices out(spec, 3, std::vector<float>(12, 7.0f));
  route_rows(spec, out.view(spec), 1, 2);
  EXPECT_EQ(out.scores[0], 7.0f);
  EXPECT_EQ(out.scores[8], 7.0f);
  EXPECT_EQ(out.expert, (Ids{-1, 0, -1}));
}

// Shares of rows placed apart give the order of one sort by expert, then by row.
TEST(PlaceRows, IsAStableSortByExpertHoweverRowsAreShared) {
  MoeSpec spec;
  spec.experts = 19;
  spec.experts_per_token = 3;
  const std::int64_t rows = 41, pairs = rows * 3;
  Choices out(spec, rows, std::vector<float>(static_cast<std::size_t>(rows * 19)));
  const auto noise = some_tokens(rows * 19, 1000);
  for (std::size_t i = 0; i < out.scores.size(); ++i)
    out.scores[i] = static_cast<float>(noise[i]) * 0.01f;
  route_rows(spec, out.view(spec), 0, rows);
  Ids order(static_cast<std::size_t>(pairs));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return out.expert[static_cast<std::size_t>(a)] < out.expert[static_cast<std::size_t>(b)];
  });
  ExpertRanges ranges;
  for (const std::int64_t cut : {0, 1, 20, 41}) {
    std::fill(out.place.begin(), out.place.end(), -1);
    place_rows(spec, out.view(spec), rows, 0, cut, ranges);
    place_rows(spec, out.view(spec), rows, cut, rows, ranges);
    for (std::size_t i = 0; i < order.size(); ++i)
      ASSERT_EQ(out.place[static_cast<std::size_t>(order[i])], static_cast<std::int32_t>(i));
  }
  for (std::int64_t e = 0; e < spec.experts; ++e) {
    ASSERT_EQ(ranges.rows(e), std::count(out.expert.begin(), out.expert.end(), e));
  }
  EXPECT_EQ(ranges.begin[19], pairs);
}

}  // namespace
}  // namespace troupe::model
