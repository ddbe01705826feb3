// Runs of episodes: a Python class and an agent of its own, over processes, generators that are
// killed in the middle, and an environment that is. What was drawn does not depend on them.
#include "company_support.hpp"

#include <csignal>

namespace troupe::test {
namespace {

// Plain text, since the tiny model has no chat template. Worth the letters that were answered.
const char* const kEnvironment = R"PY(
class Environment:
    def reset(self, row, seed):
        self.turns = 0
        return {"text": "say " + str(row["prompt"])}

    def step(self, message):
        self.turns += 1
        letters = sum(c.isalpha() for c in message["content"] or "")
        return {"text": " and?", "reward": letters / 7, "done": self.turns == 3}
)PY";

const char* const kAgent = R"PY(
import json, os, urllib.request


def post(path, body):
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {
        "Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return json.load(urllib.request.urlopen(request))


prompt = [1 + len(os.environ["TROUPE_PROMPT"]) % 7, 2]
drawn = []
for turn in range(3):
    drawn = post("/v1/completions", {"model": "policy", "prompt": prompt, "max_tokens": 5,
                                  "return_token_ids": True})["choices"][0]["token_ids"]
    prompt += drawn + [3]
post("/reward", {"reward": sum(t % 2 for t in prompt) / len(prompt)})
)PY";

std::vector<std::string> keys(const TinyRun& files, std::vector<std::string> more) {
  std::ofstream(files / "environment.py") << kEnvironment;
  std::ofstream(files / "agent.py") << kAgent;
  more.insert(more.end(), {"--train.max_steps", "3", "--env.turns_max", "8"});
  return more;
}

std::vector<std::string> python(const TinyRun& files, std::vector<std::string> more) {
  more.insert(more.end(), {"--env.python", (files / "environment.py").string()});
  return keys(files, std::move(more));
}

// The samples of the first update, as their lines in the rollouts.
std::vector<nlohmann::json> rollouts(const CompanyRun& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text_of(run.folder() / "rollouts/step_000001.jsonl"));
  for (std::string line; std::getline(in, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(AgentRuns, HaveTheSameBitsInSeveralProcessesAndWhenAGeneratorIsKilled) {
  const TinyRun files;
  CompanyRun one(files, "one", python(files, {"--cluster.transport", "loopback"}));
  ASSERT_EQ(one.wait(), 0) << one.output();
  const auto lines = rollouts(one);
  ASSERT_FALSE(lines.empty());
  for (const auto& line : lines) {
    EXPECT_EQ(line["turns"].size(), 3u) << line;
    EXPECT_GT(line["episode"].get<int>(), 0);
    EXPECT_TRUE(line["rewards"].contains("feedback"));
  }
  CompanyRun several(files, "several", python(files, {"--rollout.generators", "2"}));
  if (const pid_t pid = several.node_after("generator-0", 1)) ::kill(pid, SIGKILL);
  ASSERT_EQ(several.wait(), 0) << several.output();
  expect_same_bits(one.folder(), several.folder(), 3);
  expect_clean_ledger(several.folder());
}

TEST(AgentRuns, AnEnvironmentThatIsKilledStartsAgainAndItsGroupsAreRunAgain) {
  const TinyRun files;
  CompanyRun one(files, "one", python(files, {"--cluster.transport", "loopback"}));
  ASSERT_EQ(one.wait(), 0) << one.output();
  CompanyRun several(files, "several", python(files, {"--rollout.generators", "1"}));
  if (const pid_t pid = several.node_after("environment", 1)) ::kill(pid, SIGKILL);
  ASSERT_EQ(several.wait(), 0) << several.output();
  expect_same_bits(one.folder(), several.folder(), 3);
  expect_clean_ledger(several.folder());
}

TEST(AgentRuns, ACommandLearnsFromItsOwnCalls) {
  const TinyRun files;
  CompanyRun run(
      files, "run",
      keys(files, {"--env.command", "python3 " + core::shell_word((files / "agent.py").string()),
                   "--env.confined", "false", "--rollout.generators", "1"}));
  ASSERT_EQ(run.wait(), 0) << run.output();
  for (const auto& line : rollouts(run)) {
    EXPECT_EQ(line["turns"].size(), 3u) << line;
    EXPECT_GT(line["reward"].get<double>(), 0);
  }
  expect_clean_ledger(run.folder());
}

}  // namespace
}  // namespace troupe::test
