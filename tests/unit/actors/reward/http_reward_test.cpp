// The HTTP reward against real servers that answer well, late, wrongly or not at all. Whatever they
// do, no sample gets a 0 that the server did not give.
#include "actors/reward/http_reward.hpp"

#include "actors/reward/blocking_reward.hpp"
#include "runtime/async/deadline.hpp"
#include "runtime/net/http_server.hpp"
#include "tests/unit/actors/reward/answered.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reward {
namespace {

constexpr std::chrono::seconds kPatience{20};

class HttpReward : public ::testing::Test {
 protected:
  // A server that answers everything with this.
  void answer(int status, std::string body) {
    net::HttpResponse response;
    response.status = status;
    response.body = std::move(body);
    serve([response](net::HttpRequest) { return ready(response); });
  }
  void serve(net::HttpServer::Handler handler) {
    auto server = net::HttpServer::open(io_, {}, std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    auto reward =
        make_http_reward({"http://127.0.0.1:" + std::to_string(server_->port()) + "/get_reward"});
    ASSERT_TRUE(reward) << reward.error().message;
    source_ = make_blocking_reward(std::move(*reward));
  }
  static async::task<net::HttpResponse> ready(net::HttpResponse response) { co_return response; }
  static async::task<net::HttpResponse> never(async::Timers* timers) {
    co_await async::sleep_for(*timers, std::chrono::hours(1));
    co_return net::HttpResponse();
  }

  core::Result<std::vector<RewardScore>> score(core::Duration deadline = kPatience) {
    return source_->score({answered("2+2=", "4", "4"), answered("2+3=", "4", "5")}, deadline);
  }
  core::Error failure(int status, const std::string& body) {
    answer(status, body);
    auto scores = score();
    EXPECT_FALSE(scores) << status << " " << body;
    return scores ? core::Error() : scores.error();
  }

  async::IoThreads io_{1};
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<RewardSource> source_;
};

TEST_F(HttpReward, PostsTheBatchAndReadsItsScores) {
  std::string path, body, type;
  serve([&](net::HttpRequest request) {
    path = request.path;
    body = request.body;
    type = std::string(net::find_header(request.headers, "content-type"));
    net::HttpResponse response;
    response.body = R"({"rewards":[1,0.25],"extra_logs":{"x":[1,2]}})";
    return ready(std::move(response));
  });
  auto scores = score();
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ((*scores)[1].value, 0.25);
  EXPECT_EQ(path, "/get_reward");
  EXPECT_EQ(type, "application/json");
  EXPECT_EQ(body, R"({"labels":["4","5"],"prompts":["2+2=","2+3="],"query":["2+2=4","2+3=4"]})");
}

TEST_F(HttpReward, NullIsAMissingScoreWithItsCause) {
  answer(200, R"({"rewards":[null,0],"causes":["no label",""]})");
  auto scores = score();
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_FALSE((*scores)[0].value);
  EXPECT_EQ((*scores)[0].cause, "no label");
  EXPECT_EQ((*scores)[1].value, 0.0);
}

TEST_F(HttpReward, FailuresOfTheServerAreErrors) {
  for (const int away : {500, 502, 503, 504, 408, 429})
    EXPECT_EQ(failure(away, "boom").code, core::ErrorCode::kPeerLost) << away;
  EXPECT_NE(failure(503, "{\"error\":\"busy\"}").message.find("status 503: '{\"error\":\"busy\"}'"),
            std::string::npos);
  EXPECT_EQ(failure(404, "").code, core::ErrorCode::kData);
  EXPECT_EQ(failure(302, R"({"rewards":[1,1]})").code, core::ErrorCode::kData);
}

TEST_F(HttpReward, GarbageAndWrongLengthsAreErrors) {
  for (const char* body : {"", "<html>", "{\"rewards\":[1]}", "{\"rewards\":[1,2,3]}",
                           "{\"rewards\":[1,NaN]}", "{}", "null"}) {
    EXPECT_EQ(failure(200, body).code, core::ErrorCode::kData) << body;
  }
}

TEST_F(HttpReward, ASlowServerIsALateOne) {
  async::SteadyTimers timers;
  serve([&](net::HttpRequest) { return never(&timers); });
  auto scores = score(std::chrono::milliseconds(50));
  ASSERT_FALSE(scores);
  EXPECT_EQ(scores.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(scores.error().message.find("no reply within 50 ms (--reward.deadline_s)"),
            std::string::npos)
      << scores.error().message;
  server_.reset();
}

TEST_F(HttpReward, AServerThatAsksForSilenceIsLeftAloneForSoLong) {
  int calls = 0;
  std::string after;
  serve([&](net::HttpRequest) {
    net::HttpResponse response;
    response.status = ++calls < 3 ? 429 : 200;
    response.headers.emplace_back("Retry-After", after);
    response.body = "[1,1]";
    return ready(std::move(response));
  });
  after = "Wed, 21 Oct 2015 07:28:00 GMT";
  EXPECT_EQ(score().error().code, core::ErrorCode::kPeerLost);
  EXPECT_EQ(calls, 1);
  after = "3600";
  EXPECT_EQ(score().error().code, core::ErrorCode::kPeerLost) << "a date is read past";
  EXPECT_EQ(calls, 2);
  const auto silent = score();
  ASSERT_FALSE(silent);
  EXPECT_EQ(calls, 2) << "it was asked though it wanted to be left alone";
  EXPECT_EQ(silent.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(silent.error().message.find("asked not to be called for 3600 s"), std::string::npos)
      << silent.error().message;
}

TEST_F(HttpReward, AServerMayComeBack) {
  answer(200, "[1,1]");
  const std::uint16_t port = server_->port();
  server_.reset();
  EXPECT_EQ(score().error().code, core::ErrorCode::kPeerLost);
  net::HttpServerOptions options;
  options.port = port;
  auto again = net::HttpServer::open(io_, options, [](net::HttpRequest) {
    net::HttpResponse response;
    response.body = "[1,1]";
    return ready(std::move(response));
  });
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(score());
}

TEST_F(HttpReward, AnUnusableUrlIsAConfigurationError) {
  for (const char* url : {"", "reward.py", "host:5000", "http://", "http://u:p@host/"}) {
    EXPECT_EQ(make_http_reward({url}).error().code, core::ErrorCode::kConfig) << url;
  }
}

}  // namespace
}  // namespace troupe::actors::reward
