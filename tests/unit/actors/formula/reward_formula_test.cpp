// Formulas of rewards on values worked out by hand; what is missing; what is refused.
#include "actors/formula/reward_formula.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::actors::formula {
namespace {

// a = 0.5, b = 0.25, c = -1 with the weights 1, 2 and 3, so that their terms are 0.5, 0.5 and -3.
const std::vector<RewardMember> kThree = {{"a", "reward/a", 1}, {"b", "reward/b", 2}, {"c", "", 3}};
using Parts = std::vector<std::optional<double>>;
const Parts kParts = {0.5, 0.25, -1.0};

core::Result<double> formula_value(const std::string& text,
                                   const Parts& scores = kParts,
                                   const std::string& row = "") {
  TROUPE_TRY_ASSIGN(formula, RewardFormula::parse(text));
  TROUPE_TRY(formula.check(kThree));
  return formula.value(kThree, scores, row);
}

double formula_number(const std::string& text,
                      const Parts& scores = kParts,
                      const std::string& row = "") {
  const auto value = formula_value(text, scores, row);
  EXPECT_TRUE(value) << text << ": " << value.error().message;
  return value ? *value : std::nan("");
}

std::string refusal_of(const std::string& text) {
  const auto value = formula_value(text);
  EXPECT_FALSE(value) << text;
  return value ? "" : value.error().message;
}

}  // namespace

TEST(RewardFormula, NoFormulaIsTheWeightedSum) {
  EXPECT_EQ(formula_number(""), 0.5 + 0.5 - 3);
  EXPECT_EQ(formula_number("rest"), -2);
  EXPECT_EQ(formula_number("sum(a, b, c)"), -2);
}

TEST(RewardFormula, EachFunctionHasHandWorkedValues) {
  EXPECT_EQ(formula_number("min(a, b, c)"), -3);
  EXPECT_EQ(formula_number("product(a, b, c)"), -0.75);
  EXPECT_EQ(formula_number("sum(2 * a, -0.5 * c)"), 1 + 1.5 + 0.5)
      << "b is not named, so it is added";
  // Terms 0.5, 0.5, -3: mean -2/3, deviations 7/6, 7/6, -7/3, variance 49/18.
  EXPECT_NEAR(formula_number("mean_minus_std(2, a, b, c)"), -2.0 / 3 - 2 * 7 / std::sqrt(18),
              1e-14);
  EXPECT_EQ(formula_number("mean_minus_std(0, a, b, c)"), (0.5 + 0.5 - 3) / 3);
}

TEST(RewardFormula, AGateCapsWhatIsBehindItByTheScoreItself) {
  // c's score is -1 and its weight 3: the gate compares the score, and does not weigh it.
  EXPECT_EQ(formula_number("gate(c, -1, sum(a, b))"), 1) << "at the bound it is open";
  EXPECT_EQ(formula_number("gate(c, 0, sum(a, b))"), -1);
  EXPECT_EQ(formula_number("gate(a, 0.75, rest)", {0.5, 2.0, 4.0}), 0.5) << "16 is capped";
  EXPECT_EQ(formula_number("gate(a, 0.75, rest)", {0.5, 0.0, -4.0}), -12) << "what is lower stays";
}

TEST(RewardFormula, WhatIsNotNamedIsAddedOrStandsWhereRestDoes) {
  EXPECT_EQ(formula_number("min(a, b)"), 0.5 - 3);
  EXPECT_EQ(formula_number("min(a, rest)"), -2.5) << "rest is b + c";
}

TEST(RewardFormula, ADomainOfTheRowChoosesTheTerm) {
  const std::string text = R"(domain(source, math: sum(0 * b, 0 * c, a), "two words": b, 3: c))";
  EXPECT_EQ(formula_number(text, kParts, R"({"source": "math"})"), 0.5);
  EXPECT_EQ(formula_number(text, kParts, R"({"source": "two words"})"), 0.5);
  EXPECT_EQ(formula_number(text, kParts, R"({"source": 3})"), -3);
  EXPECT_EQ(formula_number("domain(source, x: a, other: c)", kParts, R"({"source": "y"})"),
            -3 + 0.5)
      << "b is nowhere named";
  EXPECT_EQ(formula_value("domain(source, x: a)", kParts, R"({"source": "y"})").error().message,
            "the formula has no term for 'y' in column 'source', and no `other`");
  EXPECT_EQ(formula_value("domain(source, x: a)", kParts, "{}").error().message,
            "the row has no column 'source', which the formula reads");
  EXPECT_EQ(RewardFormula::parse(text)->columns(), std::vector<std::string>{"source"});
}

