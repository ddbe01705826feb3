// Real worker processes: the three signatures, and functions that raise, hang, lie or look around.
#include "actors/reward/python_reward.hpp"

#include "actors/reward/blocking_reward.hpp"
#include "actors/reward/python_messages.hpp"
#include "actors/reward/worker_words.hpp"
#include "tests/unit/actors/reward/answered.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace troupe::actors::reward {
namespace {

class PythonReward : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe_reward_XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  core::Result<std::unique_ptr<RewardSource>> make(const std::string& code,
                                                   std::uint64_t calls_max = 1000) {
    const auto file = folder_ / "reward.py";
    std::ofstream(file) << code;
    TROUPE_TRY_ASSIGN(reward, make_python_reward({.python = file, .calls_max = calls_max}));
    return make_blocking_reward(std::move(reward));
  }
  core::Result<std::vector<RewardScore>> run(RewardSource& source,
                                             core::Duration deadline = std::chrono::seconds(30)) {
    return source.score({answered("2 + 2 =", " 4", "4", R"({"kind":"sum"})"),
                         answered("2 + 3 =", " 4", "5", R"({"kind":"sum"})")},
                        deadline);
  }

  std::filesystem::path folder_;
};

}  // namespace

TEST_F(PythonReward, OpenRlhfSignature) {
  auto source = make(
      "def reward_func(queries, prompts, labels, **kw):\n"
      "    assert queries[0] == '2 + 2 = 4'\n"
      "    return [float(q.split()[-1] == l) for q, l in zip(queries, labels)]\n");
  ASSERT_TRUE(source) << source.error().message;
  auto scores = run(**source);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ((*scores)[1].value, 0.0);
}

TEST_F(PythonReward, SaysWhatTheFunctionReads) {
  const auto columns = [this](const std::string& line) {
    auto source = make(line + ": return []\n");
    EXPECT_TRUE(source) << source.error().message;
    return (*source)->reads().text();
  };
  EXPECT_EQ(columns("def reward_func(queries, prompts, labels, **kw)"), "nothing");
  EXPECT_EQ(columns("def f(prompts, completions, tests, level, **rest)"),
            "all columns; messages; tokens");
  EXPECT_EQ(columns("async def f(prompts, completions, tests, level, log_metric)"),
            "columns level, tests; messages");
  EXPECT_EQ(columns("def compute_score(data_source, solution_str, ground_truth, extra_info)"),
            "all columns");
}

TEST_F(PythonReward, OpenRlhfDictionaryOfRewards) {
  auto source = make(
      "def reward_func(queries, prompts, labels):\n"
      "    return {'rewards': [0.25, 0.5], 'scores': [1, 1], 'extra_logs': {}}\n");
  auto scores = run(**source);
  EXPECT_EQ((*scores)[1].value, 0.5);
}

TEST_F(PythonReward, TrlSignatureAndNoneIsMissing) {
  auto source = make(
      "def by_kind(prompts, completions, kind, **columns):\n"
      "    assert kind == ['sum', 'sum']\n"
      "    print('to the terminal, not to the reply')\n"
      "    return [None, float(len(completions[1]))]\n");
  auto scores = run(**source);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, std::nullopt);
  EXPECT_EQ((*scores)[1].value, 2.0);
}

// TRL's GRPOTrainer: prompts and completions of a conversational dataset are message lists.
TEST_F(PythonReward, TrlGetsMessagesTokensAndTheStepOfAConversation) {
  auto source = make(
      "def f(prompts, completions, completion_ids, trainer_state, **columns):\n"
      "    assert 'prompt' not in columns and columns['kind'] == ['sum', 'sum']\n"
      "    assert [p[-1]['content'] for p in prompts] == ['2 + 2 =', '2 + 3 =']\n"
      "    assert [c[0]['role'] for c in completions] == ['assistant'] * 2\n"
      "    return [len(i) * 100 + int(c[0]['content']) + trainer_state.global_step / 10\n"
      "            for i, c in zip(completion_ids, completions)]\n");
  ASSERT_TRUE(source) << source.error().message;
  const auto item = [](const std::string& prompt, std::vector<std::int32_t> tokens) {
    RewardGroup group =
        answered("<user>" + prompt, " 4", "4", R"({"kind":"sum","prompt":["sampled"]})");
    group.messages = R"([{"role":"user","content":")" + prompt + R"("}])";
    group.samples[0].tokens = std::move(tokens);
    group.update = 5;
    return group;
  };
  auto scores =
      (*source)->score({item("2 + 2 =", {7, 8}), item("2 + 3 =", {9})}, std::chrono::seconds(30));
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 204.5);
  EXPECT_EQ((*scores)[1].value, 104.5);
}

