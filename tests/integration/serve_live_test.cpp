// `troupe serve --join`: a guest of a real run that serves each version of its policy as it comes,
// and without which the run would have had the same bits.
#include "serve_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

class ServeLive : public ::testing::Test {
 protected:
  static constexpr int kGate = 5, kLast = 30;  // updates

  std::vector<std::string> train(const std::string& run, int steps) {
    auto words = files_.words(run);
    words.insert(words.begin(), troupe_program());
    words.insert(words.end(),
                 {"--train.max_steps", std::to_string(steps), "--ckpt.save_steps", "0"});
    return words;
  }
  // A run of kLast updates that waits in update kGate, and again in its last one, until the test
  // opens the gate of that update.
  std::vector<std::string> gated(const std::string& run) {
    std::ofstream(files_ / (run + ".py"))
        << "import os, time\n"
           "calls = 0\n"
           "def gate(completions, **columns):\n"
           "    global calls\n"
           "    for update in ("
        << kGate << ", " << kLast
        << "):\n"
           "        if calls // 16 + 1 == update:\n"
           "            while not os.path.exists(__file__ + '.' + str(update)):\n"
           "                time.sleep(0.005)\n"
           "    calls += len(completions)\n"
           "    return [float(sum(x.isalpha() for x in c)) for c in completions]\n";
    auto words = train(run, kLast);
    words.insert(words.end(), {"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python",
                               (files_ / (run + ".py")).string(), "--reward.deadline_s", "600"});
    return words;
  }
  void open_gate(const std::string& run, int update) {
    std::ofstream(files_ / (run + ".py." + std::to_string(update))) << "open\n";
  }
  HttpAnswer ask() const {
    Caller caller(port_);
    caller.send(
        http_request("POST", "/v1/completions",
                     json{{"prompt", "1+1="}, {"max_tokens", 4}, {"temperature", 0}}.dump()));
    return caller.answer();
  }
  // The version that answered; -1 when none did.
  int version() const {
    const json answer = ask().json();
    if (!answer.is_object() || !answer.contains("system_fingerprint")) return -1;
    return std::atoi(answer["system_fingerprint"].get<std::string>().c_str() + 1);
  }

  TinyRun files_;
  std::uint16_t port_ = 0;
};

}  // namespace

TEST_F(ServeLive, ServesEachVersionOfARunAsItComes) {
  Background head(gated("run"), files_ / "head.txt");
  ASSERT_TRUE(within(60, [&] { return std::filesystem::exists(files_ / "run" / "company.json"); }))
      << head.text();
  Background serve({troupe_program(), "serve", "--model", files_.model(), "--join",
                    (files_ / "run").string(), "--port", "0", "--threads", "1"},
                   files_ / "serve.txt");
  ASSERT_TRUE(within(60, [&] { return serve.says("/v1\n") || !serve.running(); })) << serve.text();
  const std::string text = serve.text();
  const auto at = text.find("127.0.0.1:");
  ASSERT_NE(at, text.npos) << text;
  port_ = static_cast<std::uint16_t>(std::atoi(text.c_str() + at + 10));
  // The run cannot get past the gate before an earlier version was served, nor end before a later.
  int first = -1, later = -1;
  ASSERT_TRUE(within(60, [&] { return (first = version()) >= 0; })) << serve.text();
  EXPECT_LT(first, kGate);
  open_gate("run", kGate);
  ASSERT_TRUE(within(60, [&] { return (later = version()) >= kGate || !head.running(); }));
  EXPECT_GE(later, kGate) << serve.text() << head.text();
  EXPECT_LT(later, kLast);
  open_gate("run", kLast);
  // The run ends and so does its guest, on its own and cleanly.
  ASSERT_EQ(head.wait(120).value_or(-1), 0) << head.text();
  EXPECT_EQ(serve.wait(30).value_or(-1), 0) << serve.text();
  EXPECT_TRUE(serve.text().ends_with("the run ended\n")) << serve.text();
  EXPECT_FALSE(serve.says("trying again")) << serve.text();
  // It took no part.
  for (const int update : {kGate, kLast})
    open_gate("alone", update);
  Background alone(gated("alone"), files_ / "alone.txt");
  ASSERT_EQ(alone.wait(120).value_or(-1), 0) << alone.text();
  const auto with = metrics_of(files_ / "run"), without = metrics_of(files_ / "alone");
  ASSERT_EQ(with.size(), static_cast<std::size_t>(kLast));
  for (const auto& [step, row] : without) {
    ASSERT_TRUE(with.contains(step)) << step;
    EXPECT_EQ(with.at(step)["policy/loss"], row["policy/loss"]) << step;
  }
}

TEST_F(ServeLive, AGuestThatIsStoppedLeavesTheRunAlone) {
  Background head(train("run", 100000), files_ / "head.txt");
  ASSERT_TRUE(within(60, [&] { return std::filesystem::exists(files_ / "run" / "company.json"); }));
  Background serve({troupe_program(), "serve", "--model", files_.model(), "--join",
                    (files_ / "run").string(), "--port", "0", "--threads", "1"},
                   files_ / "serve.txt");
  ASSERT_TRUE(within(60, [&] { return serve.says("serving version") || !serve.running(); }));
  serve.signal(SIGINT);
  EXPECT_EQ(serve.wait(30).value_or(-1), 0) << serve.text();
  const auto updates = metrics_of(files_ / "run").size();
  EXPECT_TRUE(within(60, [&] { return metrics_of(files_ / "run").size() > updates + 3; }));
  EXPECT_TRUE(head.running());
  head.signal(SIGINT);
  head.wait(60);
}

TEST_F(ServeLive, NoRunNoServing) {
  const Ended ended = troupe_ends(
      {"serve", "--model", files_.model(), "--join", "127.0.0.1:1", "--token-file", "/nowhere"},
      files_ / "log.txt", 30);
  EXPECT_EQ(ended.status, 2) << ended.text;
}

}  // namespace troupe::test
