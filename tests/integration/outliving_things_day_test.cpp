// What is left of a run, when another one is there: sessions, ranks of other hosts, relays, folders
// of agents, and processes of the head's own host. As outliving_things_test.cpp.
#include "runtime/core/at_exit.hpp"
#include "tests/integration/leftovers.hpp"
#include "tests/integration/outliving_support.hpp"
#include "tests/integration/serve_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

const std::string kOpeningKey(32, 'k');

HttpAnswer posted(std::uint16_t port,
                  const std::string& path,
                  const std::string& key,
                  const json& body) {
  Caller caller(port);
  caller.send(http_request("POST", path, body.dump(), "Authorization: Bearer " + key + "\r\n"));
  return caller.answer();
}

class OutlivingThingsDay : public Outliving {
 protected:
  OutlivingThingsDay() {
    std::ofstream(files_ / "key") << kOpeningKey << "\n";
    ::chmod((files_ / "key").c_str(), 0600);
  }
  Words sessions_at(const std::string& address) const {
    return {"--env.listen",
            address,
            "--env.listen_key",
            "file:" + (files_ / "key").string(),
            "--rollout.batch_size",
            "2",
            "--rollout.n_samples_per_prompt",
            "2"};
  }
  std::string environment_log(const std::string& run) {
    return text_of(files_ / run / "nodes/environment.log");
  }
  // Where its episodes wait for sessions, once they do; 0: they do not.
  std::uint16_t port_of(const std::string& run) {
    static const std::string kBefore = "POST http://127.0.0.1:";
    std::string log;
    within(60, [&] { return (log = environment_log(run)).find(kBefore) != log.npos; });
    const auto at = log.find(kBefore);
    return at == log.npos
               ? std::uint16_t{0}
               : static_cast<std::uint16_t>(std::atoi(log.c_str() + at + kBefore.size()));
  }
  // One session, once an episode waits.
  json opened_at(std::uint16_t port) {
    HttpAnswer answer;
    within(60, [&] {
      return (answer = posted(port, "/sessions", kOpeningKey, json::object())).status == 200;
    });
    EXPECT_EQ(answer.status, 200) << answer.head << answer.body;
    return answer.json();
  }
  static HttpAnswer says(std::uint16_t port,
                         const json& session,
                         const std::string& what,
                         const json& body) {
    return posted(port, "/sessions/" + session.value("id", "?") + what,
                  session.value("api_key", "?"), body);
  }
  static json question(const std::string& text) { return {{"prompt", text}, {"max_tokens", 3}}; }
};

}  // namespace

// The first run's environment has the port for as long as it waits for its head.
TEST_F(OutlivingThingsDay, ASessionOfADeadRunIsNoneOfTheNext) {
  Background a = run("a", sessions_at("127.0.0.1:0") + endless());
  const std::uint16_t port = port_of("a");
  ASSERT_NE(port, 0) << a.text();
  const json old = opened_at(port);
  EXPECT_EQ(says(port, old, "/v1/completions", question("old")).status, 200);
  const std::set<pid_t> holders = started_for(files_ / "a", "environment");
  ASSERT_FALSE(holders.empty());
  const core::AtExit ended([&] { signal_all(started_for(files_ / "a", "environment"), SIGKILL); });
  a.kill();
  signal_all(holders, SIGSTOP);
  Background b =
      run("b", sessions_at("127.0.0.1:" + std::to_string(port)) + Words{"--train.max_steps", "1"});
  const auto waits = [&] {
    return environment_log("b").find("; episodes wait until it is free") != std::string::npos;
  };
  ASSERT_TRUE(within(60, waits)) << b.text() << environment_log("b");
  signal_all(holders, SIGKILL);
  ASSERT_EQ(port_of("b"), port) << b.text() << environment_log("b");
  for (const auto& [what, body] : {std::pair<std::string, json>{"/v1/completions", question("old")},
                                   {"/reward", {{"reward", 100}}},
                                   {"/end", json::object()}}) {
    const HttpAnswer refused = says(port, old, what, body);
    EXPECT_EQ(refused.status, 404) << refused.head << refused.body;
    EXPECT_NE(refused.body.find("there is no session '" + old.value("id", "?") + "' here"),
              std::string::npos)
        << refused.body;
  }
  for (int i = 0; i < 4; ++i) {
    const json session = opened_at(port);
    EXPECT_EQ(says(port, session, "/v1/completions", question("new")).status, 200);
    EXPECT_EQ(says(port, session, "/reward", {{"reward", i}}).status, 200);
    EXPECT_EQ(says(port, session, "/end", json::object()).status, 200);
  }
  ASSERT_EQ(b.wait(60).value_or(-1), 0) << b.text() << environment_log("b");
  std::multiset<double> rewards;
  std::istringstream lines(text_of(files_ / "b/rollouts/step_000001.jsonl"));
  for (std::string line; std::getline(lines, line);)
    rewards.insert(json::parse(line)["rewards"].value("feedback", -1.0));
  EXPECT_EQ(rewards, (std::multiset<double>{0, 1, 2, 3})) << "those of its own sessions";
}