TEST(RewardFormula, AMissingPartIsNeverAZero) {
  const Parts lost = {0.5, std::nullopt, -1.0};
  for (const char* text : {"", "sum(a, b, c)", "min(a, b)", "product(a, b)", "gate(b, 0, a)",
                           "gate(a, 0, b)", "mean_minus_std(1, a, b)", "sum(a, 0 * b)", "c"}) {
    const auto value = formula_value(text, lost);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().message, "reward b gave no score") << text;
  }
  EXPECT_EQ(
      formula_number("domain(source, math: sum(a, c), code: b)", lost, R"({"source": "math"})"),
      -2.5)
      << "only what the row's domain needs";
  EXPECT_FALSE(
      formula_value("domain(source, math: sum(a, c), code: b)", lost, R"({"source": "code"})"));
}

TEST(RewardFormula, SaysWhichRewardsItReadsForARow) {
  const auto needed = [](const char* text, const char* row) {
    return RewardFormula::parse(text)->needed(kThree, row);
  };
  using Flags = std::vector<bool>;
  const char* text = "gate(a, 0, domain(source, math: b, chat: sum(b, 2 * c), other: rest))";
  EXPECT_EQ(needed(text, R"({"source": "math"})"), (Flags{true, true, false}));
  EXPECT_EQ(needed(text, R"({"source": "chat"})"), (Flags{true, true, true}));
  EXPECT_EQ(needed(text, R"({"source": "code"})"), (Flags{true, false, false}))
      << "rest has nothing left here: all are named";
  EXPECT_EQ(needed("domain(source, math: b, chat: a)", R"({"source": "math"})"),
            (Flags{false, true, true}))
      << "c is nowhere named, so it is added";
  EXPECT_EQ(needed("domain(source, math: b, chat: sum(a, c))", R"({"source": "law"})"),
            (Flags{false, false, false}))
      << "no term, no score";
  EXPECT_EQ(needed("min(a, rest)", "{}"), (Flags{true, true, true}));
}

TEST(RewardFormula, AResultThatIsNotFiniteIsNone) {
  constexpr double kHuge = std::numeric_limits<double>::max();
  EXPECT_FALSE(formula_value("product(a, b, c)", {kHuge, kHuge, 1.0}));
}

TEST(RewardFormula, SaysWhereItIsWrong) {
  EXPECT_EQ(refusal_of("min(a, b"),
            "the formula 'min(a, b' has the end at character 9, where a comma or ')' was expected");
  EXPECT_NE(refusal_of("max(a)").find("'max(a)' at character 1, where sum, product, min"),
            std::string::npos);
  EXPECT_NE(refusal_of("a b").find("'b' at character 3, where nothing more"), std::string::npos);
  EXPECT_NE(refusal_of("gate(a, high, b)").find("where the gate's bound"), std::string::npos);
  EXPECT_NE(refusal_of("x * a").find("a number before '*'"), std::string::npos);
  EXPECT_NE(refusal_of("mean_minus_std(1, a)").find("another term"), std::string::npos);
  EXPECT_NE(refusal_of("domain(s, x: a, x: b)").find("comes twice"), std::string::npos);
  EXPECT_NE(refusal_of("domain(s, other: a, x: b)").find("comes last"), std::string::npos);
  EXPECT_NE(refusal_of("\"a").find("a closing quote"), std::string::npos);
  EXPECT_NE(refusal_of("()").find("a reward, a number or a function"), std::string::npos);
  EXPECT_EQ(refusal_of("min(a, d)"),
            "the formula names reward 'd', which the run does not have; its rewards are: a, b, c");
  EXPECT_NE(refusal_of("sum(a, b, c, rest)").find("leave `rest` out"), std::string::npos);
  std::string deep = "a";
  for (int i = 0; i < 20; ++i)
    deep = "sum(" + deep + ")";
  EXPECT_NE(refusal_of(deep).find("less nesting"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(5000, 'a')).find("5000 bytes"), std::string::npos);
}

}  // namespace troupe::actors::formula
