// The JSON of remote rewards: what OpenRLHF sends and takes, and what else comes over a network.
#include "actors/reward/reward_json.hpp"

#include "tests/unit/actors/reward/answered.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::actors::reward {
namespace {

std::vector<RewardScore> read(const std::string& text, std::size_t count) {
  auto scores = read_reward_reply(text, count);
  EXPECT_TRUE(scores) << scores.error().message;
  return scores ? *scores : std::vector<RewardScore>(count);
}

TEST(RewardJson, AsksAsOpenRlhfDoes) {
  EXPECT_EQ(reward_request({answered("2+2=", "4", "4"), answered("a\n", "\"b\"")}),
            R"({"labels":["4",""],"prompts":["2+2=","a\n"],"query":["2+2=4","a\n\"b\""]})");
  EXPECT_EQ(reward_request({}), R"({"labels":[],"prompts":[],"query":[]})");
}

TEST(RewardJson, InvalidUtf8IsReplacedNotThrown) {
  EXPECT_NE(reward_request({answered("p", "\xff")}).find("\xef\xbf\xbd"), std::string::npos);
}

TEST(RewardJson, ReadsEveryShapeOfReply) {
  for (const char* text : {R"({"rewards":[0.5,-1],"scores":[1,0],"extra_logs":{"a":[1,2]}})",
                           R"({"scores":[0.5,-1]})", "[0.5,-1]", R"({"rewards":[[0.5],[-1]]})"}) {
    const auto scores = read(text, 2);
    EXPECT_EQ(scores[0].value, 0.5) << text;
    EXPECT_EQ(scores[1].value, -1.0) << text;
  }
  EXPECT_EQ(read(R"({"rewards":0.25})", 1)[0].value, 0.25);
  EXPECT_TRUE(read(R"({"rewards":[]})", 0).empty());
}

TEST(RewardJson, ExtraLogsGoWithTheirSamples) {
  const auto scores = read_reward_reply(
      R"({"rewards": [1, 2], "extra_logs": {"len": [3, 4.5], "all": 7, "odd": [1], "tag": ["a", "b"]}})",
      2);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].extra, R"({"all":7,"len":3,"tag":"a"})");
  EXPECT_EQ((*scores)[1].extra, R"({"all":7,"len":4.5,"tag":"b"})");
  // Back out: numbers that all samples have, as lists.
  EXPECT_NE(reward_reply(*scores).find(R"("extra_logs":{"all":[7,7],"len":[3,4.5]})"),
            std::string::npos)
      << reward_reply(*scores);
  const std::string text(5000, 'x');
  const auto long_one =
      read_reward_reply(R"({"rewards": [1], "extra_logs": {"note": [")" + text + R"("]}})", 1);
  ASSERT_FALSE(long_one);
  EXPECT_NE(long_one.error().message.find("besides the score; at most 4096"), std::string::npos);
}

TEST(RewardJson, WhatIsNoFiniteNumberIsMissingWithACause) {
  const auto scores = read(R"({"rewards":[null,"1",true,[1,2],{},0]})", 6);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(scores[i].value) << i;
    EXPECT_NE(scores[i].cause.find("instead of a number"), std::string::npos);
  }
  EXPECT_EQ(scores[5].value, 0.0);
}

TEST(RewardJson, GarbageIsAnErrorNeverAScore) {
  for (const char* text : {"", "<html>", "{", "{}", "null", "7", R"({"rewards":null})",
                           R"({"rewards":"x"})", R"({"rewards":[NaN]})", R"({"rewards":[1e999]})",
                           R"({"rewards":[1,2]})", "[]", R"({"rewards":[1]} and more)"}) {
    auto scores = read_reward_reply(text, 1);
    ASSERT_FALSE(scores) << text;
    EXPECT_EQ(scores.error().code, core::ErrorCode::kData) << text;
  }
  auto wrong = read_reward_reply("[1,2,3]", 2);
  EXPECT_NE(wrong.error().message.find("3 rewards for 2 samples"), std::string::npos);
}

