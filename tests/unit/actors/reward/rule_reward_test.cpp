// Rules on hand-worked responses; what cannot be scored is missing, never 0.
#include "actors/reward/rule_reward.hpp"

#include "tests/unit/actors/reward/answered.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reward {
namespace {

std::optional<double> score(RuleKind kind,
                            const std::string& pattern,
                            const std::string& response,
                            const std::string& label) {
  auto rule = make_rule_reward(kind, pattern);
  auto scores = (*rule)->score({answered("p", response, label)}, std::chrono::seconds(1));
  return (*scores)[0].value;
}

}  // namespace

TEST(ExactRule, ComparesTheFirstLineTrimmed) {
  EXPECT_EQ(score(RuleKind::kExact, "", " 11\n", "11"), 1.0);
  EXPECT_EQ(score(RuleKind::kExact, "", "11\n3 + 3", "11"), 1.0);
  EXPECT_EQ(score(RuleKind::kExact, "", "111", "11"), 0.0);
  EXPECT_EQ(score(RuleKind::kExact, "", "", "11"), 0.0);
}

TEST(ExactRule, MissingLabelIsMissingNotZero) {
  EXPECT_EQ(score(RuleKind::kExact, "", "11", " "), std::nullopt);
}

TEST(LastNumber, ReadsNumbersAsPeopleWriteThem) {
  EXPECT_EQ(last_number("so 7 + 5 = 12."), 12.0);
  EXPECT_EQ(last_number("it costs $1,234.50!"), 1234.5);
  EXPECT_EQ(last_number("= -3"), -3.0);
  EXPECT_EQ(last_number("7-3"), 3.0);
  EXPECT_EQ(last_number("version 1.2.3"), 2.3);
  EXPECT_EQ(last_number("a, 5"), 5.0);
  EXPECT_EQ(last_number(".5"), 0.5);
  EXPECT_EQ(last_number("none"), std::nullopt);
}

TEST(LastNumberRule, ComparesValuesNotTexts) {
  EXPECT_EQ(score(RuleKind::kLastNumber, "", "The answer is 9.0", "9 apples"), 1.0);
  EXPECT_EQ(score(RuleKind::kLastNumber, "", "no idea", "9"), 0.0);
  EXPECT_EQ(score(RuleKind::kLastNumber, "", "9", "nine"), std::nullopt);
}

TEST(RegexRule, GroupMustEqualTheLabel) {
  EXPECT_EQ(score(RuleKind::kRegex, "^[0-9]+$", "12", ""), 1.0);
  EXPECT_EQ(score(RuleKind::kRegex, "^[0-9]+$", "12a", ""), 0.0);
  EXPECT_EQ(score(RuleKind::kRegex, "#### (\\S+)", "so\n#### 4", "4"), 1.0);
  EXPECT_EQ(score(RuleKind::kRegex, "#### (\\S+)", "so\n#### 5", "4"), 0.0);
}

TEST(RegexRule, BadPatternsAreConfigErrors) {
  EXPECT_EQ(make_rule_reward(RuleKind::kRegex, "(").error().code, core::ErrorCode::kConfig);
  EXPECT_EQ(make_rule_reward(RuleKind::kRegex, "").error().code, core::ErrorCode::kConfig);
}

TEST(RegexRule, RunawayPatternOnALongResponseEndsBounded) {
  const std::string text(200'000, 'a');
  auto value = score(RuleKind::kRegex, "b$", text, "");
  EXPECT_EQ(value, 0.0);
}

}  // namespace troupe::actors::reward
