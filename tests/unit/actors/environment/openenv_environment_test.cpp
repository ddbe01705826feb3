// OpenEnv's WebSocket: what goes out and how answers are read, with servers that hang, die, lie,
// are full or answer too much; and a real server of the `openenv` package, from the environment
// `agents`, which is made at first need.
#include "actors/environment/openenv_environment.hpp"

#include "actors/environment/openenv_messages.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/core/owned_fd.hpp"
#include "tests/unit/actors/environment/environment_stage.hpp"
#include "tests/unit/runtime/net/websocket_peer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <future>
#include <optional>

namespace troupe::actors::environment {
namespace {

using net::WebSocketPeer;
using nlohmann::json;
using Session = WebSocketPeer::Session;

constexpr const char* kSchema =
    R"({"action":{"title":"EchoAction","description":"Says something.","type":"object","additionalProperties":false,
"properties":{"metadata":{"type":"object"},"message":{"type":"string"}},"required":["message"]},"observation":{}})";

std::string observed(const json& observation, json reward, json done) {
  const json data = {{"observation", observation}, {"reward", reward}, {"done", done}};
  return json{{"type", "observation"}, {"data", data}}.dump();
}
std::string failure_of(const std::string& code) {
  return json{{"type", "error"}, {"data", {{"code", code}, {"message", "because"}}}}.dump();
}

class OpenEnvTest : public testing::Test {
 protected:
  EnvironmentStage& stage(const std::string& url,
                          const std::string& action = R"({"message":"$text"})") {
    OpenEnvOptions options;
    options.openenv = url;
    options.action = action;
    auto made = make_openenv_environment(options);
    EXPECT_TRUE(made) << made.error().message;
    stage_.emplace(std::move(*made));
    return *stage_;
  }
  // The error of a step that the server answers with that text.
  core::Error error_of(const std::string& answer, core::Duration time = kAmpleTime) {
    WebSocketPeer peer([&](Session& session, int) {
      session.read();
      session.send(observed({{"text", "hi"}}, nullptr, false));
      session.read();
      if (answer == "die") return session.drop();
      if (answer != "hang") session.send(answer);
      session.wait_for_end();
    });
    auto& calls = stage(peer.url());
    auto opened = calls.open();
    EXPECT_TRUE(opened) << opened.error().message;
    const auto turn = opened ? calls.step(*opened, "x", time) : EnvironmentTurn();
    const core::Error error = turn ? core::Error{} : turn.error();
    EXPECT_FALSE(turn) << answer.substr(0, 100);
    const auto again = calls.step(*opened, "x");
    EXPECT_FALSE(again) << "the episode is over";
    stage_.reset();
    return error;
  }
  std::optional<EnvironmentStage> stage_;
};

std::string action_call(const std::string& arguments, const std::string& name = "act") {
  const json function = {{"name", name}, {"arguments", arguments}};
  return json{{"role", "assistant"}, {"tool_calls", {{{"id", "c1"}, {"function", function}}}}}
      .dump();
}

}  // namespace

