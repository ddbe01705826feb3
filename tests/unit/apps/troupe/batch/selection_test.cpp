// What becomes of scored rows, on rows small enough to work out by hand. The semantics of
// best-of-n, pairs and conditional prompts are those of OpenRLHF 0.9's batch inference (its
// processors rejection sampling, iterative DPO, conditional SFT), restated here by hand.
#include "apps/troupe/batch/selection.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace troupe::app {
namespace {

constexpr const char* kRows = R"({"prompt":"a","response":"x","reward":0.25,"topic":1})"
                              "\n"
                              R"({"prompt":"b","response":"y","reward":-1})"
                              "\n"
                              R"({"prompt":"a","response":"z","reward":0.75,"topic":1})"
                              "\n"
                              R"({"prompt":"a","response":"w","reward":0.75,"topic":2})"
                              "\n"
                              R"({"prompt":"b","response":"v","reward":null})"
                              "\n";

std::vector<nlohmann::json> rows_of(const std::string& lines) {
  std::vector<nlohmann::json> rows;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(BestOfN, KeepsTheFirstOfTheBestOfEachPrompt) {
  const auto out = best_of_n(kRows, {});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->lines,
            "{\"prompt\":\"a\",\"response\":\"z\",\"reward\":0.75,\"topic\":1}\n"
            "{\"prompt\":\"b\",\"response\":\"y\",\"reward\":-1}\n");
  EXPECT_EQ(out->prompts, 2u);
}

TEST(BestOfN, PromptIdsTellEqualPromptsApart) {
  const auto out = best_of_n(R"({"prompt_id":0,"prompt":"a","response":"x","reward":1})"
                             "\n"
                             R"({"prompt_id":1,"prompt":"a","response":"y","reward":0})"
                             "\n",
                             {});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->rows, 2u);
}

TEST(Pairs, BestAgainstWorstWhereTheyDiffer) {
  const auto out = best_against_worst(kRows, {});
  ASSERT_TRUE(out);
  const auto rows = rows_of(out->lines);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["prompt"], "a");
  EXPECT_EQ(rows[0]["chosen"], "z");
  EXPECT_EQ(rows[0]["rejected"], "x");
  EXPECT_EQ(rows[0]["chosen_reward"], 0.75);
  EXPECT_EQ(rows[0]["rejected_reward"], 0.25);
  EXPECT_EQ(rows[0]["topic"], 1);
  EXPECT_FALSE(rows[0].contains("response"));
  EXPECT_EQ(out->equal, 1u) << "b has one scored row only";
}

TEST(Pairs, EqualScoresOrTextsAreNoPair) {
  const auto equal = best_against_worst(R"({"prompt":"a","response":"x","reward":1})"
                                        "\n"
                                        R"({"prompt":"a","response":"y","reward":1})"
                                        "\n"
                                        R"({"prompt":"b","response":"x","reward":1})"
                                        "\n"
                                        R"({"prompt":"b","response":"x","reward":0})"
                                        "\n",
                                        {});
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->rows, 0u);
  EXPECT_EQ(equal->equal, 2u);
}

TEST(BestAgainstWorst, SeveralPairsOfAPrompt) {
  std::string rows;
  for (const auto& [text, reward] :
       {std::pair{"no", 0}, {"4", 1}, {"5", 0}, {"no", 0}, {"x", -1}, {"4", 0}, {"4 ", 1}})
    rows += "{\"prompt\":\"a\",\"response\":\"" + std::string(text) +
            "\",\"reward\":" + std::to_string(reward) + "}\n";
  const auto rejected = [&](std::uint64_t pairs) {
    std::string texts;
    const auto made = best_against_worst(rows, {}, pairs);
    for (const auto& row : rows_of(made->lines)) {
      EXPECT_EQ(row["chosen"], "4");
      texts += row["rejected"].get<std::string>() + ",";
    }
    return texts;
  };
  EXPECT_EQ(rejected(1), "x,");
  EXPECT_EQ(rejected(2), "x,no,");
  EXPECT_EQ(rejected(9), "x,no,5,") << "no text twice, and not the best one";
}

