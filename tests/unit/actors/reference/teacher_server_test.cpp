// A teacher behind a URL: what is asked of it, and every answer that is of no use. The real server
// is asked by tests/integration/distillation_test.cpp.
#include "actors/reference/teacher_server.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::actors::reference {
namespace {

using TaughtIds = std::vector<std::int32_t>;
using nlohmann::json;

const TaughtIds kTaughtPrompt = {5, 6}, kTaughtResponse = {65, 66, 67};

// Token 65 is "A" and so on; nothing is said of the token 67.
std::string teacher_letters(std::int32_t token) {
  return token == 67 ? "" : std::string(1, static_cast<char>(token));
}

std::string teacher_reply(const json& values, const json& tokens = json()) {
  return json{
      {"choices", {{{"text", ""}, {"logprobs", {{"token_logprobs", values}, {"tokens", tokens}}}}}}}
      .dump();
}

core::Result<std::vector<float>> read_reply(const std::string& body) {
  return read_teacher_reply(body, kTaughtPrompt.size(), kTaughtResponse, teacher_letters);
}

std::string teacher_refusal(const std::string& body) {
  const auto got = read_reply(body);
  if (got) return "taken";
  EXPECT_EQ(got.error().code, core::ErrorCode::kData);
  return got.error().message;
}

}  // namespace

TEST(TeacherServer, AsksForTheLogprobsOfPromptAndResponse) {
  EXPECT_EQ(json::parse(teacher_request(kTaughtPrompt, kTaughtResponse)),
            json::parse(R"({"prompt": [5, 6, 65, 66, 67], "max_tokens": 0, "echo": true,
                            "logprobs": 0, "temperature": 1})"));
}

TEST(TeacherServer, TakesThoseOfTheResponse) {
  const auto got = read_reply(teacher_reply({nullptr, -9, -1.5, 0, -0.25}));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, (std::vector<float>{-1.5f, 0, -0.25f}));
  EXPECT_EQ(*read_reply(teacher_reply({nullptr, -9, -1, 1e-6, -1})),
            (std::vector<float>{-1, 0, -1}))
      << "rounded up by a little";
}

TEST(TeacherServer, OfARowItKeepsTheDrawnTokens) {
  const auto got = at_targets({-1, -2, -3, -4}, {1, 3});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, (std::vector<float>{-2, -4}));
  EXPECT_EQ(at_targets({-1, -2}, {2}).error().message, "a target is not a place of its response");
}

TEST(TeacherServer, ComparesTheSpellingOfTokens) {
  const json values = {nullptr, -9, -1, -1, -1};
  EXPECT_TRUE(read_reply(teacher_reply(values, {"x", "y", " A", "B", "?"})))
      << "spaces do not count";
  EXPECT_TRUE(read_reply(teacher_reply(values, {"x", "y", "token_id:65", "token_id:66", "?"})));
  EXPECT_TRUE(read_reply(teacher_reply(values, {"x", "y", "A", "b", "?"}))) << "half of them agree";
  const std::string other = teacher_refusal(teacher_reply(values, {"x", "y", "the", "cat", "C"}));
  EXPECT_EQ(other,
            "has another tokenizer (token 65 is 'the' there and 'A' here); serve a model "
            "with the policy's");
}

TEST(TeacherServer, SaysWhatIsWrongWithAReply) {
  const auto holds = [](const std::string& body, const std::string& part) {
    const std::string refusal = teacher_refusal(body);
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
  };
  holds("<html>", "gave '<html>', which is not valid JSON");
  holds("[]", "gave no choices[0].logprobs.token_logprobs but '[]'");
  holds(R"({"choices": []})", "it must answer \"echo\" with \"logprobs\", as troupe serve does");
  holds(R"({"choices": [{"text": "A", "logprobs": null}]})", "gave no choices[0].logprobs");
  holds(R"({"choices": [1]})", "gave no choices[0].logprobs");
  holds(R"({"choices": [{"logprobs": {"token_logprobs": "none"}}]})", "gave no choices[0]");
  holds(teacher_reply({-1, -1, -1}), "gave 3 log-probs for 5 tokens");
  holds(teacher_reply({nullptr, -1, -1, -1, -1, -1}), "gave 6 log-probs for 5 tokens");
  holds(teacher_reply({nullptr, -1, -1, nullptr, -1}), "gave null as the log-prob of token 4");
  holds(teacher_reply({nullptr, -1, "-1", -1, -1}), "gave \"-1\" as the log-prob of token 3");
  holds(teacher_reply({nullptr, -1, -1, -1, 0.5}), "gave 0.5 as the log-prob of token 5");
  holds(R"({"choices": [{"logprobs": {"token_logprobs": [0, 0, NaN, 0, 0]}}]})",
        "is not valid JSON");
}

}  // namespace troupe::actors::reference
