// Several workers, and async functions: batches that are scored together, workers that are killed
// or hang while they have many. Real processes and real SIGKILLs.
#include "actors/reward/python_reward.hpp"
#include "runtime/store/sha256.hpp"
#include "tests/unit/actors/reward/answered.hpp"
#include "tests/unit/actors/reward/calls_stage.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace troupe::actors::reward {
namespace {

using std::chrono_literals::operator""ms;
constexpr core::Duration kAmple = std::chrono::minutes(5);

// What the functions below share: a folder for their notes.
constexpr const char* kHead = R"(
import asyncio, os, signal, time
here = os.path.dirname(os.path.abspath(__file__))
def note(name):
    with open(os.path.join(here, name), 'a') as file: file.write(f'{os.getpid()}\n')
def seen(name):
    return os.path.exists(os.path.join(here, name))
def die():
    os.kill(os.getpid(), signal.SIGKILL)
)";

class PythonPool : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "python_pool_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    stage_.reset();
    std::filesystem::remove_all(folder_);
  }

  CallsStage& stage(const std::string& code, std::size_t workers = 1, std::uint64_t calls = 1000) {
    std::ofstream(folder_ / "reward.py") << kHead << code;
    auto reward = make_python_reward(
        {.python = folder_ / "reward.py", .workers = workers, .calls_max = calls});
    EXPECT_TRUE(reward) << reward.error().message;
    stage_ = std::make_unique<CallsStage>(std::move(*reward));
    return *stage_;
  }

  // The lines of a note: one a call that got so far.
  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> all;
    std::ifstream in(folder_ / name);
    for (std::string line; std::getline(in, line);)
      all.push_back(line);
    return all;
  }

  static std::vector<RewardGroup> numbered(int count) {
    std::vector<RewardGroup> groups;
    for (int i = 0; i < count; ++i)
      groups.push_back(answered(std::to_string(i), ""));
    return groups;
  }
  static void expect_numbers(const std::vector<RewardCalls::Answer>& answers) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSERT_TRUE(answers[i]) << i << ": " << answers[i].error().message;
      EXPECT_EQ(answers[i]->front().value, static_cast<double>(i));
    }
  }

  std::filesystem::path folder_;
  std::unique_ptr<CallsStage> stage_;
};

}  // namespace

TEST_F(PythonPool, AnAsyncFunctionHasManyBatchesTogetherInOneWorker) {
  auto& calls = stage(R"(
there, full = 0, None
async def reward_func(queries, prompts, labels):
    global there, full
    full = full or asyncio.Event()
    there += 1
    if there == 100: full.set()
    await full.wait()
    await asyncio.sleep(0 if int(prompts[0]) % 2 else 0.001)
    return {'rewards': [float(p) for p in prompts], 'extra_logs': {'there': there}}
)");
  const auto answers = calls.score(numbered(100), kAmple);
  expect_numbers(answers);
  EXPECT_EQ((*answers[7])[0].extra, R"({"there":100})");
  EXPECT_EQ(calls.amount("starts"), 1);
  EXPECT_EQ(calls.amount("together"), 1);
}

// Those that it loads in its first call among them; neither its own file nor the interpreter's.
TEST_F(PythonPool, SaysOnceWhatModulesItHasLoaded) {
  const std::filesystem::path real = std::filesystem::canonical(folder_);
  std::ofstream(folder_ / "early.py") << "value = 1\n";
  std::ofstream(folder_ / "late.py") << "value = 2\n";
  auto& calls = stage(R"(
import early, json
def reward_func(queries, prompts, labels):
    import late
    return [float(p) for p in prompts]
)");
  EXPECT_EQ(calls.modules(), "") << "nothing was called";
  expect_numbers(calls.score(numbered(2), kAmple));
  EXPECT_EQ(nlohmann::json::parse(calls.modules()),
            (nlohmann::json{{(real / "early.py").string(), store::sha256_text("value = 1\n")},
                            {(real / "late.py").string(), store::sha256_text("value = 2\n")}}));
  expect_numbers(calls.score(numbered(2), kAmple));
  EXPECT_EQ(calls.modules(), "");
}