TEST(ConditionalRows, WriteTheScoreIntoThePrompt) {
  const auto out = conditional_rows(kRows, {}, "<rm_score>: {:.2f}", false);
  ASSERT_TRUE(out);
  const auto rows = rows_of(out->lines);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["prompt"], "a <rm_score>: 0.25 ");
  EXPECT_EQ(rows[1]["prompt"], "b <rm_score>: -1.00 ");
  const auto openrlhf = conditional_rows(kRows, {}, "{input} <rm_score>: {reward} ", false);
  ASSERT_TRUE(openrlhf);
  EXPECT_EQ(openrlhf->lines, out->lines);
  const auto front = conditional_rows(kRows, {}, "[{:.1f}] {input}", false);
  ASSERT_TRUE(front);
  EXPECT_EQ(rows_of(front->lines)[2]["prompt"], "[0.8] a");
}

TEST(ConditionalRows, NormaliseByTheSampleDeviation) {
  // Scores 1 and 3: mean 2, deviation (n - 1) sqrt(2).
  const auto out = conditional_rows(R"({"prompt":"a","reward":1})"
                                    "\n"
                                    R"({"prompt":"b","reward":3})"
                                    "\n",
                                    {}, "{:.2f}", true);
  ASSERT_TRUE(out);
  EXPECT_EQ(rows_of(out->lines)[0]["prompt"], "a -0.71 ");
}

TEST(ConditionalRows, NameSeveralAttributes) {
  const char* rows = R"({"prompt":"a","good":1,"short":0.5,"tone":"dry","reward":9})"
                     "\n"
                     R"({"prompt":"b","good":3,"short":1.5,"tone":"warm","reward":9})"
                     "\n"
                     R"({"prompt":"c","good":3,"short":null,"tone":"warm","reward":9})"
                     "\n";
  const auto out = conditional_rows(rows, {}, "{tone}: good {good:.0f} short {short:.1f}", false);
  ASSERT_TRUE(out);
  const auto found = rows_of(out->lines);
  ASSERT_EQ(found.size(), 2u) << "a row without a score is left out";
  EXPECT_EQ(found[0]["prompt"], "a dry: good 1 short 0.5 ");
  EXPECT_EQ(found[1]["prompt"], "b warm: good 3 short 1.5 ");
  // good: mean 2, deviation sqrt(2); short: mean 1, deviation sqrt(0.5).
  const auto normal = conditional_rows(rows, {}, "{good} {short:.1f} {input}", true);
  ASSERT_TRUE(normal);
  EXPECT_EQ(rows_of(normal->lines)[0]["prompt"], "-0.71 -0.7 a");
  EXPECT_EQ(conditional_rows(rows, {}, "{bad:.1f}", false).error().code, core::ErrorCode::kData);
  EXPECT_EQ(conditional_rows(rows, {}, "{input} {}", false).error().code, core::ErrorCode::kConfig);
}

TEST(WithResponse, LeavesOutEmptyOnes) {
  EXPECT_EQ(with_response("{\"response\":\"\"}\n{\"response\":\" \"}\n{\"x\":1}\n", {}),
            "{\"response\":\" \"}\n{\"x\":1}\n");
}

TEST(ConditionalRows, RefuseWhatCannotWork) {
  EXPECT_EQ(conditional_rows(kRows, {}, "no place", false).error().code, core::ErrorCode::kConfig);
  EXPECT_EQ(conditional_rows("{\"prompt\":[],\"reward\":1}\n", {}, "{reward}", false).error().code,
            core::ErrorCode::kData);
  EXPECT_EQ(best_of_n("{\"prompt\":\"a\"}\n", {}).error().code, core::ErrorCode::kData);
}

}  // namespace
}  // namespace troupe::app
