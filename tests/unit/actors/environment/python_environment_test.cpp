// Environments of our own form in real worker processes: many episodes side by side, and files that
// raise, hang, die, print without end or say too much.
#include "actors/environment/episode_room.hpp"
#include "actors/environment/limits.hpp"
#include "runtime/store/sha256.hpp"
#include "tests/unit/actors/environment/python_file.hpp"

#include <set>

namespace troupe::actors::environment {
namespace {
using nlohmann::json;
}

// ---- our own form

TEST_F(PythonEnvironmentTest, APlainClassHasTurnsRewardsAndAScore) {
  auto& calls = stage(R"(
class Count:
    def reset(self, row, seed):
        self.left = row['left'] + seed
        return [{'role': 'system', 'content': row['prompt']}, {'role': 'user', 'content': row['label']}]
    def step(self, message):
        self.left -= 1
        return {'messages': 'again: ' + message['content'], 'reward': 0.25, 'done': self.left == 0,
                'extras': {'left': self.left, 'word': 'dropped'}}
)");
  EpisodeStart start{"hello", "", "seven", R"({"left": 1})", 1};
  auto opened = calls.open(start);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(
      json::parse(opened->opening.messages),
      json::parse(R"([{"role":"system","content":"hello"},{"role":"user","content":"seven"}])"));
  EXPECT_EQ(opened->opening.tools, "");
  auto turn = calls.step(*opened, "a");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(json::parse(turn->messages), json::parse(R"([{"role":"user","content":"again: a"}])"));
  EXPECT_EQ(turn->reward, 0.25);
  EXPECT_EQ(turn->score, 0.25);
  EXPECT_FALSE(turn->done);
  EXPECT_EQ(turn->extras, R"({"left":1.0})");
  turn = calls.step(*opened, "b");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(turn->score, 0.5) << "the sum of the rewards";
  EXPECT_TRUE(turn->done);
}

TEST_F(PythonEnvironmentTest, SaysOnceWhatModulesItHasLoaded) {
  std::ofstream(folder_ / "rules.py") << "value = 1\n";
  auto& calls = stage(R"(
import rules
class Environment:
    def step(self, message):
        return message['content'] + '?'
)");
  auto opened = calls.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(calls.modules(), "") << "its step may load more";
  ASSERT_TRUE(calls.step(*opened, "a"));
  const std::string file = (std::filesystem::canonical(folder_) / "rules.py").string();
  EXPECT_EQ(json::parse(calls.modules()), (json{{file, store::sha256_text("value = 1\n")}}));
  ASSERT_TRUE(calls.step(*opened, "b"));
  EXPECT_EQ(calls.modules(), "");
}

TEST_F(PythonEnvironmentTest, WhatALimitEndsHasTheScoreOfFinish) {
  auto& calls = stage(R"(
class Environment:
    async def step(self, message):
        return message['content'] + '?'
    def finish(self):
        return 0.75
    def close(self):
        note('closed')
class Other:
    def reset(self, row): pass
)");
  auto opened = calls.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->opening.messages, "");
  auto turn = calls.step(*opened, "why");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(turn->messages, R"([{"content":"why?","role":"user"}])");
  EXPECT_EQ(turn->score, std::nullopt);
  EXPECT_EQ(calls.finish(*opened)->score, 0.75);
  EXPECT_EQ(notes("closed"), 0u);
  calls.drop(*opened);
  // The worker takes its requests in order, so the next answer says that it has had the notice.
  auto next = calls.open();
  EXPECT_EQ(calls.finish(*next)->score, 0.75);
  EXPECT_EQ(notes("closed"), 1u);
  EXPECT_EQ(calls.amount("episodes"), 1);
}