TEST(RewardJson, DeepNestingIsRefused) {
  const std::string deep(100'000, '[');
  EXPECT_NE(read_reward_reply(deep, 1).error().message.find("nested deeper than"),
            std::string::npos);
  std::string closed = std::string(70, '[') + std::string(70, ']');
  EXPECT_NE(read_reward_reply(closed, 1).error().message.find("nested deeper than"),
            std::string::npos);
  EXPECT_FALSE(read_reward_request("{\"query\":" + closed + "}", {}));
}

TEST(RewardJson, TakesRequestsApart) {
  auto read_request = read_reward_request(
      R"({"query":["2+2=4<|im_end|>","<s>a b","x"],"prompts":["2+2=","a","y"],"labels":["4",7,null]})",
      {"<|im_end|>"});
  ASSERT_TRUE(read_request) << read_request.error().message;
  EXPECT_EQ(read_request->shape, RequestShape::kQueries);
  const auto* items = &read_request->groups;
  EXPECT_EQ((*items)[0].prompt, "2+2=");
  EXPECT_EQ((*items)[0].samples[0].response, "4");
  EXPECT_EQ((*items)[0].label, "4");
  EXPECT_EQ((*items)[1].prompt, "<s>a");
  EXPECT_EQ((*items)[1].samples[0].response, " b");
  EXPECT_EQ((*items)[1].label, "7");
  EXPECT_EQ((*items)[2].prompt, "");
  EXPECT_EQ((*items)[2].samples[0].response, "x");
  EXPECT_EQ((*items)[2].label, "");
}

TEST(RewardJson, TakesRequestsOfQueriesAlone) {
  auto read_request = read_reward_request(R"({"query":["a","b"]})", {});
  ASSERT_TRUE(read_request) << read_request.error().message;
  const auto* items = &read_request->groups;
  EXPECT_EQ(items->size(), 2u);
  EXPECT_EQ((*items)[1].samples[0].response, "b");
  EXPECT_TRUE(read_reward_request(R"({"query":[],"prompts":[],"labels":[]})", {})->groups.empty());
}

TEST(RewardJson, MalformedRequestsAreRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"query":"a"})", R"({"query":[1]})", R"({"query":["a"],"prompts":[]})",
        R"({"query":["a"],"prompts":[1]})", R"({"query":["a"],"labels":"x"})",
        R"({"query":["a"],"labels":["x","y"]})"}) {
    EXPECT_FALSE(read_reward_request(text, {})) << text;
  }
}

TEST(RewardJson, AnswersAsOpenRlhfExpectsAndRoundTrips) {
  EXPECT_EQ(reward_reply({{0.5, ""}, {1.0, ""}}),
            R"({"extra_logs":{},"rewards":[0.5,1.0],"scores":[0.5,1.0]})");
  const auto again = read(
      reward_reply(
          {{0.1, ""}, {std::nullopt, "no label"}, {std::numeric_limits<double>::infinity(), ""}}),
      3);
  EXPECT_EQ(again[0].value, 0.1);
  EXPECT_FALSE(again[1].value);
  EXPECT_EQ(again[1].cause, "no label");
  EXPECT_FALSE(again[2].value);
  EXPECT_EQ(again[2].cause, "not a finite number");
}

}  // namespace
TEST(RewardJson, OneSampleARequestAndItsReplies) {
  RewardGroup group = answered("p", "r", "l");
  EXPECT_EQ(sample_request(group, group.samples[0]),
            R"({"label":"l","prompt":"p","response":"r"})");
  EXPECT_EQ((*read_sample_reply("0.5"))[0].value, 0.5);
  EXPECT_EQ((*read_sample_reply("[2]"))[0].value, 2.0);
  const auto object = read_sample_reply(R"({"score": 1, "why": "short", "parts": [1, 2]})");
  EXPECT_EQ((*object)[0].value, 1.0);
  EXPECT_EQ((*object)[0].extra, R"({"why":"short"})");
  EXPECT_EQ((*read_sample_reply(R"({"reward": null})"))[0].value, std::nullopt);
  for (const char* bad : {"", "{}", R"({"value": 1})", "NaN"})
    EXPECT_FALSE(read_sample_reply(bad)) << bad;
}

TEST(RewardJson, TakesSamplesApartAndAnswersInTheirShape) {
  const auto one =
      read_reward_request(R"({"prompt": "2+2=", "response": "4</s>", "label": 4})", {"</s>"});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->shape, RequestShape::kSample);
  EXPECT_EQ(one->groups[0].prompt, "2+2=");
  EXPECT_EQ(one->groups[0].samples[0].response, "4");
  EXPECT_EQ(one->groups[0].label, "4");
  const auto many = read_reward_request(R"({"prompt": ["a", "b"], "response": ["c", "d"]})", {});
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(many->shape, RequestShape::kSamples);
  EXPECT_EQ(many->groups[1].prompt, "b");
  EXPECT_EQ(many->groups[1].samples[0].response, "d");
  EXPECT_EQ(many->groups[1].label, "");
  EXPECT_EQ(reward_reply({{0.5, ""}}, RequestShape::kSample), "0.5");
  EXPECT_EQ(reward_reply({{0.5, ""}, {std::nullopt, "x"}}, RequestShape::kSamples), "[0.5,null]");
  for (const char* bad : {R"({"response": 1})", R"({"response": ["a"], "prompt": ["b", "c"]})",
                          R"({"response": [1]})", R"({"response": ["a"], "label": "x"})"})
    EXPECT_FALSE(read_reward_request(bad, {})) << bad;
}

}  // namespace troupe::actors::reward