TEST_F(OpenEnvTest, TurnsBecomeActionsByTheTemplate) {
  std::vector<std::string> heard;
  std::promise<void> left;
  const EpisodeStart start{"play", "", "L", R"({"level":2})", 5};
  {
    WebSocketPeer peer([&](Session& session, int) {
      heard.push_back(session.read());
      session.send(observed({{"text", "welcome"}, {"metadata", {{"a", 1}}}}, nullptr, false));
      heard.push_back(session.read());
      session.send(observed({{"text", "one"}}, 0.5, false));
      heard.push_back(session.read());
      session.send(observed({{"text", "two"}, {"n", 2}}, true, true));
      heard.push_back(session.read());
      left.set_value();
      session.wait_for_end();
    });
    auto& calls =
        stage(peer.url() + "/", R"({"message":"$text","deep":[{"as":"$text"}],"k":"text"})");
    auto opened = calls.open(start);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(json::parse(opened->opening.messages),
              json::parse(R"([{"role":"user","content":"play\n\nwelcome"}])"));
    EXPECT_EQ(opened->opening.tools, "");
    auto turn = calls.step(*opened, "first \"one\"");
    ASSERT_TRUE(turn) << turn.error().message;
    EXPECT_EQ(json::parse(turn->messages), json::parse(R"([{"role":"user","content":"one"}])"));
    EXPECT_EQ(turn->reward, 0.5);
    EXPECT_EQ(turn->score, 0.5);
    EXPECT_FALSE(turn->done);
    turn = calls.step(*opened, "second");
    ASSERT_TRUE(turn) << turn.error().message;
    EXPECT_EQ(json::parse(turn->messages)[0]["content"], R"({"n":2,"text":"two"})");
    EXPECT_EQ(turn->reward, 1.0);
    EXPECT_EQ(turn->score, 1.5);
    EXPECT_TRUE(turn->done);
    EXPECT_FALSE(calls.step(*opened, "third")) << "it is done";
    EXPECT_EQ(calls.amount("episodes"), 1);
    left.get_future().wait();
    stage_.reset();
  }
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_EQ(json::parse(heard[0]), json::parse(R"({"type":"reset","data":{"seed":5}})"));
  EXPECT_EQ(json::parse(heard[1]), json::parse(R"({"type":"step","data":{"message":"first \"one\"",
                            "deep":[{"as":"first \"one\""}],"k":"text"}})"));
  EXPECT_EQ(heard[3], R"({"type":"close"})");
}

TEST_F(OpenEnvTest, CallsOfTheToolBecomeActionsAndMistakesAreTold) {
  WebSocketPeer peer(
      [](Session& session, int) {
        session.read();
        session.send(observed({{"text", "go"}}, nullptr, false));
        for (;;) {
          const json asked = json::parse(session.read());
          if (asked["type"] == "close") return session.wait_for_end();
          const std::string said = asked["data"].value("message", "");
          if (said.empty()) {
            session.send(failure_of("VALIDATION_ERROR"));
          } else {
            session.send(observed({{"text", "heard " + said}}, 1, said == "bye"));
          }
        }
      },
      kSchema);
  auto& calls = stage(peer.url(), "");
  auto opened = calls.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(json::parse(opened->opening.tools), json::parse(R"([{"type":"function","function":{
    "name":"act","description":"Says something.","parameters":{"type":"object","additionalProperties":false,
    "properties":{"message":{"type":"string"}},"required":["message"]}}}])"));
  auto turn = calls.step(*opened, action_call(R"({"message":"hello"})"));
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(
      json::parse(turn->messages),
      json::parse(R"([{"role":"tool","name":"act","content":"heard hello","tool_call_id":"c1"}])"));
  EXPECT_EQ(turn->score, 1.0);
  for (const auto& [call, part] :
       {std::pair{action_call("{}"), "VALIDATION_ERROR: because"},
        std::pair{action_call("not JSON"), "the arguments of `act` must be a JSON object"},
        std::pair{action_call("{}", "walk"), "there is no tool `walk`"}}) {
    turn = calls.step(*opened, call);
    ASSERT_TRUE(turn) << turn.error().message;
    EXPECT_NE(turn->messages.find(part), std::string::npos) << turn->messages;
    EXPECT_FALSE(turn->done);
    EXPECT_EQ(turn->reward, std::nullopt);
  }
  auto other = calls.open();
  turn = calls.step(*opened, action_call(R"({"message":"bye"})"));
  EXPECT_TRUE(turn->done);
  EXPECT_EQ(turn->score, 2.0);
  turn = calls.step(*other, "I say it without a call");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_TRUE(turn->done);
  EXPECT_EQ(turn->score, std::nullopt);
}