TEST_F(PythonEnvironmentTest, AsyncEpisodesStepTogetherInOneWorker) {
  auto& calls = stage(R"(
there, full = 0, None
class Environment:
    async def reset(self, row):
        self.name = row['prompt']
    async def step(self, message):
        global there, full
        full = full or asyncio.Event()
        there += 1
        if there == 100: full.set()
        await full.wait()
        return {'messages': self.name + message['content'], 'done': there == 100}
)");
  auto opened = calls.open_all(starts(100));
  const auto episodes = pointers(opened);
  const auto turns = calls.step_all(episodes, std::vector<std::string>(100, "!"));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    ASSERT_TRUE(turns[i]) << turns[i].error().message;
    EXPECT_EQ(json::parse(turns[i]->messages)[0]["content"], std::to_string(i) + "!");
    EXPECT_TRUE(turns[i]->done);
  }
  EXPECT_EQ(calls.amount("starts"), 1);
}

TEST_F(PythonEnvironmentTest, WhatTheClassRaisesCostsItsEpisodeAndNamesTheLine) {
  auto& calls = stage(R"(
class Environment:
    def step(self, message):
        if message['content'] == 'raise':
            raise KeyError('nothing here')
        if message['content'] == 'exit':
            sys.exit(3)
        if message['content'] == 'nan':
            return {'reward': float('nan'), 'done': True}
        if message['content'] == 'rewrad':
            return {'rewrad': 1.0, 'done': True}
        if message['content'] == 'role':
            return [{'role': 'assistant', 'content': 'I am you'}]
        if message['content'] == 'silent':
            return {'reward': 1.0}
        return 'go on'
)");
  auto opened = calls.open_all(starts(7));
  const auto episodes = pointers(opened);
  const auto turns =
      calls.step_all(episodes, {"raise", "exit", "nan", "rewrad", "role", "silent", "fine"});
  const char* const wanted[] = {"KeyError: 'nothing here'",
                                "SystemExit: 3",
                                "`reward` must be a finite number, it is nan",
                                "`rewrad` is not known",
                                "role is one of system, user, tool",
                                "the policy has nothing to answer"};
  for (std::size_t i = 0; i < 6; ++i) {
    ASSERT_FALSE(turns[i]) << i;
    EXPECT_EQ(turns[i].error().code, core::ErrorCode::kData);
    EXPECT_NE(turns[i].error().message.find(wanted[i]), std::string::npos)
        << turns[i].error().message;
    EXPECT_FALSE(calls.step(*episodes[i], "again")) << "the episode is over";
  }
  EXPECT_NE(turns[0].error().message.find("tools.py\", line 12, in step"), std::string::npos)
      << turns[0].error().message;
  ASSERT_TRUE(turns[6]) << turns[6].error().message;
  EXPECT_TRUE(calls.step(*episodes[6], "more"));
  EXPECT_EQ(calls.amount("starts"), 1);
}

TEST_F(PythonEnvironmentTest, AnObservationBeyondTheLimitIsRefusedByName) {
  auto& calls = stage(R"(
class Environment:
    def step(self, message):
        return 'x' * int(message['content'])
)");
  auto opened = calls.open_all(starts(2));
  const auto episodes = pointers(opened);
  auto turns = calls.step_all(episodes, {"10000000", "1000000"});
  ASSERT_FALSE(turns[0]);
  EXPECT_EQ(turns[0].error().code, core::ErrorCode::kData);
  EXPECT_NE(turns[0].error().message.find("1048576 bytes (kObservation_bytes_max)"),
            std::string::npos)
      << turns[0].error().message;
  ASSERT_TRUE(turns[1]) << turns[1].error().message;
}

// ---- workers

