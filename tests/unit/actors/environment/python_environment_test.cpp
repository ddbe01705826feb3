// Environments of a user's Python file in real worker processes: the three forms of classes, many
// episodes side by side, and files that raise, hang, die, print without end or say too much.
#include "actors/environment/python_environment.hpp"

#include "tests/unit/actors/environment/environment_stage.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

namespace troupe::actors {
namespace {

using nlohmann::json;

constexpr const char* kEnvironmentHead = R"(
import asyncio, os, signal, sys, time
here = os.path.dirname(os.path.abspath(__file__))
def note(name):
    with open(os.path.join(here, name), 'a') as file: file.write(f'{os.getpid()}\n')
def die():
    os.kill(os.getpid(), signal.SIGKILL)
)";

class PythonEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "python_env_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    stage_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path write(const std::string& code) {
    std::ofstream(folder_ / "tools.py") << kEnvironmentHead << code;
    return folder_ / "tools.py";
  }
  EnvironmentStage& stage(const std::string& code, std::size_t workers = 1) {
    auto made = make_python_environment({write(code), workers, said_.hook()});
    EXPECT_TRUE(made) << made.error().message;
    stage_.emplace(made ? std::move(*made) : nullptr);
    return *stage_;
  }
  std::string refusal(const std::string& code) {
    const auto made = make_python_environment({write(code), 1, nullptr});
    EXPECT_FALSE(made);
    if (made) return "";
    EXPECT_EQ(made.error().code, core::ErrorCode::kConfig);
    return made.error().message;
  }
  std::size_t notes(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);)
      ++count;
    return count;
  }

  std::filesystem::path folder_;
  SaidLines said_;
  std::optional<EnvironmentStage> stage_;
};

std::vector<EpisodeStart> starts(std::size_t count) {
  std::vector<EpisodeStart> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i].prompt = std::to_string(i);
  return all;
}

std::vector<EnvironmentStage::Held*> pointers(std::vector<EnvironmentStage::Opened>& opened) {
  std::vector<EnvironmentStage::Held*> all;
  for (auto& one : opened) {
    EXPECT_TRUE(one) << one.error().message;
    if (one) all.push_back(&*one);
  }
  return all;
}

std::string call_of(const std::string& name, const std::string& arguments) {
  const json function = {{"name", name}, {"arguments", arguments}};
  const json call = {{"id", "call_1"}, {"type", "function"}, {"function", function}};
  return json{{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}}.dump();
}

}  // namespace

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

TEST_F(PythonEnvironmentTest, TheExamplesPlay) {
  const char* const root = std::getenv("TROUPE_SOURCE_DIR");
  const std::filesystem::path examples =
      std::filesystem::path(root == nullptr ? "." : root) / "docs/examples";
  auto guess = make_python_environment({examples / "guess_environment.py", 1, nullptr});
  ASSERT_TRUE(guess) << guess.error().message;
  stage_.emplace(std::move(*guess));
  EpisodeStart start;
  start.seed = 142;
  auto opened = stage_->open(start);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(json::parse(stage_->step(*opened, "41?")->messages)[0]["content"], "It is higher.");
  EXPECT_EQ(stage_->step(*opened, "no idea")->reward, -0.1);
  const auto right = stage_->step(*opened, "42");
  EXPECT_TRUE(right->done);
  EXPECT_DOUBLE_EQ(*right->score, 0.9);
  auto sums = make_python_environment({examples / "calculator_environment.py", 1, nullptr});
  ASSERT_TRUE(sums) << sums.error().message;
  stage_.emplace(std::move(*sums));
  start.columns = R"({"answer": 12})";
  auto sum = stage_->open(start);
  ASSERT_TRUE(sum) << sum.error().message;
  const auto called = stage_->step(*sum, call_of("calculate", R"({"a":7,"operation":"+","b":5})"));
  EXPECT_EQ(json::parse(called->messages)[0]["content"], "12");
  EXPECT_EQ(*stage_->step(*sum, "It is 12.")->score, 1.0);
}

// ---- workers

TEST_F(PythonEnvironmentTest, AWorkerThatDiesCostsItsEpisodesAloneAndIsReplaced) {
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
  EXPECT_FALSE(calls.step(*opened.front(), victim));
  for (auto& one : opened) {
    const bool dead = one->opening.messages == opened.front()->opening.messages;
    const auto turn = calls.step(*one, "0");
    EXPECT_EQ(bool(turn), !dead);
    if (turn) continue;
    EXPECT_EQ(turn.error().code, core::ErrorCode::kPeerLost);
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
  EXPECT_EQ(beside.error().code, core::ErrorCode::kPeerLost);
  EXPECT_NE(beside.error().message.find("one of its calls hung"), std::string::npos)
      << beside.error().message;
  auto next = calls.open();
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(calls.step(*next, "x"));
  EXPECT_EQ(calls.amount("starts"), 2);
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
  const auto none = make_python_environment({folder_ / "none.py", 1, nullptr});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("there is no file"), std::string::npos);
}

// ---- forms of other trainers