TEST_F(PythonReward, WhatTheSamplesOfAGroupShareReachesEachOfThem) {
  auto source = make(
      "def f(prompts, completions, completion_ids, kind):\n"
      "    assert prompts == ['2 + 2 =', '2 + 2 =', '2 + 3 ='], prompts\n"
      "    assert kind == ['even', 'even', 'odd'] and completion_ids is None\n"
      "    return [float(c) for c in completions]\n");
  ASSERT_TRUE(source) << source.error().message;
  RewardGroup pair = answered("2 + 2 =", "4", "4", R"({"kind":"even"})");
  pair.samples.push_back({"5"});
  auto scores = (*source)->score({pair, answered("2 + 3 =", "6", "5", R"({"kind":"odd"})")},
                                 std::chrono::seconds(30));
  ASSERT_TRUE(scores) << scores.error().message;
  ASSERT_EQ(scores->size(), 3u);
  EXPECT_EQ((*scores)[0].value, 4.0);
  EXPECT_EQ((*scores)[1].value, 5.0);
  EXPECT_EQ((*scores)[2].value, 6.0);
}

TEST_F(PythonReward, AsyncFunctionsOfEachSignatureKeepOneLoop) {
  for (const char* code :
       {"import asyncio\nloops = set()\n"
        "async def reward_func(queries, prompts, labels):\n"
        "    await asyncio.sleep(0)\n    loops.add(asyncio.get_running_loop())\n"
        "    return [float(len(loops)), 2.0]\n",
        "import asyncio\nloops = set()\n"
        "async def f(completions, **rest):\n"
        "    loops.add(asyncio.get_running_loop())\n"
        "    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))\n"
        "    return [float(len(loops)), 2.0]\n",
        // The second sample's answer is what the first one waits for.
        "import asyncio\nasked = None\n"
        "async def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    global asked\n"
        "    if ground_truth == '4':\n"
        "        asked = asyncio.get_running_loop().create_future()\n"
        "        return {'score': await asked}\n"
        "    asked.set_result(1.0)\n    return 2.0\n"}) {
    auto source = make(code);
    ASSERT_TRUE(source) << source.error().message;
    for (int call = 0; call < 2; ++call) {
      auto scores = run(**source);
      ASSERT_TRUE(scores) << code << scores.error().message;
      EXPECT_EQ((*scores)[0].value, 1.0) << code;
      EXPECT_EQ((*scores)[1].value, 2.0) << code;
    }
  }
}

TEST_F(PythonReward, ExtraValuesOfEachSignature) {
  const auto extras = [this](const std::string& code) {
    auto source = make(code);
    EXPECT_TRUE(source) << source.error().message;
    auto scores = run(**source);
    EXPECT_TRUE(scores) << scores.error().message;
    return scores ? (*scores)[0].extra + " " + (*scores)[1].extra : std::string();
  };
  EXPECT_EQ(
      extras("def reward_func(queries, prompts, labels):\n"
             "    return {'rewards': [1, 2], 'extra_logs': {'a': [1, float('nan')], 'b': 3}}\n"),
      R"({"a":1,"b":3} {"b":3})");
  EXPECT_EQ(
      extras("def f(completions, log_extra, log_metric):\n"
             "    log_extra('tag', ['x', 'y'])\n    log_metric('m', 0.5)\n    return [1, 2]\n"),
      R"({"m":0.5,"tag":"x"} {"m":0.5,"tag":"y"})");
  EXPECT_EQ(extras("def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
                   "    return {'score': 1.0, 'acc': int(ground_truth), 'pred': 'no number'}\n"),
            R"({"acc":4} {"acc":5})");
}

TEST_F(PythonReward, ATracebackShowsTheUsersFramesAlone) {
  auto source = make(
      "def check(x):\n    raise ValueError('no such thing')\n"
      "def reward_func(queries, prompts, labels):\n    return check(1)\n");
  const auto scores = run(**source);
  ASSERT_FALSE(scores);
  const std::string& message = scores.error().message;
  EXPECT_NE(message.find("reward.py\", line 2, in check"), std::string::npos) << message;
  EXPECT_EQ(message.find("<string>"), std::string::npos) << message;
}