TEST_F(OutlivingThingsDay, ASessionOfAServerThatLearnedEndsWithIt) {
  Background a = run("a", Words{"--env.attached", "true"} + endless());
  Background served = server({"--learn", "--api-key-file", (files_ / "key").string()});
  ASSERT_TRUE(within(60, [&] { return served.says("/v1\n") && served.says("serving version"); }))
      << a.text() << served.text();
  const std::string said = served.text();
  const auto at = said.find("127.0.0.1:", said.find("http://"));
  const auto port = static_cast<std::uint16_t>(std::atoi(said.c_str() + at + 10));
  json old;
  ASSERT_TRUE(within(60, [&] { return (old = opened_at(port)).contains("task"); }))
      << served.text();
  EXPECT_EQ(says(port, old, "/v1/completions", question("old")).status, 200) << served.text();
  a.kill();
  Background b = run("b", {"--train.max_steps", "3"});
  expect_refused(served, "serve-");
  EXPECT_EQ(says(port, old, "/reward", {{"reward", 100}}).status, 0) << "nobody is there";
  ASSERT_EQ(b.wait(60).value_or(-1), 0) << b.text();
  Background calm = head("calm", {"--train.max_steps", "3"});
  ASSERT_EQ(calm.wait(60).value_or(-1), 0) << calm.text();
  expect_same_bits("b", "calm");
}

// Whose folder was set aside can be taken over by nobody.
TEST_F(OutlivingThingsDay, ARunThatBeginsAnewInTheFolderHasNoneOfItsProcesses) {
  const Words waits = {"--cluster.head_wait_s", "3000"};
  Background a = run("a", endless() + waits);
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << a.text();
  const std::set<pid_t> old = started_for(files_ / "a");
  ASSERT_FALSE(old.empty());
  a.kill();
  EXPECT_EQ(started_for(files_ / "a"), old) << "they wait for the next head";
  const core::AtExit ended([&] { signal_all(started_for(files_ / "a"), SIGKILL); });
  Background b = run("a", Words{"--resume", "off", "--train.max_steps", "3"} + waits);
  ASSERT_EQ(b.wait(60).value_or(-1), 0) << b.text();
  EXPECT_TRUE(within(20, [&] { return started_for(files_ / "a").empty(); }));
  EXPECT_TRUE(b.says("the run that was in ")) << b.text();
  Background calm = head("calm", {"--train.max_steps", "3"});
  ASSERT_EQ(calm.wait(60).value_or(-1), 0) << calm.text();
  expect_same_bits("a", "calm");
}

TEST_F(OutlivingThingsDay, AFarRankServesTheNextRun) {
  const Words gang = {"--actor.ranks", "2", "--cluster.local_ranks", "1"};
  Background a = run("a", gang + endless());
  Background lent = start(joining({"node"}, {"--roles", "policy", "--name", "n"}), "node");
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << a.text() << lent.text();
  a.kill();
  Background b = run("b", gang + Words{"--train.max_steps", "3"});
  EXPECT_EQ(b.wait(90).value_or(-1), 0) << b.text() << lent.text();
  expect_end(lent, 0, {"started policy/1"});
  EXPECT_FALSE(log_says("b", "policy/1 is lost")) << b.text();
  const Ended calm =
      ends(files_.words("calm") + Words{"--cluster.transport", "loopback", "--train.lanes", "2",
                                        "--train.max_steps", "3"},
           60);
  ASSERT_EQ(calm.status, 0) << calm.text;
  expect_same_bits("b", "calm");
  expect_clean_ledger("b");
}

TEST_F(OutlivingThingsDay, NobodyIsWaitedForForEverByAFarRank) {
  Background a = run("a", Words{"--actor.ranks", "2", "--cluster.local_ranks", "1"} + endless());
  Background lent =
      start(joining({"node"}, {"--roles", "policy", "--name", "n", "--wait-s", "1"}), "node");
  ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << a.text() << lent.text();
  a.kill();
  expect_given_up(lent, "node/n");
}

