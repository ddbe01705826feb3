// A judge behind real HTTP servers: what it is asked, and what becomes of scores when it is dead,
// frozen, slow or sick, answers nonsense, always the same, or an error with status 200. No sample
// ever gets a 0 that the judge did not give.
#include "actors/reward/judge_reward.hpp"

#include "actors/protocol/key_place.hpp"
#include "actors/reward/blocking_reward.hpp"
#include "actors/reward/chat_json.hpp"
#include "runtime/async/deadline.hpp"
#include "runtime/net/http_server.hpp"
#include "tests/unit/actors/reward/answered.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace troupe::actors::reward {
namespace {

using nlohmann::json;
constexpr std::chrono::seconds kUnhurried{20};

constexpr const char* kJudgePoints =
    "kind: pointwise\nsystem: be fair\nprompt: '{prompt}|{response}|{label}'\nrange: [0, 10]\n";
constexpr const char* kJudgePairs = "kind: pairwise\nprompt: '<{response_a}><{response_b}>'\n";

std::string said(const std::string& text) {
  return json{{"choices", {{{"message", {{"role", "assistant"}, {"content", text}}}}}}}.dump();
}

class JudgeRewardTest : public ::testing::Test {
 protected:
  using Answer = std::function<net::HttpResponse(const json& request, int call)>;