// Whose fault it was: the call that the worker had begun may be the cause, and those that waited
// for the policy are not.
TEST_F(PythonEnvironmentTest, AWorkerThatDiesTakesItsEpisodesAloneAndIsReplaced) {
  auto& calls = stage(R"(
class Environment:
    def reset(self, row):
        self.pid = os.getpid()
        return str(self.pid)
    def step(self, message):
        if message['content'] == str(self.pid): die()
        return 'alive'
)",
                      2);
  // The second worker may still be loading: episodes are opened until both have some.
  std::vector<EnvironmentStage::Opened> opened;
  std::set<std::string> pids;
  while (pids.size() < 2) {
    opened.push_back(calls.open());
    ASSERT_TRUE(opened.back()) << opened.back().error().message;
    pids.insert(opened.back()->opening.messages);
  }
  const std::string victim = json::parse(opened.front()->opening.messages)[0]["content"];
  const auto died = calls.step(*opened.front(), victim);
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().code, core::ErrorCode::kClosed);
  for (auto& one : opened) {
    const bool dead = one->opening.messages == opened.front()->opening.messages;
    const auto turn = calls.step(*one, "0");
    EXPECT_EQ(bool(turn), !dead);
    if (turn) continue;
    EXPECT_EQ(turn.error().code, core::ErrorCode::kInterrupted);
    EXPECT_NE(turn.error().message.find("signal 9 (Killed)"), std::string::npos)
        << turn.error().message;
  }
  while (pids.size() < 3) {
    opened.push_back(calls.open());
    ASSERT_TRUE(opened.back()) << opened.back().error().message;
    pids.insert(opened.back()->opening.messages);
  }
  EXPECT_EQ(calls.amount("starts"), 3);
  EXPECT_EQ(said_.holding("was ended by signal 9 (Killed); it is started again"), 1u);
}

// A row that kills its worker makes the others wait no longer each time.
TEST_F(PythonEnvironmentTest, OnlyWorkersThatNeverAnsweredAreReplacedEverLater) {
  auto& calls = stage(R"(
class Environment:
    def reset(self, row):
        if row['prompt'] == 'first': die()
        return 'alive'
    def step(self, message): die()
)");
  EpisodeStart start;
  for (int i = 0; i < 5; ++i) {
    start.prompt = "later";
    auto opened = calls.open(start);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_FALSE(calls.step(*opened, "a"));
    EXPECT_EQ(calls.amount("restart_pause_s"), 0.1);
  }
  for (const double pause_s : {0.2, 0.4}) {
    start.prompt = "first";
    EXPECT_FALSE(calls.open(start));
    EXPECT_EQ(calls.amount("restart_pause_s"), pause_s);
  }
}

TEST_F(PythonEnvironmentTest, ALateAsyncCallIsCancelledAndTheOthersStay) {
  auto& calls = stage(R"(
class Environment:
    async def step(self, message):
        if message['content'] == 'hang':
            try:
                await asyncio.Event().wait()
            finally:
                note('cancelled')
        return 'fine'
)");
  auto opened = calls.open_all(starts(2));
  const auto episodes = pointers(opened);
  const auto late = calls.step(*episodes[0], "hang", std::chrono::milliseconds(200));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, core::ErrorCode::kDeadline);
  EXPECT_TRUE(calls.step(*episodes[1], "x"));
  EXPECT_FALSE(calls.step(*episodes[0], "x")) << "it is over";
  EXPECT_EQ(notes("cancelled"), 1u);
  EXPECT_EQ(calls.amount("starts"), 1);
}

TEST_F(PythonEnvironmentTest, AWorkerThatHangsIsKilledAndReplaced) {
  auto& calls = stage(R"(
class Environment:
    def step(self, message):
        while message['content'] == 'hang': time.sleep(0.01)
        return 'fine'
)");
  auto opened = calls.open_all(starts(2));
  const auto episodes = pointers(opened);
  const auto late = calls.step(*episodes[0], "hang", std::chrono::milliseconds(200));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, core::ErrorCode::kDeadline);
  const auto beside = calls.step(*episodes[1], "x");
  ASSERT_FALSE(beside);
  EXPECT_EQ(beside.error().code, core::ErrorCode::kInterrupted) << "to be run again";
  EXPECT_NE(beside.error().message.find("one of its calls hung"), std::string::npos)
      << beside.error().message;
  auto next = calls.open();
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(calls.step(*next, "x"));
  EXPECT_EQ(calls.amount("starts"), 2);
}