TEST_F(OpenEnvTest, WhatAServerDoesWrongCostsTheEpisodeByName) {
  const auto expect = [&](const std::string& answer, core::ErrorCode code,
                          const std::string& part) {
    const core::Error error = error_of(answer);
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("OpenEnv server http://127.0.0.1:"), 0u) << error.message;
  };
  using core::ErrorCode;
  expect("die", ErrorCode::kClosed, "cannot read");
  expect("{not json", ErrorCode::kData, "is not valid JSON");
  expect("{}", ErrorCode::kData, "its type is ``");
  expect(std::string(10'000'000, 'x'), ErrorCode::kData, "has more than 1048576 bytes");
  expect(std::string(100000, '['), ErrorCode::kData, "nested deeper");
  expect(R"({"type":"observation","data":[1]})", ErrorCode::kData, "no object `observation`");
  expect(observed(json::object(), 1, "yes"), ErrorCode::kData, "`done` is neither");
  expect(observed(json::object(), 1, nullptr), ErrorCode::kData, "`done` is neither");
  expect(observed(json::object(), "much", true), ErrorCode::kData, "`reward` is not a finite");
  expect(failure_of("EXECUTION_ERROR"), ErrorCode::kData, "EXECUTION_ERROR: because");
  expect(failure_of("VALIDATION_ERROR"), ErrorCode::kData, "env.openenv_action");
  const core::Error late = error_of("hang", std::chrono::milliseconds(100));
  EXPECT_EQ(late.code, ErrorCode::kDeadline) << late.message;
}

TEST_F(OpenEnvTest, AnEpisodeThatIsDoneAtItsStartIsRefused) {
  WebSocketPeer peer([](Session& session, int) {
    session.read();
    session.send(observed({{"text", "over"}}, 1, true));
    session.wait_for_end();
  });
  const auto opened = stage(peer.url()).open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::ErrorCode::kData);
  EXPECT_NE(opened.error().message.find("done before its first turn"), std::string::npos);
  stage_.reset();
}

TEST_F(OpenEnvTest, AFullServerIsWaitedFor) {
  std::atomic<int> inside = 0;
  WebSocketPeer peer([&](Session& session, int) {
    if (++inside > 2) {
      --inside;
      session.send(failure_of("CAPACITY_REACHED"));
      return session.close("");
    }
    session.read();
    session.send(observed({{"text", "hi"}}, nullptr, false));
    session.read();
    --inside;
    session.send(observed({{"text", "bye"}}, 1, true));
    session.wait_for_end();
  });
  auto& calls = stage(peer.url());
  auto first = calls.open(), second = calls.open();
  ASSERT_TRUE(first && second);
  const auto refused = calls.open({}, std::chrono::milliseconds(300));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kOverloaded) << refused.error().message;
  EXPECT_NE(refused.error().message.find("CAPACITY_REACHED: because"), std::string::npos);
  EXPECT_GE(calls.amount("waits"), 1);
  EXPECT_TRUE(calls.step(*first, "x"));
  EXPECT_TRUE(calls.open());
  stage_.reset();
}

TEST_F(OpenEnvTest, AServerThatIsAwayIsTriedAgain) {
  WebSocketPeer peer([&](Session& session, int number) {
    session.read();
    if (number < 3) return session.drop();
    session.send(observed({{"text", "back"}}, nullptr, false));
    session.wait_for_end();
  });
  auto& calls = stage(peer.url());
  EXPECT_TRUE(calls.open());
  EXPECT_EQ(peer.connections(), 4);
  EXPECT_EQ(calls.amount("waits"), 3);
  const auto nobody = stage("http://127.0.0.1:1").open({}, std::chrono::milliseconds(50));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, core::ErrorCode::kPeerLost) << nobody.error().message;
  stage_.reset();
}

TEST_F(OpenEnvTest, TemplatesAndUrlsAreCheckedAtTheStart) {
  const auto refusal = [](const OpenEnvOptions& options) {
    const auto made = make_openenv_environment(options);
    EXPECT_FALSE(made);
    return made ? "" : made.error().message;
  };
  OpenEnvOptions options;
  options.openenv = "localhost:8000";
  EXPECT_NE(refusal(options).find("neither http:// nor https://"), std::string::npos);
  options.openenv = "http://localhost:8000";
  options.action = "$text";
  EXPECT_NE(refusal(options).find("env.openenv_action is not valid JSON"), std::string::npos);
  options.action = "[\"$text\"]";
  EXPECT_NE(refusal(options).find("must be a JSON object"), std::string::npos);
  options.action = R"({"a":[{"b":"$txet"}]})";
  EXPECT_EQ(refusal(options), "env.openenv_action: $txet is not known; it may hold $text");
  options.action = "";
  options.reset = R"({"a":"$text"})";
  EXPECT_NE(refusal(options).find("$seed, $prompt, $label, $row"), std::string::npos);
}

