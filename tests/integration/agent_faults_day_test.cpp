// Environments that hang or die at one row: that row alone is replaced, and what the run leaves is
// what it leaves when the row is refused at once.
#include "company_support.hpp"

namespace troupe::test {
namespace {

// Worth the letters that were answered. `HOW` is what the row "2+1=" does.
const char* const kClass = R"PY(
import os, time
class Environment:
    def reset(self, row, seed):
        self.bad, self.turns = str(row["prompt"]) == "2+1=", 0
        return {"text": "say " + str(row["prompt"])}

    DEF step(self, message):
        self.turns += 1
        if self.bad and self.turns == 2:
            HOW
        letters = sum(c.isalpha() for c in message["content"] or "")
        return {"text": " and?", "reward": letters / 7, "done": self.turns == 3}
)PY";

// A program's row that hangs is ended with its episode.
const char* const kProgram = R"PY(
import json, os, time, urllib.request


def post(path, body):
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {
        "Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return json.load(urllib.request.urlopen(request))


bad = os.environ["TROUPE_PROMPT"] == "2+1="
drawn = post("/v1/completions", {"model": "policy", "prompt": [1 + len(os.environ["TROUPE_PROMPT"]) % 7, 2],
                                 "max_tokens": 5, "return_token_ids": True})["choices"][0]["token_ids"]
if bad:
    HOW
post("/reward", {"reward": sum(t % 2 for t in drawn) / 5})
)PY";

std::string filled(std::string text, const std::string& kind, const std::string& how) {
  const std::string::size_type place = text.find("DEF");
  if (place != std::string::npos) text.replace(place, 3, kind);
  return text.replace(text.find("HOW"), 3, how);
}

class AgentFaults : public ::testing::Test {
 protected:
  // Four updates of two see all six rows.
  AgentFaults() {
    std::ofstream rows(files_ / "rows.jsonl");
    for (int i = 0; i < 6; ++i)
      rows << nlohmann::json({{"prompt", std::to_string(i) + "+1="}, {"answer", "a"}}) << "\n";
  }
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    return std::vector<std::string>{"--data.prompt_dataset",
                                    (files_ / "rows.jsonl").string(),
                                    "--rollout.batch_size",
                                    "2",
                                    "--train.max_steps",
                                    "4",
                                    "--rollout.n_samples_per_prompt",
                                    "2",
                                    "--rollout.generators",
                                    "1",
                                    "--env.turn_timeout_s",
                                    "0.5"} +
           more;
  }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(files_ / name) << text;
    return files_ / name;
  }
  // Runs it to its end, with the row that does this.
  std::unique_ptr<CompanyRun> played(const std::string& name,
                                     const std::string& kind,
                                     const std::string& how) const {
    const auto file = write(name + ".py", filled(kClass, kind, how));
    auto run = std::make_unique<CompanyRun>(files_, name, words({"--env.python", file.string()}));
    EXPECT_EQ(run->wait(150), 0) << run->output();
    return run;
  }

  TinyRun files_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_F(AgentFaults, AStepThatHangsOrDiesCostsItsRowAndNoOther) {
  const auto refused = played("refused", "def", "raise ValueError('no such row')");
  const std::size_t replaced = count_of(refused->log(), " replaced: ");
  EXPECT_GE(replaced, 1u) << refused->log();
  const std::vector<std::array<std::string, 3>> cases = {
      {"plain", "def", "time.sleep(3600)"}, {"dies", "def", "os._exit(3)"}};
  for (const auto& [name, kind, how] : cases) {
    SCOPED_TRACE(name);
    const auto run = played(name, kind, how);
    expect_same_bits(refused->folder(), run->folder(), 4);
    EXPECT_EQ(count_of(run->log(), " replaced: "), replaced) << run->log();
    expect_clean_ledger(run->folder());
  }
}

TEST_F(AgentFaults, AProgramThatHangsCostsItsRowAndNoOther) {
  std::unique_ptr<CompanyRun> runs[2];
  for (const int hangs : {0, 1}) {
    const auto file = write("agent" + std::to_string(hangs) + ".py",
                            filled(kProgram, "", hangs == 0 ? "os._exit(3)" : "time.sleep(3600)"));
    const auto more = words({"--env.command", "python3 " + file.string(), "--env.confined", "false",
                             "--env.episode_timeout_s", "4"});
    runs[hangs] = std::make_unique<CompanyRun>(files_, "run" + std::to_string(hangs), more);
    ASSERT_EQ(runs[hangs]->wait(150), 0) << runs[hangs]->output();
  }
  expect_same_bits(runs[0]->folder(), runs[1]->folder(), 4);
}

// Every row hangs: the run ends, since there are no others.
TEST_F(AgentFaults, WhenEveryRowHangsTheRunEndsWithTheCause) {
  write("rows.jsonl", R"({"prompt": "2+1=", "answer": "a"})"
                      "\n");
  const auto file = write("all.py", filled(kClass, "def", "time.sleep(3600)"));
  CompanyRun run(files_, "all",
                 words({"--env.python", file.string(), "--rollout.batch_size", "1"}));
  EXPECT_EQ(run.wait(150), 4) << run.output();
  EXPECT_NE(run.output().find("4 groups in a row, with the only prompt that there is, failed"),
            std::string::npos)
      << run.output();
  EXPECT_NE(run.output().find("it did not answer in time"), std::string::npos) << run.output();
}

}  // namespace troupe::test