// The calls that wait behind the one that hangs are late as it is, and no fault of theirs.
TEST_F(PythonEnvironmentTest, ThoseThatWaitBehindACallThatHangsAreToBeRunAgain) {
  auto& calls = stage(R"(
class Environment:
    def step(self, message):
        while message['content'] == 'hang': time.sleep(0.01)
        return 'fine'
)");
  auto opened = calls.open_all(starts(3));
  const auto episodes = pointers(opened);
  const auto turns = calls.step_all(episodes, {"hang", "x", "y"}, std::chrono::milliseconds(200));
  ASSERT_FALSE(turns[0]);
  EXPECT_EQ(turns[0].error().code, core::ErrorCode::kDeadline);
  for (const std::size_t i : {1, 2}) {
    ASSERT_FALSE(turns[i]);
    EXPECT_EQ(turns[i].error().code, core::ErrorCode::kInterrupted) << turns[i].error().message;
  }
}

// Two calls that the worker has begun: either may be what holds it.
TEST_F(PythonEnvironmentTest, OfSeveralThatMayHoldAWorkerEachIsToBeRunAmongFewerOthers) {
  auto& calls = stage(R"(
class Environment:
    async def step(self, message):
        await asyncio.sleep(0)
        while message['content'] == 'hang': time.sleep(0.01)
        await asyncio.sleep(3600)
)");
  auto opened = calls.open_all(starts(3));
  const auto episodes = pointers(opened);
  const auto turns =
      calls.step_all({episodes[1], episodes[0]}, {"wait", "hang"}, std::chrono::milliseconds(200));
  for (const auto& turn : turns) {
    ASSERT_FALSE(turn);
    EXPECT_EQ(turn.error().code, core::ErrorCode::kClosed) << turn.error().message;
  }
  const auto idle = calls.step(*episodes[2], "x");
  ASSERT_FALSE(idle);
  EXPECT_EQ(idle.error().code, core::ErrorCode::kInterrupted);
}

// Plain methods run one after another: each has its time from when it begins.
TEST_F(PythonEnvironmentTest, ACallThatWaitsForOthersIsNotLate) {
  auto& calls = stage(R"(
class Environment:
    def step(self, message):
        time.sleep(0.3)
        return 'fine'
)");
  auto opened = calls.open_all(starts(8));
  const auto episodes = pointers(opened);
  const auto turns =
      calls.step_all(episodes, std::vector<std::string>(8, "x"), std::chrono::milliseconds(1500));
  for (const auto& turn : turns)
    EXPECT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(calls.amount("starts"), 1);
}

// The row of a call that hung, and an episode that was lost twice, have a worker for themselves.
TEST_F(PythonEnvironmentTest, WhatMayEndAWorkerRunsAlone) {
  auto& calls = stage(R"(
class Environment:
    def reset(self, row):
        note('opened')
    def step(self, message):
        while message['content'] == 'hang': time.sleep(0.01)
        return 'fine'
)");
  EpisodeStart bad, suspect, other;
  bad.row = 7;
  suspect.row = 8;
  suspect.losses = 2;
  other.row = 9;
  auto first = calls.open(bad);
  EXPECT_FALSE(calls.step(*first, "hang", std::chrono::milliseconds(200)));
  calls.drop(*first);
  for (const EpisodeStart& lonely : {bad, suspect}) {
    auto alone = calls.open(lonely);
    ASSERT_TRUE(alone) << alone.error().message;
    const std::size_t before = notes("opened");
    auto waits = calls.open_beside(other);
    EXPECT_TRUE(calls.step(*alone, "x"));
    EXPECT_EQ(notes("opened"), before) << "nobody else is there";
    calls.drop(*alone);
    auto opened = calls.opened(waits);
    ASSERT_TRUE(opened) << opened.error().message;
    calls.drop(*opened);
  }
}

