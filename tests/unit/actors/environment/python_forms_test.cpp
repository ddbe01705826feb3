// Environments in the forms of other trainers, and the examples.
#include "tests/unit/actors/environment/python_file.hpp"

namespace troupe::actors::environment {
namespace {
using nlohmann::json;
}

TEST_F(PythonEnvironmentTest, AnAgentOfOpenRlhfSeesAndSaysTexts) {
  auto& calls = stage(R"(
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
class Tensor:
    def __init__(self, value): self.value = value
    def item(self): return self.value
    def size(self): return (1,)
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

TEST_F(PythonEnvironmentTest, TheExamplesPlay) {
  const char* const root = std::getenv("TROUPE_SOURCE_DIR");
  const std::filesystem::path examples =
      std::filesystem::path(root == nullptr ? "." : root) / "docs/examples";
  auto guess = make_python_environment({.python = examples / "guess_environment.py"});
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
  auto sums = make_python_environment({.python = examples / "calculator_environment.py"});
  ASSERT_TRUE(sums) << sums.error().message;
  stage_.emplace(std::move(*sums));
  start.columns = R"({"answer": 12})";
  auto sum = stage_->open(start);
  ASSERT_TRUE(sum) << sum.error().message;
  const auto called = stage_->step(*sum, call_of("calculate", R"({"a":7,"operation":"+","b":5})"));
  EXPECT_EQ(json::parse(called->messages)[0]["content"], "12");
  EXPECT_EQ(*stage_->step(*sum, "It is 12.")->score, 1.0);
}

}  // namespace troupe::actors::environment