TEST_F(PythonEnvironmentTest, AnAgentOfOpenRlhfSeesAndSaysTexts) {
  auto& calls = stage(R"(
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
class Tensor:
    def __init__(self, value): self.value = value
    def item(self): return self.value
class AgentInstance(AgentInstanceBase):
    def __init__(self, *args, **kwargs):
        self.turns = 0
    async def reset(self, states, **kwargs):
        return {'observation': states['observation'] + ' begin\n'}
    async def step(self, states, **kwargs):
        self.turns += 1
        note(states['observation_text'].replace('\n', '|'))
        return {'rewards': Tensor(0.5), 'scores': Tensor(1.0), 'environment_feedback': '\nUser: no\nYou: ',
                'done': self.turns == 2, 'sampling_params': states.get('sampling_params'),
                'extra_logs': {'turns': Tensor(self.turns)}}
class AgentExecutor(MultiTurnAgentExecutor):
    def __init__(self):
        super().__init__(AgentInstance)
)");
  EpisodeStart start;
  start.prompt = "Q";
  auto opened = calls.open(start);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->opening.text, "Q begin\n");
  auto turn = calls.step(*opened, "A");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(turn->text, "\nUser: no\nYou: ");
  EXPECT_EQ(turn->messages, "");
  EXPECT_EQ(turn->reward, 0.5);
  EXPECT_EQ(turn->score, 0.5);
  turn = calls.step(*opened, "B");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_TRUE(turn->done);
  EXPECT_EQ(turn->score, 1.0) << "what OpenRLHF trains on is the sum of the rewards";
  EXPECT_EQ(turn->extras, R"({"scores":1.0,"turns":2.0})");
  EXPECT_EQ(notes("Q begin|"), 1u);
  EXPECT_EQ(notes("Q begin|A|User: no|You: "), 1u) << "the second step sees all of the dialogue";
}

TEST_F(PythonEnvironmentTest, AnEnvironmentOfTrlHasToolsAndTheirResults) {
  auto& calls = stage(R"(
class Sums:
    def __init__(self): note('constructed')
    def reset(self, **kwargs):
        self.wanted = kwargs['answer']
        self.right = 0.0
        return ' Use add.'
    def add(self, a: int, b: int) -> int:
        """Adds two numbers.

        Args:
            a: the first
            b: the second
        """
        self.right = float(a + b == self.wanted)
        return a + b
    async def later(self, word: str) -> str:
        """Says it again.

        Args:
            word: what to say
        """
        await asyncio.sleep(0)
        return word + word
    def _hidden(self): pass
def reward(environments, completions, answer, **kwargs):
    return [e.right + (len(c) / 100) for e, c in zip(environments, completions)]
)");
  EpisodeStart start;
  start.messages = R"([{"role":"user","content":"7 + 5?"}])";
  start.columns = R"({"answer": 12})";
  auto opened = calls.open(start);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(json::parse(opened->opening.messages)[0]["content"], "7 + 5? Use add.");
  const json tools = json::parse(opened->opening.tools);
  ASSERT_EQ(tools.size(), 2u);
  EXPECT_EQ(tools[0]["function"]["name"], "add");
  EXPECT_EQ(tools[0]["function"]["parameters"]["properties"]["b"],
            json::parse(R"({"type":"integer","description":"the second"})"));
  EXPECT_EQ(tools[1]["function"]["name"], "later");
  auto turn = calls.step(*opened, call_of("add", R"({"a": 7, "b": 5})"));
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(
      json::parse(turn->messages),
      json::parse(R"([{"role":"tool","name":"add","content":"12","tool_call_id":"call_1"}])"));
  EXPECT_FALSE(turn->done);
  turn = calls.step(*opened, call_of("later", R"({"word": "ho"})"));
  EXPECT_EQ(json::parse(turn->messages)[0]["content"], "hoho");
  turn = calls.step(*opened, call_of("_hidden", "{}"));
  EXPECT_EQ(json::parse(turn->messages)[0]["content"], "{'error': 'Tool _hidden not found.'}");
  turn = calls.step(*opened, call_of("add", R"({"a": 7})"));
  EXPECT_NE(turn->messages.find("missing 1 required positional argument"), std::string::npos);
  turn = calls.step(*opened, "it is 12");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_TRUE(turn->done);
  EXPECT_DOUBLE_EQ(*turn->score, 1.09) << "4 calls, 4 results and the answer";
  EXPECT_EQ(json::parse(turn->extras)["tool_calls"], 4);
  EXPECT_EQ(json::parse(turn->extras)["tool_failures"], 2);
  calls.drop(*opened);
  auto next = calls.open(start);
  EXPECT_EQ(*calls.finish(*next)->score, 0.0);
  EXPECT_EQ(notes("constructed"), 1u) << "constructed once, reset often";
}

TEST_F(PythonEnvironmentTest, TheRowChoosesAmongEnvironmentsOfTrl) {
  auto& calls = stage(R"(
class Game:
    def __init__(self, name='game'): self.name = name
    def reset(self, prompt=None, level=0): self.level = level
    def guess(self, word: str):
        """Guess.

        Args:
            word: a word
        """
        raise ValueError('no ' + word)
    async def get_reward(self): return self.level
environment_factory = {'game': Game, 'other': lambda: Game('other')}
)");
  EpisodeStart start;
  start.prompt = "play";
  start.columns = R"({"environment": "other", "level": 3, "prompt": "play"})";
  auto opened = calls.open(start);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(json::parse(opened->opening.messages),
            json::parse(R"([{"role":"user","content":"play"}])"));
  auto turn = calls.step(*opened, call_of("guess", R"({"word": "it"})"));
  EXPECT_EQ(json::parse(turn->messages)[0]["content"], "{'error': 'no it'}");
  EXPECT_EQ(*calls.step(*opened, "done")->score, 3);
  start.columns = R"({"environment": "nowhere"})";
  const auto wrong = calls.open(start);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("the row's `environment` is 'nowhere'"), std::string::npos);
}

}  // namespace troupe::actors