TEST(EpisodeRoom, HoldsAsManyAsItsMostCarefulEpisodeBears) {
  EpisodeStart calm, lost_once, lost_twice;
  lost_once.losses = 1;
  lost_twice.losses = 2;
  EXPECT_EQ(company_of(calm), limits::kWorkerEpisodes_max);
  EXPECT_EQ(company_of(lost_once), limits::kWorkerEpisodes_max / 16);
  EXPECT_EQ(company_of(lost_twice), 1u);
  EpisodeRoom room;
  for (int i = 0; i < 16; ++i)
    room.enter(256);
  EXPECT_TRUE(room.has_room(256));
  EXPECT_FALSE(room.has_room(16));
  EXPECT_FALSE(room.has_room(1));
  room.leave(256);
  EXPECT_TRUE(room.has_room(16));
  room.enter(16);
  EXPECT_FALSE(room.has_room(256)) << "there are 16, and one bears no more";
  EXPECT_EQ(room.size(), 16u);
}

TEST_F(PythonEnvironmentTest, WhatIsPrintedReachesTheLogWithinBounds) {
  auto& calls = stage(R"(
class Environment:
    def step(self, message):
        print('out', message['content'])
        print('err', message['content'], file=sys.stderr)
        return 'fine'
    async def finish(self):
        for i in range(100000): print('flood', i)
        die()
)");
  auto opened = calls.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(calls.step(*opened, "1"));
  EXPECT_FALSE(calls.finish(*opened)) << "the worker has ended, and all that it printed was read";
  EXPECT_EQ(said_.holding("tools.py: out 1"), 1u);
  EXPECT_EQ(said_.holding("tools.py: err 1"), 1u);
  EXPECT_GE(said_.holding("flood"), 100u);
  EXPECT_LT(said_.holding("flood"), 90000u);
}

TEST_F(PythonEnvironmentTest, AFileThatNoLongerLoadsIsAwayAndThenBack) {
  const std::string code = R"(
class Environment:
    def step(self, message):
        die()
)";
  auto& calls = stage(code);
  auto opened = calls.open();
  write("import nowhere\n");
  EXPECT_FALSE(calls.step(*opened, "x"));
  auto away = calls.open();
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(away.error().message.find("No module named 'nowhere'"), std::string::npos)
      << away.error().message;
  write(code);
  // A start that began before the file was mended may still fail.
  for (auto next = calls.open(); !next; next = calls.open())
    EXPECT_EQ(next.error().code, core::ErrorCode::kPeerLost);
}

TEST_F(PythonEnvironmentTest, FilesThatCannotBeUsedAreRefusedWithTheRemedy) {
  EXPECT_NE(refusal("x = 1").find("define one class with `reset` or `step`"), std::string::npos);
  EXPECT_NE(refusal("def f(:").find("line 8"), std::string::npos);
  EXPECT_NE(refusal("class A:\n    def step(self, m): ...\nclass B:\n    def step(self, m): ...")
                .find("found A in line 8, B in line 10"),
            std::string::npos);
  const std::string tool = refusal(
      "class A:\n    def reset(self, **row): ...\n"
      "    def add(self, number: int): ...");
  EXPECT_NE(tool.find("tools.py:10: the method add cannot be a tool: it has no docstring"),
            std::string::npos)
      << tool;
  const std::string bare = refusal("class A:\n    def reset(self, **row): ...");
  EXPECT_NE(bare.find("neither `step` nor a public method"), std::string::npos) << bare;
  EXPECT_NE(refusal("from openrlhf.utils.agent import AgentExecutorBase\n"
                    "class AgentExecutor(AgentExecutorBase):\n    def execute(self): ...")
                .find("tools.py:9: AgentExecutor has an `execute` of its own"),
            std::string::npos);
  const auto none = make_python_environment({.python = folder_ / "none.py"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("there is no file"), std::string::npos);
}

}  // namespace troupe::actors::environment
