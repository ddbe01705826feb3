// Runs with environments that hang or die at one row, for tests.
#pragma once

#include "company_support.hpp"

namespace troupe::test {

// Worth the letters that were answered. `HOW` is what the row "2+1=" does.
inline const char* const kSickClass = R"PY(
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
inline const char* const kSickProgram = R"PY(
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

inline std::string with_how(std::string text, const std::string& kind, const std::string& how) {
  const std::string::size_type place = text.find("DEF");
  if (place != std::string::npos) text.replace(place, 3, kind);
  return text.replace(text.find("HOW"), 3, how);
}

class SickEnvironments : public ::testing::Test {
 protected:
  // Four updates of two see all six rows.
  SickEnvironments() {
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
    const auto file = write(name + ".py", with_how(kSickClass, kind, how));
    auto run = std::make_unique<CompanyRun>(files_, name, words({"--env.python", file.string()}));
    EXPECT_EQ(run->wait(150), 0) << run->output();
    return run;
  }

  TinyRun files_;
};

}  // namespace troupe::test
