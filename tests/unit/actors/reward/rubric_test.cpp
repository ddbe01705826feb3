// Rubrics: templates, patterns and their bad inputs, on values worked out by hand.
#include "actors/reward/rubric.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reward {
namespace {

constexpr const char* kPoints = R"(
kind: pointwise
prompt: "Q: {prompt} Right: {label} A: {response} {{response}} {\"score\": 1}"
range: [1, 10]
)";
constexpr const char* kPairRubric =
    "kind: pairwise\nprompt: '{prompt}|{response_a}|{response_b}'\n";

Rubric rubric_of(const std::string& text) {
  auto rubric = parse_rubric(text, "r.yaml");
  EXPECT_TRUE(rubric) << rubric.error().message;
  return rubric ? *rubric : Rubric();
}

TEST(Rubric, PutsTheTextsInOnceAndReadsNothingInThem) {
  const Rubric rubric = rubric_of(kPoints);
  EXPECT_EQ(rubric.ask({"2+2", "4", "it is {label} {{x}} {prompt}", ""}),
            "Q: 2+2 Right: 4 A: it is {label} {{x}} {prompt} {response} {\"score\": 1}");
  EXPECT_EQ(rubric_of(kPairRubric).ask({"p", "l", "one", "two"}), "p|one|two");
}

TEST(Rubric, TheLastNumberInRangeCounts) {
  const Rubric rubric = rubric_of(kPoints);
  EXPECT_EQ(rubric.number("first [[3]], but then [[ 7.5 ]]."), 7.5);
  EXPECT_EQ(rubric.number("[[10]]"), 10.0);
  for (const char* none : {"", "7", "[7]", "[[eleven]]", "[[11]]", "[[0]]", "[[5]] no, [[-5]]"})
    EXPECT_EQ(rubric.number(none), std::nullopt) << none;
  const Rubric own = rubric_of(std::string(kPoints) + "pattern: 'Score: (\\d+)/10'\n");
  EXPECT_EQ(own.number("Score: 4/10"), 4.0);
  EXPECT_EQ(own.number("[[4]]"), std::nullopt);
  EXPECT_EQ(own.number(std::string(1 << 20, 'x') + "Score: 9/10"), 9.0) << "a long answer";
}

TEST(Rubric, VerdictsAreFirstSecondOrNeither) {
  const Rubric rubric = rubric_of(kPairRubric);
  EXPECT_EQ(rubric.verdict("I say [[A]]"), 1.0);
  EXPECT_EQ(rubric.verdict("not [[A]] but [[B]]"), 0.0);
  EXPECT_EQ(rubric.verdict("[[C]]"), 0.5);
  EXPECT_EQ(rubric.verdict("[[tie]]"), 0.5);
  for (const char* none : {"", "A", "[[D]]", "[[5]]"})
    EXPECT_EQ(rubric.verdict(none), std::nullopt) << none;
}

TEST(Rubric, ReadsAPromptOfMessages) {
  RewardGroup group{"<|user|>hi"};
  EXPECT_EQ(plain_prompt(group), "<|user|>hi");
  group.messages = R"([{"role":"user","content":"hi"}])";
  EXPECT_EQ(plain_prompt(group), "hi");
  group.messages = R"([{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}])";
  EXPECT_EQ(plain_prompt(group), "user: hi\n\nassistant: ho");
  group.messages =
      R"([{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}])";
  EXPECT_EQ(plain_prompt(group), "hi");
  group.messages = R"([{"role":"user","content":"hi"},)"
                   R"({"role":"assistant","content":"","tool_calls":[{"name":"f"}]}])";
  EXPECT_EQ(plain_prompt(group), "<|user|>hi") << "what a call says stands there alone";
  group.messages = "{broken";
  EXPECT_EQ(plain_prompt(group), "<|user|>hi");
}

TEST(Rubric, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "r.yaml"},
      {"[1, 2]", "expected `key: value` pairs"},
      {"kind: [", "not valid YAML"},
      {"prompt: '{response}'\n", "kind: is not set"},
      {"kind: best\n", "kind: 'best'; expected pointwise, pairwise or reference"},
      {"kind: pointwise\nrange: [1, 2]\n", "prompt: is not set"},
      {"kind: pointwise\nprompt: '{response}'\n", "range: is not set"},
      {"kind: pointwise\nprompt: '{prompt}'\nrange: [1, 2]\n", "has no {response}"},
      {"kind: pointwise\nprompt: '{response} {respones}'\nrange: [1, 2]\n",
       "there is no {respones}"},
      {"kind: pairwise\nprompt: '{response}'\n", "there is no {response}"},
      {"kind: pairwise\nprompt: '{response_a}'\n", "needs both"},
      {"kind: pointwise\nprompt: '{response}'\nrange: [2, 2]\n", "must be below"},
      {"kind: pointwise\nprompt: '{response}'\nrange: 5\n", "expected two numbers"},
      {std::string(kPairRubric) + "range: [0, 1]\n", "range: is read with kind pointwise"},
      {std::string(kPairRubric) + "pattern: '(A'\n", "is not a regular expression"},
      {std::string(kPairRubric) + "pattern: 'A|B'\n", "has no group"},
      {std::string(kPairRubric) + "tries: 0\n", "tries: '0': expected a number from 1 to 20"},
      {std::string(kPairRubric) + "tries: 1.5\n", "tries: expected a whole number"},
      {std::string(kPairRubric) + "temperature: hot\n", "temperature: 'hot'"},
      {std::string(kPairRubric) + "tempreature: 1\n", "tempreature: is not a key of a rubric"},
      {std::string(kPairRubric) + "kind: pairwise\n", "given twice"},
      {std::string(kPairRubric) + "system: {a: b}\n", "needs a plain value"},
      {std::string(kPoints) + "opponents: 2\n", "opponents: is read with kind pairwise"}};
  for (const auto& [text, why] : bad) {
    const auto rubric = parse_rubric(text, "r.yaml");
    ASSERT_FALSE(rubric) << text;
    EXPECT_EQ(rubric.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(rubric.error().message.find(why), std::string::npos)
        << text << " -> " << rubric.error().message;
  }
  const auto missing = read_rubric("/no/rubric.yaml");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("--reward.judge_rubric"), std::string::npos);
}

}  // namespace
}  // namespace troupe::actors::reward
