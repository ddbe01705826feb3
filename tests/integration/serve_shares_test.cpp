// `troupe serve` among people who do not trust each other: no key keeps the others out, of
// sessions, seats, the queue or connections, and only those that may control the server do.
#include "serve_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

class SharedServer : public ::testing::Test {
 protected:
  void start(const std::string& keys, std::vector<std::string> more = {}) {
    const std::filesystem::path file = folder_ / "keys";
    std::ofstream(file) << keys;
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    served_.emplace(more + std::vector<std::string>{"--api-key-file", file.string()});
  }
  HttpAnswer call(const std::string& key, const std::string& path, const json& body = json()) {
    return served_->call("POST", path, body.is_null() ? "" : body.dump(), bearer(key));
  }
  Caller begin(const std::string& key, const json& body) {
    Caller caller(served_->port);
    caller.send(http_request("POST", "/v1/completions", body.dump(), bearer(key)));
    return caller;
  }
  double running(const std::string& name) {
    return served_->metric("troupe_key_requests_running{model_name=\"tiny\",engine=\"0\",key=\"" +
                           name + "\"}");
  }

  ScratchFolder folder_;
  std::optional<Served> served_;
};

const json kShort = {{"prompt", "ab"}, {"max_tokens", 20}, {"seed", 3}, {"ignore_eos", true}};
const json kEndlessRequest = {
    {"prompt", "ab"}, {"max_tokens", 65000}, {"seed", 4}, {"ignore_eos", true}, {"stream", true}};

}  // namespace

TEST_F(SharedServer, AKeyThatOpensAllSessionsGivesWay) {
  start("aaa name=ci\nbbb name=alice\n");
  for (int i = 0; i < 1024; ++i)
    ASSERT_EQ(call("aaa", "/sessions").status, 200) << i;
  EXPECT_EQ(call("aaa", "/sessions").status, 503) << "it has them all";
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer opened = call("bbb", "/sessions");
    ASSERT_EQ(opened.status, 200) << opened.body;
    const std::string key = opened.json()["api_key"];
    EXPECT_EQ(call(key, "/v1/completions", kShort).status, 200);
  }
}

TEST_F(SharedServer, OpeningSessionsCountsAndControlIsARight) {
  start("aaa name=ci requests_per_minute=3\nbbb name=alice control\n");
  for (const int status : {200, 200, 200, 429})
    EXPECT_EQ(call("aaa", "/sessions").status, status);
  for (const std::string path : {"/pause", "/resume", "/sleep", "/wake_up"}) {
    const HttpAnswer refused = call("aaa", path);
    EXPECT_EQ(refused.status, 403) << path;
    EXPECT_NE(refused.body.find("'ci' may not control"), std::string::npos) << refused.body;
  }
  for (const std::string path : {"/pause", "/resume", "/sleep?level=1", "/wake_up"})
    EXPECT_EQ(call("bbb", path).status, 200) << path;
}

// One key has all seats and a queue of endless requests; the other's is answered all the same, with
// its own bits.
TEST_F(SharedServer, SeatsOfTheEngineAreSharedByKey) {
  start("aaa name=ci\nbbb name=alice\n", {"--max-num-seqs", "2"});
  const json alone = call("bbb", "/v1/completions", kShort).json()["choices"];
  std::vector<Caller> hogs;
  for (int i = 0; i < 6; ++i)
    hogs.push_back(begin("aaa", kEndlessRequest));
  ASSERT_TRUE(within(
      60, [&] { return served_->metric("vllm:num_requests_running") == 2 && running("ci") == 6; }));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(call("bbb", "/v1/completions", kShort).json()["choices"], alone);
  EXPECT_EQ(running("ci"), 6) << "none of them is answered";
}

TEST_F(SharedServer, StreamsAreSharedByKey) {
  start("aaa name=ci\nbbb name=alice\n", {"--max-connections", "8"});
  std::vector<Caller> hogs;
  for (int i = 0; i < 4; ++i) {
    hogs.push_back(begin("aaa", kEndlessRequest));
    ASSERT_NE(hogs.back().read_until("data: ").find(" 200 "), std::string::npos);
  }
  const HttpAnswer refused = call("aaa", "/v1/completions", kShort);
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_NE(refused.body.find("its share"), std::string::npos) << refused.body;
  EXPECT_EQ(call("bbb", "/v1/completions", kShort).status, 200);
}

}  // namespace troupe::test
