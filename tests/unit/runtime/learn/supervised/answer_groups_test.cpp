// Which rows share a prompt, and what a prompt with its answers costs, on hand-made rows.
#include "runtime/learn/supervised/answer_groups.hpp"

#include "runtime/learn/chosen.hpp"

#include <gtest/gtest.h>

namespace troupe::learn {
namespace {

using Units = std::vector<std::vector<std::size_t>>;

const data::Tokens kPrompt = {1, 2, 3}, kShorter = {1, 2};
const data::Tokens kOne = {7}, kTwo = {8, 9}, kThree = {8, 9, 5};

// Better and worse answers to two prompts, of which rows 0, 2 and 4 have the first.
data::SupervisedDataset pairs() {
  return data::SupervisedDataset::of_tokens(std::vector<data::TokenRow>{{kPrompt, kOne, kTwo},
                                                                        {kShorter, kOne, kTwo},
                                                                        {kPrompt, kOne, kThree},
                                                                        {kShorter, kTwo, kOne},
                                                                        {kPrompt, kOne, kThree}});
}
const std::vector<std::size_t> kEach = {0, 1, 2, 3, 4};

std::vector<data::Tokens> listed(const std::vector<std::span<const std::int32_t>>& responses) {
  std::vector<data::Tokens> out;
  for (const auto response : responses)
    out.emplace_back(response.begin(), response.end());
  return out;
}

TEST(AnswerGroups, APromptAndEachOfItsAnswersOccursOnce) {
  const auto data = pairs();
  const AnswerGroups got = group_answers(data.all());
  ASSERT_EQ(got.groups.size(), 2u);
  EXPECT_EQ(listed(got.groups[0].responses), (std::vector<data::Tokens>{kOne, kTwo, kThree}));
  EXPECT_EQ(listed(got.groups[1].responses), (std::vector<data::Tokens>{kOne, kTwo}));
  EXPECT_EQ(got.answers, 5);
  EXPECT_EQ(got.first, (std::vector<std::int64_t>{0, 3, 0, 4, 0}));
  EXPECT_EQ(got.second, (std::vector<std::int64_t>{1, 4, 2, 3, 2}));
}

TEST(AnswerGroups, SingleAnswersHaveNoSecondPlace) {
  const auto data = data::SupervisedDataset::of_tokens(
      std::vector<data::TokenRow>{{kPrompt, kOne, {}}, {kPrompt, kTwo, {}}});
  const AnswerGroups got = group_answers(data.all());
  EXPECT_EQ(got.groups.size(), 1u);
  EXPECT_EQ(got.first, (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(got.second.empty());
}

// Scores: the prompt of 3 with answers of 1, 2 and 3 tokens, and 2 + 1 + 2. Log-probs need no row
// of an answer's last token.
TEST(AnswerGroups, TheCostIsThatOfPromptsAndAnswersOnce) {
  const auto data = pairs();
  EXPECT_EQ(rows_cost(*Chosen<Method>("rm"), data.all()), 9 + 5);
  EXPECT_EQ(rows_cost(*Chosen<Method>("dpo"), data.all()), 6 + 3);
  EXPECT_EQ(rows_cost(*Chosen<Method>("rm"), std::vector{data.row(0)}), 6);
}

TEST(AnswerGroups, RowsOfAPromptAreAUnitWhileTheyFit) {
  const auto data = pairs();
  const auto units = [&](std::int64_t most, std::int64_t least) {
    return units_of(*Chosen<Method>("rm"), data.all(), kEach, most, least);
  };
  EXPECT_EQ(units(100, 1), (Units{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(units(9, 2), (Units{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(units(8, 2), (Units{{0}, {1, 3}, {2, 4}})) << "the third answer has no room";
  EXPECT_EQ(units(1, 2), (Units{{0}, {1}, {2}, {3}, {4}})) << "a row is taken whatever it costs";
  EXPECT_EQ(units(100, 3), (Units{{0}, {1}, {2}, {3}, {4}})) << "fewer units than lanes";
  EXPECT_EQ(units_of(*Chosen<Method>("rm"), data.all(), std::vector<std::size_t>{4, 1, 0}, 100, 1),
            (Units{{4, 0}, {1}}));
}

TEST(AnswerGroups, SequencesShareNothing) {
  const auto data = data::SupervisedDataset::of_tokens(
      std::vector<data::TokenRow>{{{}, kThree, {}}, {{}, kThree, {}}});
  const std::vector<std::size_t> both = {0, 1};
  EXPECT_EQ(units_of(*Chosen<Method>("sft"), data.all(), both, 100, 1), (Units{{0}, {1}}));
  EXPECT_EQ(rows_cost(*Chosen<Method>("sft"), data.all()), 4);
}

}  // namespace
}  // namespace troupe::learn