TEST_F(PythonReward, VerlSignature) {
  auto source = make(
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    return float(solution_str.strip() == ground_truth)\n");
  auto scores = run(**source);
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ((*scores)[1].value, 0.0);
}

TEST_F(PythonReward, NanIsMissingNotZero) {
  auto source = make(
      "def reward_func(queries, prompts, labels):\n"
      "    return [float('nan'), float('inf')]\n");
  auto scores = run(**source);
  EXPECT_EQ((*scores)[0].value, std::nullopt);
  EXPECT_EQ((*scores)[1].value, std::nullopt);
}

TEST_F(PythonReward, RaisingIsAnErrorWithTheTracebackAndTheNextCallWorks) {
  auto source = make(
      "n = 0\n"
      "def reward_func(queries, prompts, labels):\n"
      "    global n\n    n += 1\n"
      "    if n == 1: raise ValueError('no such thing')\n"
      "    return [1.0, 1.0]\n");
  auto first = run(**source);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, core::ErrorCode::kData);
  EXPECT_NE(first.error().message.find("no such thing"), std::string::npos);
  EXPECT_TRUE(run(**source));
}

TEST_F(PythonReward, WrongLengthIsAnError) {
  auto source = make("def reward_func(queries, prompts, labels):\n    return [1.0]\n");
  auto scores = run(**source);
  ASSERT_FALSE(scores);
  EXPECT_NE(scores.error().message.find("1 values for 2 samples"), std::string::npos);
}

TEST_F(PythonReward, HangingIsKilledAndTheWorkerReplaced) {
  auto source = make(
      "import os, time\n"
      "flag = os.path.join(os.path.dirname(__file__), 'seen')\n"
      "def reward_func(queries, prompts, labels):\n"
      "    if not os.path.exists(flag):\n"
      "        open(flag, 'w').close()\n"
      "        while True: time.sleep(1)\n"
      "    return [1.0, 1.0]\n");
  auto first = run(**source, std::chrono::milliseconds(2000));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, core::ErrorCode::kDeadline);
  EXPECT_TRUE(run(**source));
}

TEST_F(PythonReward, ExitingInsideTheFunctionIsNamed) {
  auto source = make("import os\ndef reward_func(queries, prompts, labels):\n    os._exit(9)\n");
  auto scores = run(**source);
  ASSERT_FALSE(scores);
  EXPECT_EQ(scores.error().code, core::ErrorCode::kClosed);
  EXPECT_NE(scores.error().message.find("status 9"), std::string::npos);
}

TEST_F(PythonReward, SeesNoSecretsAndNoDescriptors) {
  ::setenv("TROUPE_TEST_TOKEN", "hush", 1);
  auto source = make(
      "import os\n"
      "def reward_func(queries, prompts, labels):\n"
      "    fds = [f for f in os.listdir('/proc/self/fd') if int(f) > 3]\n"
      "    return [float('TROUPE_TEST_TOKEN' in os.environ), float(len(fds))]\n");
  auto scores = run(**source);
  ::unsetenv("TROUPE_TEST_TOKEN");
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 0.0);
  EXPECT_LE((*scores)[1].value.value(), 1.0);  // listdir itself holds one
}

// Nothing is said of the samples while the file is being edited.
TEST_F(PythonReward, AFileThatDoesNotLoadAnyMoreIsAwayUntilItDoes) {
  const std::string good = "def reward_func(queries, prompts, labels):\n    return [1.0, 1.0]\n";
  auto source = make(good, 1);
  ASSERT_TRUE(run(**source));
  const auto file = folder_ / "reward.py";
  std::ofstream(file) << "def reward_func(queries, prom";
  const auto away = run(**source);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(away.error().message.find("does not load"), std::string::npos);
  std::ofstream(file) << good;
  EXPECT_TRUE(run(**source));
}

TEST_F(PythonReward, IsRecycledAfterItsCalls) {
  auto source = make(
      "import os\ndef reward_func(queries, prompts, labels):\n"
      "    return [float(os.getpid())] * 2\n",
      2);
  const auto a = (*run(**source))[0].value, b = (*run(**source))[0].value;
  const auto c = (*run(**source))[0].value;
  EXPECT_EQ(a, b);
  EXPECT_NE(b, c);
}

TEST_F(PythonReward, FilesThatDoNotLoadAreConfigErrors) {
  EXPECT_EQ(make("def (:\n").error().code, core::ErrorCode::kConfig);
  auto none = make("x = 1\n");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("reward_func"), std::string::npos);
  EXPECT_EQ(make_python_reward({"/nonexistent/reward.py"}).error().code, core::ErrorCode::kConfig);
}

TEST(RefusedStart, AFileThatTakesTooLongIsToldWithTheLimit) {
  const core::Error late{core::ErrorCode::kDeadline, "the reward worker did not answer in time"};
  const core::Error told = refused_start(late, "reward function f.py", "python3", kInterpreterKey);
  EXPECT_EQ(told.code, core::ErrorCode::kConfig);
  EXPECT_EQ(told.message,
            "reward function f.py: has not loaded within 60 s, which is the limit; load what takes "
            "long when it is first called, not when the file is imported");
}

}  // namespace troupe::actors::reward
