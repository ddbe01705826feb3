// Real worker processes: the three signatures, and functions that raise, hang, lie or look around.
#include "actors/reward/python_reward.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace troupe::actors {
namespace {

class PythonReward : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/troupe_reward_XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  core::Result<std::unique_ptr<RewardSource>> make(const std::string& code,
                                                   std::uint64_t calls_max = 0) {
    const auto file = folder_ / "reward.py";
    std::ofstream(file) << code;
    return make_python_reward({.file = file, .calls_max = calls_max});
  }
  core::Result<std::vector<RewardScore>> run(RewardSource& source,
                                             core::Duration deadline = std::chrono::seconds(30)) {
    return source.score({{"2 + 2 =", " 4", "4", R"({"kind":"sum"})"},
                         {"2 + 3 =", " 4", "5", R"({"kind":"sum"})"}},
                        deadline);
  }

  std::filesystem::path folder_;
};

}  // namespace

TEST_F(PythonReward, OpenRlhfSignature) {
  auto source = make("def reward_func(queries, prompts, labels, **kw):\n"
                     "    assert queries[0] == '2 + 2 = 4'\n"
                     "    return [float(q.split()[-1] == l) for q, l in zip(queries, labels)]\n");
  ASSERT_TRUE(source) << source.error().message;
  auto scores = run(**source);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ((*scores)[1].value, 0.0);
}

TEST_F(PythonReward, SaysWhichColumnsTheFunctionReads) {
  const auto columns = [this](const std::string& line) {
    auto source = make(line + ": return []\n");
    EXPECT_TRUE(source) << source.error().message;
    return (*source)->columns().text();
  };
  EXPECT_EQ(columns("def reward_func(queries, prompts, labels, **kw)"), "none");
  EXPECT_EQ(columns("def f(prompts, completions, tests, level, **rest)"), "all");
  EXPECT_EQ(columns("def f(prompts, completions, tests, level)"), "level, tests");
  EXPECT_EQ(columns("def compute_score(data_source, solution_str, ground_truth, extra_info)"),
            "all");
}

TEST_F(PythonReward, OpenRlhfDictionaryOfRewards) {
  auto source = make("def reward_func(queries, prompts, labels):\n"
                     "    return {'rewards': [0.25, 0.5], 'scores': [1, 1], 'extra_logs': {}}\n");
  auto scores = run(**source);
  EXPECT_EQ((*scores)[1].value, 0.5);
}

TEST_F(PythonReward, TrlSignatureAndNoneIsMissing) {
  auto source = make("def by_kind(prompts, completions, kind, **columns):\n"
                     "    assert kind == ['sum', 'sum']\n"
                     "    print('to the terminal, not to the reply')\n"
                     "    return [None, float(len(completions[1]))]\n");
  auto scores = run(**source);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_EQ((*scores)[0].value, std::nullopt);
  EXPECT_EQ((*scores)[1].value, 2.0);
}

TEST_F(PythonReward, VerlSignature) {
  auto source = make("def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
                     "    return float(solution_str.strip() == ground_truth)\n");
  auto scores = run(**source);
  EXPECT_EQ((*scores)[0].value, 1.0);
  EXPECT_EQ((*scores)[1].value, 0.0);
}

TEST_F(PythonReward, NanIsMissingNotZero) {
  auto source = make("def reward_func(queries, prompts, labels):\n"
                     "    return [float('nan'), float('inf')]\n");
  auto scores = run(**source);
  EXPECT_EQ((*scores)[0].value, std::nullopt);
  EXPECT_EQ((*scores)[1].value, std::nullopt);
}

TEST_F(PythonReward, RaisingIsAnErrorWithTheTracebackAndTheNextCallWorks) {
  auto source = make("n = 0\n"
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
  auto source = make("import os, time\n"
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
  auto source = make("import os\n"
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
  auto source = make("import os\ndef reward_func(queries, prompts, labels):\n"
                     "    return [float(os.getpid())] * 2\n", 2);
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
  EXPECT_EQ(make_python_reward({.file = "/nonexistent/reward.py"}).error().code,
            core::ErrorCode::kConfig);
}

}  // namespace troupe::actors