// ---- a real server

class RealOpenEnv : public OpenEnvTest {
 protected:
  void SetUp() override {
    const char* const set = std::getenv("TROUPE_SOURCE_DIR");
    const std::string root = set == nullptr ? "." : set;
    const char* const given = std::getenv("TROUPE_AGENTS_PYTHON");
    python_ = given != nullptr ? given : root + "/.venv/agents/bin/python";
    if (given == nullptr) {
      core::ChildSpec made;
      made.words = {root + "/dev", "environment", "agents"};
      auto maker = core::ChildProcess::start("./dev environment agents", std::move(made));
      ASSERT_TRUE(maker);
      ASSERT_EQ(core::how_it_ended(maker->wait()), core::how_it_ended(0))
          << "the environment `agents` cannot be made";
    }
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const core::OwnedFd read(ends[0]);
    core::OwnedFd write(ends[1]);
    core::ChildSpec spec;
    spec.words = {python_, root + "/docs/examples/openenv_server.py", "0"};
    spec.descriptors = {{write.get(), 1}};
    auto server = core::ChildProcess::start("an OpenEnv server", std::move(spec));
    ASSERT_TRUE(server);
    server_ = std::move(*server);
    write.close();

    std::string line;
    for (char c = 0; ::read(read.get(), &c, 1) == 1 && c != '\n';)
      line += c;
    ASSERT_NE(line, "") << "the server did not start";
    url_ = "http://127.0.0.1:" + line;
  }
  void TearDown() override { stage_.reset(); }
  std::string python_, url_;
  core::ChildProcess server_;
};

TEST_F(RealOpenEnv, EpisodesByTemplateByToolAndBeyondItsCapacity) {
  auto& calls = stage(url_);
  EpisodeStart start;
  start.seed = 7;
  auto opened = calls.open(start), second = calls.open(start);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(json::parse(opened->opening.messages)[0]["content"], "ready 7");
  const auto full = calls.open(start, std::chrono::milliseconds(500));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, core::ErrorCode::kOverloaded) << full.error().message;
  auto turn = calls.step(*opened, "hello");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(json::parse(turn->messages)[0]["content"], "hello");
  EXPECT_EQ(turn->reward, 0.5);
  EXPECT_FALSE(turn->done);
  turn = calls.step(*opened, "again");
  turn = calls.step(*opened, "abc");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_TRUE(turn->done);
  EXPECT_DOUBLE_EQ(*turn->score, 1.3);
  const auto raised = calls.step(*second, "raise");
  ASSERT_FALSE(raised);
  EXPECT_NE(raised.error().message.find("EXECUTION_ERROR: told to"), std::string::npos)
      << raised.error().message;

  auto& tools = stage(url_, "");
  auto third = tools.open(start);
  ASSERT_TRUE(third) << third.error().message;
  const json tool = json::parse(third->opening.tools)[0]["function"];
  EXPECT_EQ(tool["name"], "act");
  EXPECT_EQ(tool["parameters"]["properties"]["message"]["description"], "what to say");
  EXPECT_FALSE(tool["parameters"]["properties"].contains("metadata"));
  turn = tools.step(*third, action_call(R"({"message":"by the tool"})"));
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(json::parse(turn->messages)[0]["content"], "by the tool");
  turn = tools.step(*third, action_call(R"({"massage":"wrong"})"));
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_NE(turn->messages.find("VALIDATION_ERROR"), std::string::npos) << turn->messages;
}

}  // namespace troupe::actors::environment