TEST_F(PythonPool, WorkersRunAPlainFunctionSideBySide) {
  auto& calls = stage(R"(
def reward_func(queries, prompts, labels):
    note('at')
    while len(set(open(os.path.join(here, 'at')))) < 3: time.sleep(0.002)
    return [float(p) for p in prompts]
)",
                      3);
  expect_numbers(calls.score(numbered(6), kAmple));
  auto pids = lines("at");
  EXPECT_EQ(pids.size(), 6u) << "one call each";
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  EXPECT_EQ(pids.size(), 3u);
  EXPECT_EQ(calls.amount("timed_calls"), 6);
}

TEST_F(PythonPool, TwentyKillsLoseAndDoubleNothing) {
  auto& calls = stage(R"(
def reward_func(queries, prompts, labels):
    if int(prompts[0]) % 3 == 0 and not seen('killed ' + prompts[0]):
        note('killed ' + prompts[0])
        die()
    note('scored ' + prompts[0])
    return [float(p) for p in prompts]
)",
                      3);
  expect_numbers(calls.score(numbered(60), kAmple));
  EXPECT_EQ(calls.tries.deaths, 20u);
  EXPECT_EQ(calls.tries.calls, 80u);
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(lines("scored " + std::to_string(i)).size(), 1u) << i;
}

TEST_F(PythonPool, ABatchThatKillsItsWorkerIsFoundAmongTheOthers) {
  auto& calls = stage(R"(
async def reward_func(queries, prompts, labels):
    await asyncio.sleep(0)
    if prompts[0] == '13': die()
    return [float(p) for p in prompts]
)");
  auto answers = calls.score(numbered(40), kAmple);
  ASSERT_FALSE(answers[13]);
  EXPECT_EQ(answers[13].error().code, core::ErrorCode::kData);
  EXPECT_NE(answers[13].error().message.find("signal 9 (Killed); 3 tries"), std::string::npos)
      << answers[13].error().message;
  answers[13] = std::vector<RewardScore>{{13.0, ""}};
  expect_numbers(answers);
}

TEST_F(PythonPool, ABatchThatHangsIsCancelledAndTheOthersStay) {
  auto& calls = stage(R"(
async def reward_func(queries, prompts, labels):
    if prompts[0] == '2':
        note('hangs')
        try:
            await asyncio.Event().wait()
        finally:
            note('cancelled')
    return [float(p) for p in prompts]
)");
  auto answers = calls.score(numbered(6), 2000ms);
  ASSERT_FALSE(answers[2]);
  EXPECT_EQ(answers[2].error().code, core::ErrorCode::kDeadline);
  answers[2] = std::vector<RewardScore>{{2.0, ""}};
  expect_numbers(answers);
  EXPECT_EQ(lines("hangs").size(), 2u);
  EXPECT_GE(lines("cancelled").size(), 1u);
}

TEST_F(PythonPool, WorkersAreReplacedAfterTheirCalls) {
  auto& calls = stage(R"(
async def reward_func(queries, prompts, labels):
    note('at')
    return [float(p) for p in prompts]
)",
                      2, 10);
  expect_numbers(calls.score(numbered(40), kAmple));
  std::map<std::string, int> calls_of;
  for (const std::string& pid : lines("at"))
    ++calls_of[pid];
  for (const auto& [pid, count] : calls_of)
    EXPECT_LE(count, 10) << pid;
  EXPECT_GE(calls_of.size(), 4u);
}

TEST_F(PythonPool, AFileThatNoLongerLoadsIsAwayAndThenBack) {
  auto& calls = stage(R"(
def reward_func(queries, prompts, labels):
    if not seen('died'):
        note('died')
        die()
    return [float(p) for p in prompts]
)");
  const std::string good = [this] {
    std::ifstream in(folder_ / "reward.py");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  std::ofstream(folder_ / "reward.py") << "import nowhere\n";
  const auto away = calls.score(numbered(3), kAmple);
  for (const auto& answer : away) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, core::ErrorCode::kPeerLost);
    EXPECT_NE(answer.error().message.find("No module named 'nowhere'"), std::string::npos);
  }
  std::ofstream(folder_ / "reward.py") << good;
  expect_numbers(calls.score(numbered(3), kAmple));
}

}  // namespace troupe::actors::reward