  // A server that answers the n-th call, from 1, with this.
  void serve(Answer answer) {
    serve_handler([this, answer, calls = std::make_shared<int>(0)](net::HttpRequest request) {
      const json body = json::parse(request.body);
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(body);
        keys_.emplace_back(net::find_header(request.headers, "authorization"));
        paths_.push_back(request.path);
      }
      return ready(answer(body, ++*calls));
    });
  }
  void serve_handler(net::HttpServer::Handler handler) {
    auto server = net::HttpServer::open(io_, {}, std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    servers_.push_back(std::move(*server));
    urls_.push_back("http://127.0.0.1:" + std::to_string(servers_.back()->port()) + "/v1");
  }
  static async::task<net::HttpResponse> ready(net::HttpResponse response) { co_return response; }
  static async::task<net::HttpResponse> never(async::Timers* timers) {
    co_await async::sleep_for(*timers, std::chrono::hours(1));
    co_return net::HttpResponse();
  }
  static net::HttpResponse with(int status, std::string body) {
    net::HttpResponse response;
    response.status = status;
    response.body = std::move(body);
    return response;
  }

  core::Result<std::vector<RewardScore>> score(const char* rubric,
                                               const std::vector<RewardGroup>& groups,
                                               core::Duration deadline = kUnhurried) {
    if (!source_) {
      JudgeOptions options;
      options.judge = urls_;
      options.judge_model = "the-judge";
      options.rubric = *parse_rubric(rubric, "r.yaml");
      options.key = key_;
      auto reward = make_judge_reward(std::move(options));
      EXPECT_TRUE(reward) << reward.error().message;
      source_ = make_blocking_reward(std::move(*reward));
    }
    return source_->score(groups, deadline);
  }
  static RewardGroup pair(std::string one, std::string other) {
    RewardGroup group = answered("p", std::move(one), "l");
    group.samples.push_back({std::move(other)});
    return group;
  }

  async::IoThreads io_{1};
  std::mutex mutex_;
  std::vector<json> asked_;
  std::vector<std::string> keys_, paths_, urls_;
  std::vector<std::unique_ptr<net::HttpServer>> servers_;
  std::unique_ptr<RewardSource> source_;
  std::string key_;
};

TEST_F(JudgeRewardTest, AsksAsTheRubricSays) {
  key_ = "sk-secret-0123";
  serve([](const json&, int) { return with(200, said("Rating: [[7]]")); });
  const auto scores = score(kJudgePoints, {answered("2+2=", "4", "four")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 7.0);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(paths_[0], "/v1/chat/completions");
  EXPECT_EQ(keys_[0], "Bearer sk-secret-0123");
  EXPECT_EQ(asked_[0]["model"], "the-judge");
  EXPECT_EQ(asked_[0]["messages"], json::parse(R"([{"role":"system","content":"be fair"},
                            {"role":"user","content":"2+2=|4|four"}])"));
  EXPECT_EQ(asked_[0]["temperature"], 0.0);
  EXPECT_EQ(asked_[0]["max_tokens"], 512);
  EXPECT_EQ(asked_[0]["seed"], 0);
}

TEST_F(JudgeRewardTest, WhatDoesNotParseIsAskedAgainWithAnotherSeed) {
  serve([](const json&, int call) {
    return with(200, said(call < 3 ? "I would say seven." : "[[7]]"));
  });
  const auto scores = score(kJudgePoints, {answered("p", "r")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 7.0);
  EXPECT_EQ(json::parse((*scores)[0].extra)["judge_retries"], 2);
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[1]["seed"], 1);
  EXPECT_EQ(asked_[2]["seed"], 2);
  EXPECT_EQ(asked_[2]["temperature"], 0.7);
}

TEST_F(JudgeRewardTest, NonsenseIsAMissingScoreAndNeverAZero) {
  serve([](const json& request, int) {
    const auto text = request["messages"].back()["content"].get<std::string>();
    return with(200, said(text == "p|bad|" ? "bananas" : "[[0]]"));
  });
  const auto scores = score(kJudgePoints, {answered("p", "bad"), answered("p", "good")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_FALSE((*scores)[0].value);
  EXPECT_NE((*scores)[0].cause.find("does not parse (3 tries): 'bananas'"), std::string::npos)
      << (*scores)[0].cause;
  EXPECT_EQ((*scores)[1].value, 0.0) << "a 0 that the judge gave";
  EXPECT_EQ(asked_.size(), 4u);
}

TEST_F(JudgeRewardTest, AJudgeThatAlwaysSaysAGivesTies) {
  serve([](const json&, int) { return with(200, said("[[A]]")); });
  const auto scores = score(kJudgePairs, {pair("x", "yy")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 0.5);
  EXPECT_EQ((*scores)[1].value, 0.5);
  EXPECT_EQ(json::parse((*scores)[0].extra)["judge_contradictions"], 1.0);
  EXPECT_EQ(asked_.size(), 2u) << "both orders";
}

TEST_F(JudgeRewardTest, ComparesInBothOrdersWhicheverComesFirst) {
  serve([](const json& request, int) {
    const auto text = request["messages"].back()["content"].get<std::string>();
    return with(200, said(text == "<good><bad>" ? "[[A]]" : "[[B]]"));
  });
  const auto scores = score(kJudgePairs, {pair("good", "bad"), pair("bad", "good")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ((*scores)[1].value, 0.0);
  EXPECT_EQ((*scores)[2].value, 0.0);
  EXPECT_EQ((*scores)[3].value, 1.0);
}

TEST_F(JudgeRewardTest, AnErrorWithStatus200IsASickServer) {
  for (const char* body : {R"({"error":{"message":"out of credit"}})", "<html>busy</html>", "",
                           R"({"choices":[]})", R"({"choices":[{"text":"[[7]]"}]})", "[7]"}) {
    source_.reset();
    urls_.clear();
    serve([body](const json&, int) { return with(200, body); });
    const auto scores = score(kJudgePoints, {answered("p", "r")});
    ASSERT_FALSE(scores) << body;
    EXPECT_EQ(scores.error().code, core::ErrorCode::kPeerLost) << "the run waits: " << body;
    EXPECT_NE(scores.error().message.find("status 200, but the reply"), std::string::npos)
        << scores.error().message;
  }
}

TEST_F(JudgeRewardTest, AnotherServerTakesWhatASickOneHad) {
  serve([](const json&, int) { return with(200, R"({"error":"overloaded"})"); });
  serve([](const json&, int) { return with(200, said("[[3]]")); });
  for (int i = 0; i < 4; ++i) {
    const auto scores = score(kJudgePoints, {answered("p", std::to_string(i))});
    ASSERT_TRUE(scores) << scores.error().message;
    EXPECT_EQ((*scores)[0].value, 3.0);
  }
}

// The connection breaks in the middle of an answer.
TEST_F(JudgeRewardTest, ACutConnectionIsAServerThatIsAway) {
  struct Cut final : net::HttpStream {
    async::task<std::optional<std::string>> next() override {
      if (begun) throw std::runtime_error("cut");
      begun = true;
      co_return R"({"choices":[{"message":{"content":"[[)";
    }
    bool begun = false;
  };
  serve([](const json&, int) {
    net::HttpResponse response;
    response.stream = std::make_shared<Cut>();
    return response;
  });
  const auto alone = score(kJudgePoints, {answered("p", "r")});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, core::ErrorCode::kPeerLost) << alone.error().message;
  source_.reset();
  serve([](const json&, int) { return with(200, said("[[8]]")); });
  const auto scores = score(kJudgePoints, {answered("p", "r")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 8.0);
}

TEST_F(JudgeRewardTest, AFilteredAnswerIsMissing) {
  serve([](const json&, int) {
    return with(200,
                R"({"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]})");
  });
  const auto scores = score(kJudgePoints, {answered("p", "r")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_FALSE((*scores)[0].value);
}

TEST_F(JudgeRewardTest, ARefusedQuestionIsMissingAndOthersAreScored) {
  serve([](const json& request, int) {
    const auto text = request["messages"].back()["content"].get<std::string>();
    if (text == "p|long|") return with(400, R"({"error":"context length exceeded"})");
    return with(200, said("[[2]]"));
  });
  const auto scores = score(kJudgePoints, {answered("p", "long"), answered("p", "short")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_FALSE((*scores)[0].value);
  EXPECT_NE((*scores)[0].cause.find("status 400"), std::string::npos) << (*scores)[0].cause;
  EXPECT_EQ((*scores)[1].value, 2.0);
  EXPECT_EQ(asked_.size(), 2u) << "a refusal is not asked again";
}

TEST_F(JudgeRewardTest, AWrongKeyFailsTheBatchAndIsNotRepeatedInMessages) {
  key_ = "sk-secret-0123";
  serve([](const json&, int) { return with(401, "the key sk-secret-0123 is unknown"); });
  const auto scores = score(kJudgePoints, {answered("p", "r")});
  ASSERT_FALSE(scores);
  EXPECT_EQ(scores.error().code, core::ErrorCode::kData);
  EXPECT_NE(scores.error().message.find("the key *** is unknown"), std::string::npos)
      << scores.error().message;
  EXPECT_NE(scores.error().message.find("--reward.judge_key"), std::string::npos);
  EXPECT_EQ(scores.error().message.find("sk-secret"), std::string::npos);
}

TEST_F(JudgeRewardTest, AnotherServerAnswersForAFrozenOneAndAloneItIsLate) {
  async::SteadyTimers timers;
  serve_handler([&](net::HttpRequest) { return never(&timers); });
  serve([](const json&, int) { return with(200, said("[[5]]")); });
  // Nothing is known of either at first, so the first question costs a deadline.
  const auto first = score(kJudgePoints, {answered("p", "r")}, std::chrono::milliseconds(50));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, core::ErrorCode::kPeerLost) << "and is asked again";
  const auto scores = score(kJudgePoints, {answered("p", "r")});
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 5.0);
  source_.reset();
  urls_.pop_back();
  const auto late = score(kJudgePoints, {answered("p", "r")}, std::chrono::milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(late.error().message.find("no reply within 50 ms"), std::string::npos);
  source_.reset();
  servers_.clear();
}

TEST_F(JudgeRewardTest, ADeadOneIsAwayAndWhatItHadAnsweredIsKept) {
  serve([](const json&, int call) {
    return call == 1 ? with(200, said("[[4]]")) : with(call == 2 ? 503 : 200, said("[[6]]"));
  });
  const std::vector<RewardGroup> groups = {answered("p", "one"), answered("p", "two")};
  const auto away = score(kJudgePoints, groups);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, core::ErrorCode::kPeerLost);
  const auto scores = score(kJudgePoints, groups);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value.value() + (*scores)[1].value.value(), 10.0);
  EXPECT_EQ(asked_.size(), 3u) << "the first answer is not asked for again";
  servers_.clear();
  const auto dead = score(kJudgePoints, {answered("p", "three")});
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, core::ErrorCode::kPeerLost);
}

TEST(JudgeUrl, IsCompleted) {
  EXPECT_EQ(chat_url("http://h:1"), "http://h:1/v1/chat/completions");
  EXPECT_EQ(chat_url("http://h:1/"), "http://h:1/v1/chat/completions");
  EXPECT_EQ(chat_url("http://h:1/v1/"), "http://h:1/v1/chat/completions");
  EXPECT_EQ(chat_url("https://h/api/v3"), "https://h/api/v3/chat/completions");
  EXPECT_EQ(chat_url("http://h/v1/chat/completions"), "http://h/v1/chat/completions");
}

TEST(JudgeUrl, BadOnesAreRefused) {
  const Rubric rubric = *parse_rubric(kJudgePairs, "r.yaml");
  for (const auto& [urls, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "no URL"},
           {{"localhost:8000"}, "neither http:// nor https://"},
           {{"http://user:pw@h/v1"}, "holds a user name or password"},
           {{"http://h/v1", "http://h/v1/"}, "given twice"}}) {
    JudgeOptions options;
    options.judge = urls;
    options.rubric = rubric;
    const auto made = make_judge_reward(std::move(options));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(made.error().message.find(why), std::string::npos) << made.error().message;
  }
}

core::Result<std::string> key_at(const std::string& place) {
  return read_key(place, "the judge's API key", "--reward.judge_key");
}

TEST(JudgeKey, ComesFromAVariableOrAFile) {
  ::setenv("TROUPE_TEST_JUDGE", "sk-1", 1);
  EXPECT_EQ(*key_at("env:TROUPE_TEST_JUDGE"), "sk-1");
  ::setenv("TROUPE_TEST_JUDGE", "", 1);
  EXPECT_NE(key_at("env:TROUPE_TEST_JUDGE").error().message.find("is empty"), std::string::npos);
  ::setenv("TROUPE_TEST_JUDGE", "sk 1\r\nX-Evil: 1", 1);
  const auto blank = key_at("env:TROUPE_TEST_JUDGE");
  ASSERT_FALSE(blank);
  EXPECT_EQ(blank.error().message.find("Evil"), std::string::npos) << "the key is not quoted";
  ::unsetenv("TROUPE_TEST_JUDGE");
  EXPECT_NE(key_at("env:TROUPE_TEST_JUDGE").error().message.find("no variable"), std::string::npos);
  EXPECT_NE(key_at("file:/no/key").error().message.find("/no/key"), std::string::npos);
  EXPECT_FALSE(key_at("sk-1"));
  std::string pattern = (std::filesystem::temp_directory_path() / "judge_key_XXXXXX").string();
  const int made = ::mkstemp(pattern.data());
  ASSERT_EQ(::write(made, "sk-2\r\nmore\n", 11), 11);
  EXPECT_EQ(*key_at("file:" + pattern), "sk-2") << "its first line";
  ASSERT_EQ(::fchmod(made, 0644), 0);
  EXPECT_NE(key_at("file:" + pattern).error().message.find("chmod 600"), std::string::npos);
  ::close(made);
  std::filesystem::remove(pattern);
  EXPECT_EQ(*key_at(""), "");
}

}  // namespace
}  // namespace troupe::actors::reward
