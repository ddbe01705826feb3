// Figures over rows, by hand, and the warnings that follow from them.
#include "runtime/data/row_figures.hpp"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

using Ids = std::vector<std::int32_t>;

struct Given {
  Ids prompt, answer, rejected = {};
  bool good = true;
};

RowFigures figures(std::optional<RowKind> kind, const std::vector<Given>& rows, int longest = 0) {
  RowFigures out(kind, static_cast<std::uint64_t>(longest));
  for (const Given& one : rows) {
    SupervisedRow row;
    row.prompt = one.prompt;
    row.answer = one.answer;
    row.rejected = one.rejected;
    row.desirable = one.good;
    out.add(row);
  }
  return out;
}

bool warns(const RowFigures& of, const std::string& what) {
  for (const std::string& warning : of.warnings())
    if (warning.find(what) != warning.npos) return true;
  return false;
}

TEST(RowFigures, PercentilesAreNearestRanks) {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 1; i <= 200; ++i)
    lengths.push_back(201 - i);
  const Spread spread = spread_of(lengths);
  EXPECT_EQ(spread.least, 1u);
  EXPECT_EQ(spread.p50, 100u);
  EXPECT_EQ(spread.p90, 180u);
  EXPECT_EQ(spread.p99, 198u);
  EXPECT_EQ(spread.most, 200u);
  EXPECT_EQ(spread.sum, 20'100u);
  EXPECT_EQ(spread_of({7}).p50, 7u);
  EXPECT_EQ(spread_of({}).most, 0u);
}

TEST(RowFigures, RepeatedRowsAndPromptsAreCounted) {
  const auto of = figures(
      RowKind::kPair,
      {{{1, 2}, {3}, {4, 5}}, {{1, 2}, {3}, {4, 5}}, {{1, 2}, {3, 4}, {5}}, {{9}, {3, 4}, {5}}}, 4);
  EXPECT_EQ(of.repeated_rows(), 1u);
  EXPECT_EQ(of.repeated_prompts(), 2u);
  EXPECT_EQ(of.longer(), 2u);
  EXPECT_EQ(of.shorter(), 2u);
  EXPECT_EQ(of.lengths(RowFigures::kWhole), (std::vector<std::uint64_t>{4, 4, 4, 3}));
  EXPECT_EQ(of.too_long(), 0u);
  EXPECT_TRUE(warns(of, "1 rows repeat another row"));
  EXPECT_TRUE(warns(of, "only 4 rows"));
}

TEST(RowFigures, TheBoundaryBetweenPartsCounts) {
  const auto of = figures(RowKind::kPair, {{{1, 2}, {3}, {4}}, {{1}, {2, 3}, {4}}});
  EXPECT_EQ(of.repeated_rows(), 0u);
}

TEST(RowFigures, ASequenceHasItsPromptBeforeTheFirstLearnedToken) {
  RowFigures of(RowKind::kAnswer, 3);
  const Ids tokens = {1, 2, 3, 4, 5};
  const std::vector<std::uint8_t> learn = {0, 0, 1, 0, 1};
  SupervisedRow row;
  row.answer = tokens;
  row.learn = learn;
  of.add(row);
  EXPECT_EQ(of.lengths(RowFigures::kPrompt)[0], 2u);
  EXPECT_EQ(of.lengths(RowFigures::kAnswer)[0], 3u);
  EXPECT_EQ(of.lengths(RowFigures::kWhole)[0], 5u);
  EXPECT_EQ(of.too_long(), 1u);
  EXPECT_EQ(of.tokens_over(), 2u);
}

TEST(RowFigures, LengthAndLabel) {
  // Lengths 1, 2, 3, 4 with labels 0, 0, 1, 1: r = 2 / sqrt(5) = 0.8944.
  const auto of = figures(RowKind::kRated, {{{1}, {1}, {}, false},
                                            {{2}, {1, 2}, {}, false},
                                            {{3}, {1, 2, 3}, {}, true},
                                            {{4}, {1, 2, 3, 4}, {}, true}});
  EXPECT_NEAR(of.length_and_label(), 0.894427, 1e-6);
  EXPECT_TRUE(warns(of, "long answers are the good ones (correlation of length and label 0.89)"));
  EXPECT_EQ(of.good(), 2u);
  const auto one = figures(RowKind::kRated, {{{1}, {1}}, {{2}, {1}}});
  EXPECT_EQ(one.length_and_label(), 0);
  EXPECT_TRUE(warns(one, "100% of the labels are good"));
}

TEST(RowFigures, SharedPromptsAreThoseOfTheOther) {
  const auto train = figures(std::nullopt, {{{1}, {}}, {{2}, {}}, {{3}, {}}});
  const auto held_out = figures(std::nullopt, {{{3}, {}}, {{3}, {}}, {{4}, {}}});
  EXPECT_EQ(train.shared_with(held_out), 2u);
  EXPECT_EQ(held_out.shared_with(train), 1u);
}

}  // namespace
}  // namespace troupe::data
