// One HTTP reward over several real servers: how many requests are under way together, and what
// becomes of them when a server is frozen, away or failing.
#include "actors/reward/http_reward.hpp"
#include "actors/reward/limits.hpp"
#include "runtime/async/deadline.hpp"
#include "runtime/net/http_server.hpp"
#include "tests/unit/actors/reward/answered.hpp"
#include "tests/unit/actors/reward/calls_stage.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::actors::reward {
namespace {

using nlohmann::json;
constexpr core::Duration kNoHurry = std::chrono::minutes(10);

std::vector<RewardGroup> numbered_queries(int count) {
  std::vector<RewardGroup> groups;
  for (int i = 0; i < count; ++i)
    groups.push_back(answered("p", std::to_string(i)));
  return groups;
}

// The score of a request is the number in its query "p17".
net::HttpResponse scored(const net::HttpRequest& request) {
  net::HttpResponse response;
  const json queries = json::parse(request.body)["query"];
  response.body = "[" + queries[0].get<std::string>().substr(1) + "]";
  return response;
}

void expect_all_scored(const std::vector<RewardCalls::Answer>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]) << i << ": " << answers[i].error().message;
    EXPECT_EQ(answers[i]->front().value, static_cast<double>(i));
  }
}

class HttpServersTest : public ::testing::Test {
 protected:
  struct Served {
    std::unique_ptr<net::HttpServer> server;
    int asked = 0;
    int together = 0, most_together = 0;
    std::shared_ptr<async::Notifier> changed;
  };

  template <class Respond>
  Served& serve(Respond respond) {
    Served& served = *served_.emplace_back(std::make_unique<Served>());
    served.changed = std::make_shared<async::Notifier>(timers_);
    auto server = net::HttpServer::open(io_, {}, [&served, respond](net::HttpRequest request) {
      ++served.asked;
      return respond(&served, std::move(request));
    });
    EXPECT_TRUE(server) << server.error().message;
    served.server = std::move(*server);
    urls_.push_back("http://127.0.0.1:" + std::to_string(served.server->port()) + "/get_reward");
    return served;
  }
  Served& good() { return serve(&HttpServersTest::at_once); }
  Served& frozen() { return serve(&HttpServersTest::never); }

  static async::task<net::HttpResponse> at_once(Served*, net::HttpRequest request) {
    co_return scored(request);
  }
  static async::task<net::HttpResponse> at_once_of(net::HttpResponse response) {
    co_return response;
  }
  static async::task<net::HttpResponse> never(Served* served, net::HttpRequest) {
    co_await served->changed->wait(async::Deadline::none());
    co_return net::HttpResponse();
  }
  static async::task<net::HttpResponse> failing(Served*, net::HttpRequest) {
    net::HttpResponse response;
    response.status = 500;
    response.body = "out of order";
    co_return response;
  }
  // Answers the first request, and then only when so many are there together.
  static constexpr int kTogether = 64;
  static async::task<net::HttpResponse> when_many(Served* served, net::HttpRequest request) {
    if (served->asked > 1) {
      served->most_together = std::max(served->most_together, ++served->together);
      if (served->together == kTogether) served->changed->notify_all();
      while (served->most_together < kTogether)
        co_await served->changed->wait(async::Deadline::none());
      --served->together;
    }
    co_return scored(request);
  }

  CallsStage& stage(RewardFormat format = RewardFormat::kOpenRlhf) {
    auto reward = make_http_reward(urls_, format);
    EXPECT_TRUE(reward) << reward.error().message;
    stage_ = std::make_unique<CallsStage>(std::move(*reward));
    return *stage_;
  }
  void TearDown() override {
    stage_.reset();
    for (auto& served : served_)
      served->server.reset();
  }

  async::IoThreads io_{1};
  async::SteadyTimers timers_;
  std::vector<std::unique_ptr<Served>> served_;
  std::vector<std::string> urls_;
  std::unique_ptr<CallsStage> stage_;
};

}  // namespace

TEST_F(HttpServersTest, ManyRequestsAreUnderWayTogether) {
  Served& server = serve(&HttpServersTest::when_many);
  expect_all_scored(stage().score(numbered_queries(100), kNoHurry));
  EXPECT_GE(server.most_together, kTogether);
  EXPECT_EQ(server.asked, 100) << "each request once";
}