// A node on another host that passes weights on, and one beside it that gets them there.
TEST_F(OutlivingThingsDay, ARelayBeginsAnewForTheNextRun) {
  const TwoHosts hosts;
  if (!hosts.why_not().empty()) GTEST_SKIP() << hosts.why_not();
  const std::string gate = TwoHosts::address_b() + ":7712";
  const Words far = {"--cluster.listen",      TwoHosts::address_a() + ":7711",
                     "--cluster.token_file",  token_,
                     "--cluster.head_wait_s", "1",
                     "--rollout.generators",  "0"};
  const auto joined = [&](const std::string& name, const Words& more) {
    return start(Words{"node", "--join", TwoHosts::address_a() + ":7711", "--token-file", token_,
                       "--roles", "generator", "--name", name} +
                     more,
                 name, hosts.b());
  };
  Background a = head("a", far + endless(), hosts.a());
  ASSERT_FALSE(company_of("a").empty()) << a.text();
  Background relay = joined("relay", {"--relay", gate}), child = joined("child", {});
  // The gate, and behind it the server of what came for A.
  ASSERT_TRUE(within(60,
                     [&] {
                       return updates_of("a") > 1 && ports_of(relay.pid()).size() > 1 &&
                              log_says("a", "generator/1 is up");
                     }))
      << a.text() << relay.text() << child.text();
  const std::set<std::uint16_t> before = ports_of(relay.pid());
  EXPECT_TRUE(before.contains(7712));
  a.kill();
  const Words ends = {"--train.max_steps", "150"};
  Background b = head("b", far + ends, hosts.a());
  ASSERT_TRUE(within(60, [&] { return updates_of("b") > 1 && log_says("b", "generator/1 is up"); }))
      << b.text() << relay.text() << child.text();
  const std::set<std::uint16_t> after = ports_of(relay.pid());
  EXPECT_TRUE(after.contains(7712)) << relay.text();
  EXPECT_GT(after.size(), 1u) << "it passes on for B";
  for (const std::uint16_t port : before)
    EXPECT_TRUE(port == 7712 || !after.contains(port)) << "the server of A's weights: " << port;
  EXPECT_EQ(b.wait(90).value_or(-1), 0) << b.text();
  EXPECT_EQ(relay.wait(15).value_or(-1), 0) << relay.text();
  EXPECT_EQ(child.wait(15).value_or(-1), 0) << child.text();
  expect_clean_ledger("b");
  Background calm = head("calm", ends);
  ASSERT_EQ(calm.wait(90).value_or(-1), 0) << calm.text();
  expect_same_bits("b", "calm");
}

// Who was killed cannot remove its own folder; the next worker does, and leaves those of the living
// alone.
TEST_F(OutlivingThingsDay, AnAgentsFolderIsRemovedByTheNextWorkerAndNotBefore) {
  const OwnTemporaries temporaries;
  std::ofstream(files_ / "agent.py")
      << "import json, os, sys, time, urllib.request\n"
         "open(os.environ['TMPDIR'] + '/mine', 'w').close()\n"
         "time.sleep(1000 if len(sys.argv) > 1 else 0)\n"
         "def post(path, body):\n"
         "    url = os.environ['OPENAI_BASE_URL'].removesuffix('/v1')\n"
         "    request = urllib.request.Request(url + path, json.dumps(body).encode(), {\n"
         "        'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']})\n"
         "    return json.load(urllib.request.urlopen(request))\n"
         "post('/v1/completions', {'model': 'policy', 'prompt': 'a', 'max_tokens': 3})\n"
         "post('/reward', {'reward': 1})\n";
  const auto agent = [&](const std::string& more) {
    return Words{"--env.command",
                 "python3 " + core::shell_word((files_ / "agent.py").string()) + more,
                 "--env.confined",
                 "false",
                 "--rollout.batch_size",
                 "2",
                 "--rollout.n_samples_per_prompt",
                 "2"};
  };
  const auto folders = [&] { return temporaries.folders("troupe-agent-"); };
  Background a = run("a", agent(" sleeps") + endless());
  ASSERT_TRUE(within(60, [&] {
    const auto made = folders();
    return made.size() == 1 && std::distance(std::filesystem::directory_iterator(*made.begin()),
                                             std::filesystem::directory_iterator()) == 4;
  })) << a.text();
  const std::set<std::string> old = folders();
  EXPECT_TRUE(is_locked(*old.begin()));
  Background beside = head("beside", agent("") + Words{"--train.max_steps", "1"});
  EXPECT_EQ(beside.wait(60).value_or(-1), 0) << beside.text();
  EXPECT_EQ(folders(), old) << "its worker lives, and the other one has removed its own";
  // With all that it has started: nobody is left who could remove it.
  const std::set<pid_t> children = started_for(files_ / "a");
  a.kill();
  signal_all(children, SIGKILL);
  ASSERT_TRUE(within(20, [&] { return !is_locked(*old.begin()); }));
  EXPECT_EQ(folders(), old);
  Background b = run("b", agent("") + Words{"--train.max_steps", "1"});
  EXPECT_EQ(b.wait(60).value_or(-1), 0) << b.text();
  EXPECT_TRUE(folders().empty());
}

}  // namespace troupe::test