TEST_F(HttpServersTest, OneServerOfThreeIsFrozenAndEveryGroupIsScored) {
  Served& first = good();
  Served& silent = frozen();
  Served& third = good();
  expect_all_scored(stage().score(numbered_queries(200), kNoHurry));
  EXPECT_EQ(silent.asked, 1) << "its first request was never answered";
  // On a machine that stands still for a while the others look silent, too.
  EXPECT_GE(first.asked + third.asked, 200);
  EXPECT_GE(stage_->amount("moved"), 1);
}

TEST_F(HttpServersTest, AServerThatFreezesWithManyRequestsLosesNone) {
  Served& first = good();
  Served& freezing = serve([](Served* served, net::HttpRequest request) {
    return served->asked <= 30 ? at_once(served, std::move(request))
                               : never(served, std::move(request));
  });
  expect_all_scored(stage().score(numbered_queries(400), kNoHurry));
  EXPECT_GT(freezing.asked, 30);
  EXPECT_LE(freezing.asked, 30 + static_cast<int>(limits::kRewardRequests_max));
  EXPECT_GE(first.asked, 400 - 30);
  EXPECT_GE(stage_->amount("moved"), freezing.asked - 30);
}

TEST_F(HttpServersTest, AFailingServersRequestsGoToAnother) {
  serve(&HttpServersTest::failing);
  Served& other = good();
  expect_all_scored(stage().score(numbered_queries(30), kNoHurry));
  EXPECT_EQ(other.asked, 30);
  EXPECT_EQ(stage_->tries.away, 0u);
}

TEST_F(HttpServersTest, AServerThatRefusesConnectionsIsLeftAlone) {
  Served& gone = good();
  gone.server.reset();
  Served& other = good();
  expect_all_scored(stage().score(numbered_queries(30), kNoHurry));
  EXPECT_EQ(gone.asked, 0);
  EXPECT_EQ(other.asked, 30);
}

TEST_F(HttpServersTest, WithoutAnyServerTheRewardIsAwayWithAllCauses) {
  serve(&HttpServersTest::failing);
  good().server.reset();
  for (const auto& answer : stage().score(numbered_queries(20), kNoHurry)) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, core::ErrorCode::kPeerLost) << answer.error().message;
  }
  const auto one = stage_->score(numbered_queries(1), kNoHurry);
  EXPECT_NE(one[0].error().message.find("status 500: 'out of order'"), std::string::npos)
      << one[0].error().message;
  EXPECT_NE(one[0].error().message.find("cannot connect"), std::string::npos);
  EXPECT_LE(served_[0]->asked, 2) << "who waited for it gives up with it";
}

TEST_F(HttpServersTest, OneSampleARequestInTheOtherFormat) {
  std::vector<std::string> bodies;
  serve([&bodies](Served*, net::HttpRequest request) {
    bodies.push_back(request.body);
    net::HttpResponse response;
    const std::string asked = json::parse(request.body)["response"];
    response.body = asked == "a"   ? "0.5"
                    : asked == "b" ? R"({"reward": 2, "reason": "good", "length": 1})"
                                   : "null";
    if (asked == "d") response.status = 422;
    return at_once_of(std::move(response));
  });
  RewardGroup group = answered("p", "a", "L");
  for (const char* response : {"b", "c", "d"})
    group.samples.push_back({response});
  const auto answers = stage(RewardFormat::kSample).score({group}, kNoHurry);
  ASSERT_TRUE(answers[0]) << answers[0].error().message;
  const auto& scores = *answers[0];
  ASSERT_EQ(scores.size(), 4u);
  EXPECT_EQ(scores[0].value, 0.5);
  EXPECT_EQ(scores[1].value, 2.0);
  EXPECT_EQ(scores[1].extra, R"({"length":1,"reason":"good"})");
  EXPECT_FALSE(scores[2].value);
  EXPECT_NE(scores[2].cause.find("gave null instead of a number"), std::string::npos);
  EXPECT_FALSE(scores[3].value);
  EXPECT_NE(scores[3].cause.find("status 422"), std::string::npos) << scores[3].cause;
  EXPECT_EQ(bodies.size(), 4u);
  EXPECT_NE(std::find(bodies.begin(), bodies.end(), R"({"label":"L","prompt":"p","response":"a"})"),
            bodies.end());
}

TEST_F(HttpServersTest, UrlsAreCheckedAndGivenOnce) {
  EXPECT_EQ(make_http_reward({}).error().code, core::ErrorCode::kConfig);
  const auto twice = make_http_reward({"http://a/", "http://b/", "http://a/"});
  EXPECT_EQ(twice.error().message,
            "the reward server http://a/ is given twice; name each once (--reward.http)");
}

}  // namespace troupe::actors::reward
